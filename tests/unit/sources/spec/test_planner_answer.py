"""A planner's answer is a plan, and becomes a file that a person would write."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import each_case

from loopwright.adapters.sources.spec.planner_answer import TASK_SHAPES, as_written, planner_schema
from loopwright.adapters.sources.spec.yaml_plan import YamlSource
from loopwright.ports import PlannedWork

_LINE = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=30)
_WORDS = _LINE.map(str.strip).filter(bool)
_TEXT = st.lists(_LINE, min_size=1, max_size=4).map("\n".join).filter(lambda text: bool(text.strip()))
_TASK = st.fixed_dictionaries(
    {
        "title": _WORDS,
        "description": _TEXT,
        "depends_on": st.just([]),
        "acceptance": st.lists(_TEXT, max_size=2, unique_by=str.strip),
        "held_out": st.lists(_TEXT, max_size=2),
        "criteria": st.lists(_WORDS, max_size=2),
        "scope": st.lists(st.sampled_from(["src/**", "a b.txt", "'x'"]), max_size=2),
        "priority": st.integers(0, 100),
        "complexity": st.sampled_from(["low", "medium", "high"]),
    }
)


def parsed(text: str) -> PlannedWork:
    return YamlSource().parse({"plan.yaml": text.encode()}, "plan.yaml")


def lines(text: str) -> list[str]:
    """Return what of a text matters: blanks at the end of its lines and around it do not."""
    return [line.rstrip() for line in text.strip().splitlines()]


@settings(deadline=None)
@given(st.lists(_TASK, min_size=1, max_size=3), st.lists(_WORDS, max_size=2, unique=True))
def test_whatever_fits_the_schema_means_the_same_in_its_file(
    tasks: list[dict[str, Any]], gates: list[str]
) -> None:
    tasks = [{**one, "held_out": one["held_out"] if one["acceptance"] else []} for one in tasks]
    answer = {"title": "t", "gates": gates, "tasks": [{"id": f"t{n}", **one} for n, one in enumerate(tasks)]}
    assert set(answer["tasks"][0]) == set(TASK_SHAPES)
    work = parsed(as_written(json.dumps(answer)))
    assert [one.command for one in work.gates or ()] == [one.strip() for one in gates]
    for asked, task in zip(answer["tasks"], work.tasks, strict=True):
        assert lines(task.description) == lines(asked["description"])
        assert [lines(one.command) for one in task.acceptance] == [lines(one) for one in asked["acceptance"]]
        assert [lines(one.check.command) for one in task.held_out] == [
            lines(one) for one in asked["held_out"]
        ]
        assert task.criteria == tuple(asked["criteria"])
        assert (task.priority, task.complexity) == (asked["priority"], asked["complexity"])


def test_the_schema_is_one_that_every_service_takes() -> None:
    """Each object names all of its keys as required and allows no others, and no dialect is named."""
    found: list[dict[str, Any]] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            found.append(value)
            for one in value.values():
                walk(one)

    walk(planner_schema())
    objects = [one for one in found if one.get("type") == "object"]
    assert len(objects) == 2
    for one in objects:
        assert (one["required"], one["additionalProperties"]) == (list(one["properties"]), False)
    assert not any({"$schema", "anyOf", "maxLength"} & set(one) for one in found)
    assert "gates" not in planner_schema(gates=False)["properties"]


@each_case("text", ["title: x # mine\n", "[1]", "no plan\n"])
def test_what_is_no_json_object_stays_as_it_is(text: str) -> None:
    assert as_written(text) == text
