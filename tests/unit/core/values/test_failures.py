"""Failure classes and their rules."""

from dataclasses import fields

import pytest
from tests.cases import each_case

from loopwright.core.policy.retry import LONGEST_S
from loopwright.core.values.failures import RULES, Failure, Level, Rule


@each_case("failure", Failure)
def test_every_failure_has_a_rule_with_advice_in_one_sentence(failure: Failure) -> None:
    advice = RULES[failure].advice
    assert advice[0].isupper()
    assert advice.endswith(".")
    assert "\n" not in advice


def test_the_rules_cannot_be_changed_by_accident() -> None:
    with pytest.raises(TypeError):
        RULES[Failure.GATE] = RULES[Failure.AUTH]  # type: ignore[index]
    with pytest.raises(AttributeError):
        RULES[Failure.GATE].level = Level.NONE  # type: ignore[misc]


@each_case(
    "failure",
    [Failure.RATE_LIMIT, Failure.OVERLOADED, Failure.LOGIN_RENEWED, Failure.CRASH, Failure.HOST_LOST],
)
def test_what_was_never_judged_does_not_use_up_an_attempt(failure: Failure) -> None:
    assert RULES[failure].level is Level.CALL


@each_case("failure", [Failure.NO_CHANGE, Failure.GATE, Failure.TIMEOUT])
def test_what_was_judged_uses_up_an_attempt(failure: Failure) -> None:
    assert RULES[failure].level is Level.ATTEMPT


@each_case(
    "failure", [Failure.AUTH, Failure.BILLING, Failure.BUDGET, Failure.UNVERIFIED, Failure.CANNOT_CHECK]
)
def test_what_only_a_person_can_mend_is_never_tried_again_by_the_machine(failure: Failure) -> None:
    assert RULES[failure].level is Level.NONE


KNOWN: dict[Failure, set[str]] = {
    Failure.RATE_LIMIT: {"parks", "honours"},
    Failure.LOGIN_RENEWED: {"parks"},
    Failure.OVERLOADED: {"parks", "honours", "fallback"},
    Failure.MODEL: {"fallback"},
    Failure.REFUSAL: {"fallback"},
    Failure.CONTEXT: {"fallback"},
    Failure.USAGE_LIMIT: {"parks", "honours", "closes", "fallback"},
    Failure.AUTH: {"parks", "closes", "person", "fallback"},
    Failure.BILLING: {"parks", "closes", "person", "fallback"},
    Failure.AGENT_ERROR: {"hopeless"},
    Failure.CRASH: {"hopeless"},
    Failure.BUDGET: {"pauses"},
    Failure.CANCELLED: {"stopped"},
}
"""What is special about a failure. Everything else ends its attempt, and nothing more."""


@each_case("failure", Failure)
def test_what_follows_from_each_failure_is_in_its_rule(failure: Failure) -> None:
    rule = RULES[failure]
    names = [one.name for one in fields(Rule) if one.default is False]
    assert {name for name in names if getattr(rule, name)} == KNOWN.get(failure, set())


@each_case("failure", Failure)
def test_no_attempt_pauses_so_long_by_itself_that_it_is_taken_for_a_time_of_the_service(
    failure: Failure,
) -> None:
    rule = RULES[failure]
    assert 0 < rule.first_s <= rule.longest_s
    assert rule.closes or rule.longest_s <= LONGEST_S
    assert rule.parks or not rule.closes, "what waits for an account keeps its work"
