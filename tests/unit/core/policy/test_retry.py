"""What follows from a failed attempt: two counters, one limit for each, and no third try at a hopeless thing."""

from datetime import timedelta
from typing import Any

import pytest
from tests.cases import each_case
from tests.contracts.store import rows
from tests.wording_plugin import Wording

from loopwright.core.policy.retry import (
    INSTANT,
    MOST_RACES,
    Again,
    Failed,
    GiveUp,
    after_failure,
    backoff,
    pause_until,
)
from loopwright.core.rows.model import Task
from loopwright.core.values.failures import RULES, Failure, Level
from loopwright.core.values.policy import Policy

POLICY = Policy(max_call_retries=2)
LONG = timedelta(minutes=5)
AT_ONCE = timedelta(seconds=1)


def task(**changes: Any) -> Task:
    return rows.task(rows.plan(rows.loop(rows.project())), **changes)


def after(failure: Failure, given: Task | None = None, **known: Any) -> Again | GiveUp:
    failed = Failed(failure=failure, detail=known.pop("detail", "it did not work"), **known)
    return after_failure(given or task(), failed, POLICY, now=rows.AT)


def of_level(level: Level) -> list[Failure]:
    return [failure for failure, rule in RULES.items() if rule.level is level]


@pytest.mark.capability("C083")
@each_case("failure", of_level(Level.ATTEMPT))
def test_work_that_was_found_wanting_is_tried_again_at_once_until_its_limit(failure: Failure) -> None:
    assert after(failure, task(attempts=1)) == Again(at=rows.AT, attempts=2, call_failures=0)
    last = after(failure, task(attempts=2, max_attempts=3))
    assert last == GiveUp(
        reason=f"{RULES[failure].advice} 3 of 3 attempts failed.", attempts=3, call_failures=0
    )


@each_case("failure", of_level(Level.RACE))
def test_what_others_landed_first_uses_up_no_attempt_and_still_has_an_end(
    failure: Failure, wording: Wording
) -> None:
    lost = after(failure, task(attempts=2, max_attempts=3, races=1))
    assert lost == Again(at=rows.AT, attempts=2, call_failures=0, races=2)
    over = after(failure, task(attempts=2, races=MOST_RACES - 1))
    assert isinstance(over, GiveUp)
    wording(over.reason)


@each_case("failure", of_level(Level.CALL))
def test_a_failed_service_or_machine_uses_up_no_attempt(failure: Failure) -> None:
    again = after(failure, task(attempts=2, call_failures=1))
    assert isinstance(again, Again)
    assert (again.attempts, again.call_failures) == (2, 2)
    assert again.at > rows.AT


@each_case("failure", of_level(Level.CALL))
def test_calls_have_a_limit_of_their_own(failure: Failure) -> None:
    over = after(failure, task(call_failures=2))
    assert over == GiveUp(
        reason=f"{RULES[failure].advice} Tried 3 times in a row.", attempts=0, call_failures=3
    )


@each_case("failure", of_level(Level.NONE))
def test_what_no_second_try_can_mend_is_given_up_with_the_advice(failure: Failure) -> None:
    given_up = after(failure, task(attempts=1, call_failures=2))
    assert given_up == GiveUp(reason=RULES[failure].advice, attempts=1, call_failures=0)


def test_a_judged_attempt_ends_the_row_of_failed_calls() -> None:
    """`in a row` means since the work was last judged."""
    judged = after(Failure.GATE, task(call_failures=2))
    assert judged.call_failures == 0


@pytest.mark.capability("C086")
def test_a_service_that_names_a_time_is_asked_again_then() -> None:
    later = rows.AT + timedelta(hours=3)
    again = after(Failure.RATE_LIMIT, retry_at=later)
    assert isinstance(again, Again)
    assert again.at == later


@each_case("failure", [Failure.RATE_LIMIT, Failure.OVERLOADED])
def test_a_service_that_asks_for_a_second_each_time_is_left_alone_for_longer_and_longer(
    failure: Failure,
) -> None:
    soon = rows.AT + timedelta(seconds=1)
    pauses = [pause_until(RULES[failure], n, now=rows.AT, retry_at=soon) - rows.AT for n in (1, 2, 3)]
    assert [one.total_seconds() for one in pauses] == [5, 10, 20]


