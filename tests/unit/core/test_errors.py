"""Errors carry what a handler needs as data, and say it in one line."""

import pytest
from scripts.render_docs import error_classes

from loopwright.core.errors import (
    BadPlan,
    IllegalTransition,
    LoopwrightError,
    MergeConflict,
    NotFound,
    UserError,
)


def test_a_users_error_carries_a_hint() -> None:
    error = NotFound("there is no plan plan_1", hint="loopwright status lists them")
    assert str(error) == "there is no plan plan_1"
    assert error.hint == "loopwright status lists them"
    assert NotFound("gone").hint is None


def test_a_bad_plan_names_its_source_once_with_every_problem() -> None:
    bad = BadPlan("plan.yaml", ("plan.yaml:3: id twice", "no tasks"))
    assert str(bad) == "plan.yaml:3: id twice; plan.yaml: no tasks"
    assert bad.problems == ("plan.yaml:3: id twice", "no tasks")


def test_a_merge_conflict_names_the_paths() -> None:
    error = MergeConflict(("a.py", "b.py"), "both changed line 1")
    assert str(error) == "conflict in a.py, b.py"
    assert error.detail == "both changed line 1"


def test_a_defect_is_not_shown_as_the_users_mistake() -> None:
    assert not isinstance(IllegalTransition("plan", "plan_1", "DRAFT", "VERIFIED"), UserError)


@pytest.mark.parametrize("cls", error_classes(), ids=lambda cls: cls.code)
def test_every_error_has_a_code_of_its_own_and_a_meaning(cls: type[LoopwrightError]) -> None:
    assert "code" in vars(cls)
    assert (cls.__doc__ or "").strip()
