"""Bounds of YAML: a large plan fits, and what does not is refused where it becomes too much."""

import json

import pytest
from tests.cases import each_case

from loopwright.adapters.sources.spec.plan_format import TASK_KEYS
from loopwright.adapters.sources.spec.yaml_plan import YamlSource
from loopwright.adapters.sources.text.located import read_yaml
from loopwright.adapters.sources.text.problems import Unreadable


def test_a_plan_of_a_thousand_tasks_with_all_keys_fits() -> None:
    task = {
        "title": "A", "description": "Do it.", "depends_on": ["0"], "acceptance": ["make a", "make b"],
        "held_out": {"name": "h", "run": "make c"}, "criteria": ["one", "two"], "scope": ["src", "tests"],
        "may_change": ["tests/a.py::test_a"], "priority": 1, "complexity": "low", "prove": True, "phase": "p",
        "type": "code", "max_attempts": 2, "agent": "claude", "model": "m", "status": "open",
        "after": ["0"], "manual": False,
    }  # fmt: skip
    assert {"id", *task} == set(TASK_KEYS)
    tasks = [{"id": str(n), **(task if n else {"title": "First"})} for n in range(1000)]
    text = json.dumps({"title": "T", "tasks": tasks}, indent=1)
    assert len(YamlSource().parse({"plan.yaml": text.encode()}, "plan.yaml").tasks) == 1000


@each_case(
    ("text", "line", "told"),
    [
        ("a: 1\n" * 60_000, 50_000, "more than 50000 lines"),
        ("a:\n" + "b " * 600_000, 2, "at most 1 MB"),
        ("- [x, x]\n" * 20_000, 17_500, "too many values"),
        ("a:\n " + "[" * 60 + "]" * 60, 2, "nested too deeply"),
    ],
)
def test_what_is_too_much_is_refused_where_it_is(text: str, line: int, told: str) -> None:
    with pytest.raises(Unreadable) as refused:
        read_yaml(text)
    assert refused.value.line == line
    assert told in refused.value.message
    assert "JSON" in refused.value.message or "nested" in refused.value.message