def test_a_limit_ends_when_it_ends_however_soon() -> None:
    soon = rows.AT + timedelta(seconds=3)
    assert pause_until(RULES[Failure.USAGE_LIMIT], 1, now=rows.AT, retry_at=soon) == soon


@each_case("failure", [Failure.AGENT_ERROR, Failure.CRASH])
def test_the_same_failure_at_once_twice_is_hopeless(failure: Failure, wording: Wording) -> None:
    first = Failed(failure=failure, detail="no such model", lasted=AT_ONCE)
    assert isinstance(after_failure(task(), first, POLICY, now=rows.AT), Again)
    second = after_failure(task(failure_mark=first.mark), first, POLICY, now=rows.AT)
    assert isinstance(second, GiveUp)
    wording(second.reason)


@each_case(
    "known",
    [
        {"detail": "another message", "lasted": AT_ONCE},
        {"detail": "no such model", "lasted": LONG},
        {"detail": "no such model", "lasted": INSTANT},
        {"detail": "no such model", "lasted": None},
    ],
)
def test_a_failure_that_differs_or_took_its_time_is_not_hopeless(known: dict[str, Any]) -> None:
    mark = Failed(failure=Failure.AGENT_ERROR, detail="no such model").mark
    assert isinstance(after(Failure.AGENT_ERROR, task(failure_mark=mark), **known), Again)


def test_a_gate_that_fails_fast_twice_is_still_the_agents_to_mend() -> None:
    """A quick agent may fail the same check twice and pass the third time."""
    mark = Failed(failure=Failure.GATE, detail="pytest failed").mark
    again = after(Failure.GATE, task(failure_mark=mark), detail="pytest failed", lasted=AT_ONCE)
    assert isinstance(again, Again)


def test_a_long_message_is_marked_by_its_beginning() -> None:
    one = Failed(failure=Failure.CRASH, detail="x" * 500 + "tail one")
    other = Failed(failure=Failure.CRASH, detail="x" * 500 + "tail two")
    assert one.mark == other.mark
    assert one.mark != Failed(failure=Failure.AGENT_ERROR, detail=one.detail).mark


@pytest.mark.capability("C086")
def test_the_pause_doubles_up_to_its_bound_and_is_spread_by_a_fifth() -> None:
    assert [backoff(n).total_seconds() for n in (0, 1, 2, 3, 6, 7, 8, 1000)] == [1, 1, 2, 4, 32, 60, 60, 60]
    assert backoff(7, chance=0.0).total_seconds() == pytest.approx(48)
    assert backoff(7, chance=1.0).total_seconds() == pytest.approx(72)
    assert backoff(2, first_s=5.0, limit_s=300.0).total_seconds() == 10


@each_case("failure", [failure for failure, rule in RULES.items() if rule.honours])
def test_the_time_of_a_service_is_kept_and_one_in_the_past_is_none(failure: Failure) -> None:
    rule = RULES[failure]
    later, gone = rows.AT + timedelta(hours=1), rows.AT - timedelta(seconds=1)
    assert pause_until(rule, 1, now=rows.AT, retry_at=later) == later
    ours = rows.AT + timedelta(seconds=rule.first_s)
    assert pause_until(rule, 1, now=rows.AT, retry_at=gone) == ours
    assert pause_until(rule, 1, now=rows.AT) == ours
    assert pause_until(rule, 99, now=rows.AT) == rows.AT + timedelta(seconds=rule.longest_s)


def test_what_only_a_person_can_mend_is_given_up_at_once_and_counts_nowhere() -> None:
    failed = Failed(failure=Failure.ENVIRONMENT, detail="the sandbox kept it from writing /x", lasting=True)
    given_up = after_failure(task(attempts=1, call_failures=2), failed, POLICY, now=rows.AT)
    assert given_up == GiveUp(reason=RULES[Failure.ENVIRONMENT].advice, attempts=1, call_failures=2)


def test_a_time_that_nobody_may_name_is_not_kept() -> None:
    rule = RULES[Failure.AUTH]
    later = rows.AT + timedelta(days=1)
    assert pause_until(rule, 1, now=rows.AT, retry_at=later) == rows.AT + timedelta(seconds=rule.first_s)
