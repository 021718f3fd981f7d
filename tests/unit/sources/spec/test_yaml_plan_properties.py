"""Whatever a plan file contains, reading it gives work or `BadPlan`, and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.sources.spec.test_yaml_plan import GOOD

from loopwright.adapters.sources.spec.yaml_plan import YamlSource
from loopwright.adapters.sources.text.reading import read
from loopwright.core.policy.graph import find_cycle
from loopwright.core.values.errors import BadPlan
from loopwright.ports import PlannedWork

quick = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
ids = st.sampled_from(["a", "b", "c", "d"])
anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), ids),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
TASK_KEYS = ["id", "title", "description", "depends_on", "acceptance", "criteria", "scope", "priority",
             "max_attempts", "agent", "model", "odd"]  # fmt: skip
task = st.fixed_dictionaries(
    {"id": ids, "title": words},
    optional={
        "depends_on": st.lists(ids, max_size=2),
        "acceptance": st.lists(words, max_size=2, unique=True),
        "priority": st.integers(0, 1000),
    },
)
plans = st.fixed_dictionaries({"title": words, "tasks": st.lists(task, min_size=1, max_size=5)})


def outcome(path: Path, content: bytes) -> PlannedWork | BadPlan:
    path.write_bytes(content)
    try:
        return read(YamlSource(), path)
    except BadPlan as refused:
        return refused


def check(result: PlannedWork | BadPlan, name: str) -> None:
    if isinstance(result, BadPlan):
        assert result.problems
        assert all(problem.startswith((name, "and ")) for problem in result.problems)
        assert all("\n" not in problem for problem in result.problems)
        return
    keys = {task.key for task in result.tasks}
    assert len(keys) == len(result.tasks) > 0
    edges = {task.key: task.depends_on for task in result.tasks}
    assert all(keys.issuperset(needs) for needs in edges.values())
    assert find_cycle(edges) is None
    json.dumps(dict(result.settings), allow_nan=False)


@quick
@given(plan=plans, data=st.data())
@pytest.mark.capability("C004")
def test_a_valid_plan_with_any_value_replaced_is_work_or_a_located_refusal(
    tmp_path: Path, plan: dict[str, Any], data: st.DataObject
) -> None:
    target: dict[str, Any] = plan
    if data.draw(st.booleans()):
        target = data.draw(st.sampled_from(plan["tasks"]))
        key = data.draw(st.sampled_from(TASK_KEYS))
    else:
        key = data.draw(st.sampled_from(["title", "tasks", "gates", "settings", "odd"]))
    target[key] = data.draw(anything)
    content = json.dumps(plan).encode()
    for name in ("plan.json", "plan.yaml"):
        check(outcome(tmp_path / name, content), name)


@quick
@given(data=st.data())
def test_a_valid_text_with_any_bytes_changed_is_work_or_a_located_refusal(
    tmp_path: Path, data: st.DataObject
) -> None:
    content = bytearray(GOOD.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        end = min(len(content), start + data.draw(st.integers(0, 5)))
        content[start:end] = data.draw(
            st.one_of(
                st.binary(max_size=4),
                st.sampled_from([b"\t", b"- ", b": ", b"&a ", b"*a", b"!!x ", b"{", b"["]),
            )
        )
    check(outcome(tmp_path / "plan.yaml", bytes(content)), "plan.yaml")


@quick
@given(text=st.text(max_size=60))
def test_any_text_is_work_or_a_located_refusal(tmp_path: Path, text: str) -> None:
    content = text.encode("utf-8", "surrogatepass")
    for name in ("plan.yaml", "plan.json"):
        check(outcome(tmp_path / name, content), name)


@quick
@given(plan=plans)
def test_json_is_read_alike_by_both_readers(tmp_path: Path, plan: dict[str, Any]) -> None:
    # Escaped, because YAML refuses a few characters that JSON takes as they are.
    content = json.dumps(plan).encode()
    one, other = outcome(tmp_path / "plan.json", content), outcome(tmp_path / "plan.yaml", content)
    if isinstance(one, PlannedWork):
        assert isinstance(other, PlannedWork)
        assert one.tasks == other.tasks
    else:
        assert isinstance(other, BadPlan)
        assert [p.replace("plan.json", "plan.yaml") for p in one.problems] == list(other.problems)
