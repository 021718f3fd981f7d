"""Laws of trying again: bounded on every level, and no level eats another's tries."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.contracts.store import rows

from loopwright.core.policy.retry import (
    LONGEST_PAUSE,
    LONGEST_S,
    MOST_RACES,
    Again,
    Failed,
    GiveUp,
    after_failure,
    backoff,
)
from loopwright.core.rows.model import Task
from loopwright.core.values.failures import RULES, Failure, Level
from loopwright.core.values.policy import Policy

LAW = settings(max_examples=40, deadline=None)
DETAILS = st.sampled_from(["no such model", "boom", ""])
FAILURES = st.builds(
    Failed,
    failure=st.sampled_from(Failure),
    detail=DETAILS,
    lasted=st.none() | st.sampled_from([timedelta(seconds=1), timedelta(hours=1)]),
    retry_at=st.none() | st.just(rows.AT + timedelta(hours=1)),
)
POLICIES = st.builds(Policy, max_call_retries=st.integers(0, 4))
CHANCES = st.floats(0, 1, exclude_max=True)


def fresh(max_attempts: int) -> Task:
    return rows.task(rows.plan(rows.loop(rows.project())), max_attempts=max_attempts)


def carried_on(task: Task, failed: Failed, after: Again | GiveUp) -> Task:
    """Return the task as the engine writes it after a failure."""
    counts = {"attempts": after.attempts, "call_failures": after.call_failures, "races": after.races}
    return replace(task, **counts, failure_mark=failed.mark)


@pytest.mark.trap("counted twice")
@LAW
@given(
    failures=st.lists(FAILURES, max_size=25),
    policy=POLICIES,
    max_attempts=st.integers(1, 4),
    chance=CHANCES,
)
def test_counters_stay_within_their_limits_and_never_eat_each_other(
    failures: list[Failed], policy: Policy, max_attempts: int, chance: float
) -> None:
    task = fresh(max_attempts)
    for failed in failures:
        after = after_failure(task, failed, policy, now=rows.AT, chance=chance)
        level = RULES[failed.failure].level
        assert after.attempts == task.attempts + (level is Level.ATTEMPT)
        assert after.call_failures == (task.call_failures + 1 if level is Level.CALL else 0)
        assert after.races == task.races + (level is Level.RACE) <= MOST_RACES
        assert after.attempts <= max_attempts
        assert after.call_failures <= policy.max_call_retries + 1
        if isinstance(after, GiveUp):
            assert after.reason
            return
        assert level is not Level.NONE
        assert after.attempts < max_attempts
        assert after.at >= rows.AT
        task = carried_on(task, failed, after)


@LAW
@given(policy=POLICIES, max_attempts=st.integers(1, 4), data=st.data())
def test_a_task_that_always_fails_is_given_up(policy: Policy, max_attempts: int, data: st.DataObject) -> None:
    task = fresh(max_attempts)
    tries = (max_attempts + MOST_RACES) * (policy.max_call_retries + 1)
    for _ in range(tries):
        failed = data.draw(FAILURES)
        after = after_failure(task, failed, policy, now=rows.AT)
        if isinstance(after, GiveUp):
            return
        task = carried_on(task, failed, after)
    raise AssertionError(f"still trying after {tries} failures")


@pytest.mark.trap("same failure for ever")
@LAW
@given(
    anyhow=FAILURES,
    failure=st.sampled_from([Failure.AGENT_ERROR, Failure.CRASH]),
    attempts=st.integers(0, 5),
)
def test_an_instant_failure_that_is_identical_is_fatal_and_any_other_is_not(
    anyhow: Failed, failure: Failure, attempts: int
) -> None:
    failed = replace(anyhow, failure=failure)
    plenty = replace(fresh(99), attempts=attempts)
    again = after_failure(plenty, failed, Policy(), now=rows.AT)
    assert isinstance(again, Again)
    second = after_failure(carried_on(plenty, failed, again), failed, Policy(), now=rows.AT)
    assert isinstance(second, GiveUp) == failed.instant


@LAW
@given(failed=FAILURES, chance=CHANCES, task=st.integers(1, 4).map(fresh))
def test_the_same_failure_of_the_same_task_always_leads_to_the_same(
    failed: Failed, chance: float, task: Task
) -> None:
    first = after_failure(task, failed, Policy(), now=rows.AT, chance=chance)
    assert first == after_failure(task, failed, Policy(), now=rows.AT, chance=chance)


@LAW
@given(
    failures=st.integers(0, 1001),
    first_s=st.floats(0.1, 10),
    limit_s=st.floats(10, 3600),
    chance=st.floats(0, 1),
)
def test_a_pause_is_bounded_and_grows_with_each_failure(
    failures: int, first_s: float, limit_s: float, chance: float
) -> None:
    def pause(n: int) -> float:
        return backoff(n, first_s=first_s, limit_s=limit_s, chance=chance).total_seconds()

    assert first_s * 0.79 <= pause(failures) <= limit_s * 1.21
    assert pause(failures) <= pause(failures + 1)


@LAW
@given(retry_at=st.datetimes(datetime(2031, 6, 1), datetime(2032, 1, 1)))  # noqa: DTZ001
def test_a_service_that_names_a_time_is_never_asked_before(retry_at: datetime) -> None:
    named = retry_at.replace(tzinfo=rows.AT.tzinfo)
    failed = Failed(failure=Failure.USAGE_LIMIT, detail="", retry_at=named)
    after = after_failure(fresh(3), failed, Policy(), now=rows.AT)
    assert isinstance(after, Again)
    assert after.at == named


@LAW
@given(failures=st.integers(0, 1000), limit_s=st.floats(0.1, LONGEST_S), chance=CHANCES)
def test_no_pause_of_ours_is_taken_for_a_time_that_a_service_named(
    failures: int, limit_s: float, chance: float
) -> None:
    assert backoff(failures, first_s=5.0, limit_s=limit_s, chance=chance) <= LONGEST_PAUSE
