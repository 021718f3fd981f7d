"""Which tasks have to show that their checks fail without them."""

from typing import Any

import pytest
from tests.contracts.store import rows

from loopwright.core.model import Plan, Task
from loopwright.core.policy import GateCommand, HeldOut, Policy
from loopwright.core.tdd import FOUND_UNSEEN, LOOKS, STATIC, WRAPS, is_asked, red_commands, why_skipped

OWN, ALL = GateCommand(name="own", command="make own"), GateCommand(name="all", command="make all")


def asked(red_proof: str = "fixes", **about: Any) -> tuple[Plan, Task]:
    plan: Plan = rows.plan(rows.loop(rows.project()), policy=Policy(red_proof=red_proof), gates=(ALL,))
    return plan, rows.task(plan, **about)


@pytest.mark.capability("C038")
@pytest.mark.parametrize(
    ("type", "title", "why"),
    [
        ("code", "Style the form with CSS", ""),
        ("ui", "Check the form", ""),
        ("CSS", "Anything", LOOKS),
        ("static", "Prices", STATIC),
        ("wrapper", "Mail", WRAPS),
        ("", "Polish the CSS of the form", LOOKS),
        ("", "Mend a typo in the README", STATIC),
        ("", "A wrapper around the mailer", WRAPS),
        ("", "Calculate prices", ""),
    ],
)
def test_logic_has_to_and_looks_texts_and_wrappers_need_not(type: str, title: str, why: str) -> None:
    assert why_skipped(asked(type=type, title=title)[1]) == why


@pytest.mark.capability("C038")
@pytest.mark.parametrize(
    ("about", "mends"),
    [
        ({"type": "fix", "title": "Prices"}, True),
        ({"type": "Bug", "title": "Prices"}, True),
        ({"type": "bugfix", "title": "Prices"}, True),
        ({"type": "regression", "title": "Prices"}, True),
        ({"type": "feature", "title": "Fix the prices at the time of the order"}, False),
        ({"title": "Fix: prices are rounded down"}, True),
        ({"title": "A regression in the rounding"}, True),
        ({"title": "Prefixes and fixtures for debugging"}, False),
        ({"title": "Mend what the complete gate found", "origin": "fix"}, True),
        ({"title": "Calculate prices"}, False),
    ],
)
def test_by_default_only_what_mends_something_has_to_show_that_it_was_broken(
    about: dict[str, Any], mends: bool
) -> None:
    assert is_asked(*asked(**about)) is mends
    assert is_asked(*asked("logic", **about))
    assert not is_asked(*asked("off", **about))


def test_acceptance_has_to_fail_and_without_it_the_gates_that_run_the_tests_which_came_along() -> None:
    plan, task = asked(acceptance=(OWN,))
    assert (
        red_commands(plan, task, brings_tests=False) == red_commands(plan, task, brings_tests=True) == (OWN,)
    )
    plan, task = asked()
    assert red_commands(plan, task, brings_tests=True) == (ALL,)
    assert red_commands(plan, task, brings_tests=False) == (), "nothing of its own could have failed before"


def test_a_further_round_of_a_prompt_need_not_fail_at_what_an_earlier_one_has_met() -> None:
    assert why_skipped(asked("logic", origin="round", acceptance=(OWN,))[1]).startswith(
        "it is a further round"
    )
    assert why_skipped(asked("logic", acceptance=(OWN,))[1]) == ""


def test_what_mends_a_finding_of_held_out_checks_passed_all_others_before() -> None:
    held = (HeldOut(check=OWN),)
    assert why_skipped(asked(origin="fix", held_out=held)[1]) == FOUND_UNSEEN
    assert why_skipped(asked(type="fix", held_out=held)[1]) == "", "its own acceptance says what was broken"
