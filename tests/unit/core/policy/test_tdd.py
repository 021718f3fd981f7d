"""Which tasks have to show that their checks fail without them."""

from typing import Any

import pytest
from tests.cases import each_case
from tests.contracts.store import rows

from loopwright.core.policy.red_first import (
    FOUND_UNSEEN,
    is_asked,
    is_check_file,
    is_red,
    red_commands,
    why_skipped,
)
from loopwright.core.rows.model import Plan, Task
from loopwright.core.values.policy import GateCommand, HeldOut, Policy

OWN, ALL = GateCommand(name="own", command="make own"), GateCommand(name="all", command="make all")


def asked(red_proof: str = Policy().red_proof, **about: Any) -> tuple[Plan, Task]:
    plan: Plan = rows.plan(rows.loop(rows.project()), policy=Policy(red_proof=red_proof), gates=(ALL,))
    return plan, rows.task(plan, **about)


@pytest.mark.clause("X11")
@pytest.mark.capability("C038")
@each_case(
    ("about", "fix"),
    [
        ({"type": "fix", "title": "Prices"}, True),
        ({"type": "Bug", "title": "Prices"}, True),
        ({"type": "bugfix", "title": "Prices"}, True),
        ({"type": "regression", "title": "Prices"}, True),
        ({"type": "feature", "title": "Fix the prices at the time of the order"}, False),
        ({"title": "Fix: prices are rounded down"}, False),
        ({"title": "Fix what the complete gate found", "origin": "fix"}, True),
        ({"title": "Calculate prices"}, False),
    ],
)
def test_only_a_declared_fix_or_a_task_with_prove_has_to_show_that_its_checks_fail_without_it(
    about: dict[str, Any], fix: bool
) -> None:
    assert is_asked(*asked(**about)) is fix, "a word in the title declares nothing"
    assert is_asked(*asked(acceptance=(OWN,), **about)) is fix
    assert not is_asked(*asked("off", acceptance=(OWN,), **about))
    assert is_asked(*asked("off", prove=True, **about)), "what the task says wins over the setting"


def test_acceptance_has_to_fail_and_without_it_the_gates_where_they_can_show_it() -> None:
    plan, task = asked(acceptance=(OWN,))
    assert red_commands(plan, task, with_gates=False) == red_commands(plan, task, with_gates=True) == (OWN,)
    plan, task = asked()
    assert red_commands(plan, task, with_gates=True) == (ALL,)
    assert red_commands(plan, task, with_gates=False) == (), "nothing of its own could have failed before"


@each_case(
    ("status", "codes", "red"),
    [
        ("failed", (1,), True),
        ("passed", (0,), False),
        ("inconclusive", (0, 127), True),
        ("inconclusive", (0, None), None),
        ("unverified", (), None),
    ],
)
def test_a_program_that_only_the_work_brings_is_missing_without_it(
    status: str, codes: tuple[int | None, ...], red: bool | None
) -> None:
    assert is_red(status, codes) is red


def test_what_mends_a_finding_of_held_out_checks_passed_all_others_before() -> None:
    held = (HeldOut(check=OWN),)
    assert why_skipped(asked(origin="fix", held_out=held)[1]) == FOUND_UNSEEN
    assert why_skipped(asked(type="fix", held_out=held)[1]) == "", "its own acceptance says what was broken"


@each_case(
    ("path", "laid"),
    [
        ("tests/test_a.py", True),
        ("pkg/a_test.go", True),
        ("tests/data/sums.json", True),
        ("tests/conftest.py", True),
        ("conftest.py", True),
        ("ci/check.sh", True),
        ("calc.py", False),
        ("src/calc/testing.py", False),
        ("src/types.py", False),
        ("sitecustomize.py", False),
        ("pyproject.toml", False),
        ("setup.py", False),
        ("Makefile", False),
    ],
)
def test_the_tree_without_the_work_gets_the_works_tests_and_no_product_source(path: str, laid: bool) -> None:
    assert is_check_file(path) is laid
