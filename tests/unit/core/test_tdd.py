"""Which tasks have to show that their checks fail without them."""

from typing import Any

import pytest
from tests.cases import each_case
from tests.contracts.store import rows

from loopwright.core.model import Plan, Task
from loopwright.core.policy import GateCommand, HeldOut, Policy
from loopwright.core.tdd import (
    FOUND_UNSEEN,
    KEEPS,
    LOOKS,
    STATIC,
    TESTS,
    WRAPS,
    is_asked,
    is_red,
    red_commands,
    why_skipped,
)

OWN, ALL = GateCommand(name="own", command="make own"), GateCommand(name="all", command="make all")


def asked(red_proof: str = Policy().red_proof, **about: Any) -> tuple[Plan, Task]:
    plan: Plan = rows.plan(rows.loop(rows.project()), policy=Policy(red_proof=red_proof), gates=(ALL,))
    return plan, rows.task(plan, **about)


@pytest.mark.capability("C038")
@each_case(
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
        ("refactor", "Prices", KEEPS),
        ("", "Refactor the prices", KEEPS),
        ("", "More tests for the prices", TESTS),
        ("", "Prices with tests", ""),
    ],
)
def test_logic_has_to_and_looks_texts_and_wrappers_need_not(type: str, title: str, why: str) -> None:
    assert why_skipped(asked(type=type, title=title)[1]) == why


def test_who_may_write_no_code_has_no_logic_to_show() -> None:
    assert why_skipped(asked(title="Describe the shop", scope=("README.md", "docs/**/*.rst"))[1]) == STATIC
    assert why_skipped(asked(title="Darker", scope=("shop/look.css",))[1]) == LOOKS
    assert why_skipped(asked(title="Prices", scope=("README.md", "shop/prices.py"))[1]) == ""
    assert why_skipped(asked(title="Prices", scope=("tests/**",))[1]) == TESTS
    assert why_skipped(asked(title="Prices", scope=("docs/**",))[1]) == "", "there may be code there"
    assert why_skipped(asked(title="Prices", type="code", scope=("README.md",))[1]) == "", "a type decides"


@pytest.mark.capability("C038")
@each_case(
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
def test_what_mends_something_has_to_show_that_it_was_broken_and_the_rest_what_its_acceptance_is_worth(
    about: dict[str, Any], mends: bool
) -> None:
    assert is_asked(*asked(**about)) is mends, "without acceptance only a fix has something to show"
    assert is_asked(*asked(acceptance=(OWN,), **about))
    assert is_asked(*asked("fixes", acceptance=(OWN,), **about)) is mends
    assert not is_asked(*asked("off", acceptance=(OWN,), **about))


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


def test_a_further_round_of_a_prompt_need_not_fail_at_what_an_earlier_one_has_met() -> None:
    assert why_skipped(asked("logic", origin="round", acceptance=(OWN,))[1]).startswith(
        "it is a further round"
    )
    assert why_skipped(asked("logic", acceptance=(OWN,))[1]) == ""


def test_what_mends_a_finding_of_held_out_checks_passed_all_others_before() -> None:
    held = (HeldOut(check=OWN),)
    assert why_skipped(asked(origin="fix", held_out=held)[1]) == FOUND_UNSEEN
    assert why_skipped(asked(type="fix", held_out=held)[1]) == "", "its own acceptance says what was broken"
