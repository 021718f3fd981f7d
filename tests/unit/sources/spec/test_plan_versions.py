"""The version of a plan: old ones are brought up to date step by step, unknown ones are refused with a sentence."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cases import each_case

from loopwright.adapters.sources.spec.plan_versions import (
    MIGRATIONS,
    VERSION,
    Table,
    WrongVersion,
    brought_up,
)
from loopwright.adapters.sources.spec.yaml_plan import YamlSource
from loopwright.adapters.sources.text import reading
from loopwright.adapters.sources.text.located import Located
from loopwright.core.values.errors import BadPlan

TASKS = "tasks:\n  - id: a\n    title: A\n"


def read(folder: Path, text: str) -> str:
    (folder / "plan.yaml").write_text(text)
    return reading.read(YamlSource(), folder / "plan.yaml").title


@pytest.mark.capability("C015")
@each_case("first", ["", "version: 1\n", "version:\n"])
def test_a_plan_of_the_first_version_may_say_so(tmp_path: Path, first: str) -> None:
    assert read(tmp_path, f"{first}title: Numbers\n{TASKS}") == "Numbers"


@each_case(
    ("written", "told"),
    [
        ("2", "written in version 2 of the format, and this Loopwright knows up to 1: install a newer"),
        ("0", 'expected a whole number from 1 to 1, got "0"'),
        ("1.0", 'got "1.0"'),
        ("true", 'got "true"'),
        ("[1]", "got something else"),
    ],
)
def test_another_version_is_refused_by_that_alone(tmp_path: Path, written: str, told: str) -> None:
    """Keys that this version does not know may be right in the other one."""
    with pytest.raises(BadPlan) as refused:
        read(tmp_path, f"title: Numbers\nversion: {written}\nunheard_of: 1\n{TASKS}")
    (problem,) = refused.value.problems
    assert problem.startswith("plan.yaml:2: version: ")
    assert told in problem


def test_every_version_before_the_newest_leads_to_the_next() -> None:
    assert sorted(MIGRATIONS) == list(range(1, VERSION))


def test_an_old_plan_goes_through_every_step_and_keeps_its_lines() -> None:
    def renamed(old: str, new: str) -> Callable[[Table], Table]:
        def step(table: Table) -> Table:
            return {new if key == old else key: value for key, value in table.items()}

        return step

    steps = {1: renamed("name", "heading"), 2: renamed("heading", "title")}
    plan = {"name": Located(value="Numbers", line=7, text="Numbers")}
    assert brought_up(plan, steps, 3) == {"title": plan["name"]}
    second = {"version": Located(value=2, line=1, text="2"), "heading": plan["name"]}
    assert brought_up(second, steps, 3)["title"].line == 7
    newest = {"version": Located(value=3, line=1, text="3"), "name": plan["name"]}
    assert brought_up(newest, steps, 3) == newest, "a key that only an old version had"
    with pytest.raises(WrongVersion):
        brought_up({"version": replace(newest["version"], value=4)}, steps, 3)
