"""What follows from a failed attempt.

Each level has its own counter, so that they do not use up each other.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from loopwright.core.rows.model import Task
from loopwright.core.values.failures import RULES, Failure, Level, Rule
from loopwright.core.values.policy import Policy

INSTANT: Final = timedelta(seconds=5)
"""A run that fails faster than this did no work: the same failure again would only waste money."""

LONGEST_S: Final = 300.0
"""The longest pause that a rule sets for a single attempt; a closed account may take longer."""
LONGEST_PAUSE: Final = timedelta(seconds=1.2 * LONGEST_S)
"""No retry pause is longer, except one until a time that a service names."""

MOST_RACES: Final = 10
"""How often a task may lose to work that landed before it.

This is rare, but each time costs a run. The user should order tasks that lose so often.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """What is known about the attempt that did not land."""

    failure: Failure
    detail: str
    lasted: timedelta | None = None
    """How long the agent's process lived; None if there was none."""
    retry_at: datetime | None = None
    """When the service allows another request."""
    limited_model: str = ""
    """The only model that an account's limit applies to; empty if it applies to the account."""
    lasting: bool = False
    """Whether another try would fail in the same way: nothing changes until the user acts."""

    @property
    def mark(self) -> str:
        """Identify this failure, to recognise an identical one."""
        return f"{self.failure.value}: {self.detail[:500]}"

    @property
    def instant(self) -> bool:
        """Return whether the run ended too soon to have done anything."""
        return self.lasted is not None and self.lasted < INSTANT


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Try once more, from a clean base."""

    at: datetime
    attempts: int
    call_failures: int
    races: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp:
    """Stop trying by machine; the user can still retry."""

    reason: str
    attempts: int
    call_failures: int
    races: int = 0


After = Again | GiveUp


def backoff(failures: int, *, first_s: float = 1.0, limit_s: float = 60.0, chance: float = 0.5) -> timedelta:
    """Return the pause before the next call: doubled, bounded, and changed at random by up to a fifth."""
    seconds = min(limit_s, first_s * 2.0 ** max(0, failures - 1))
    return timedelta(seconds=seconds * (0.8 + 0.4 * chance))


def pause_until(
    rule: Rule, times: int, *, now: datetime, retry_at: datetime | None = None, chance: float = 0.5
) -> datetime:
    """Return when to try again after this many failures in a row: at the service's time, or after our own pause."""
    ours = now + backoff(times, first_s=rule.first_s, limit_s=rule.longest_s, chance=chance)
    # Ignore a time in the past: it would start runs without end.
    if not rule.honours or retry_at is None or retry_at <= now:
        return ours
    # A closed account opens at that time. A rate limit names the earliest time, perhaps in a second.
    return retry_at if rule.closes else max(retry_at, ours)


def after_failure(task: Task, failed: Failed, policy: Policy, *, now: datetime, chance: float = 0.5) -> After:
    """Decide what follows; `chance` in [0, 1) varies the pauses of many tasks."""
    rule = RULES[failed.failure]
    attempts = task.attempts + (rule.level is Level.ATTEMPT and not failed.lasting)
    calls, races = task.call_failures, task.races + (rule.level is Level.RACE)

    def give_up(reason: str) -> GiveUp:
        return GiveUp(reason=reason, attempts=attempts, call_failures=calls, races=races)

    if failed.lasting:
        return give_up(rule.advice)
    calls = calls + 1 if rule.level is Level.CALL else 0
    if rule.level is Level.NONE:
        return give_up(rule.advice)
    if failed.instant and failed.mark == task.failure_mark and rule.hopeless:
        return give_up("It failed at once, twice in exactly the same way; trying again would not help.")
    at = now
    if rule.level is Level.CALL:
        if calls > policy.max_call_retries:
            return give_up(f"{rule.advice} Tried {calls} times in a row.")
        at = pause_until(rule, calls, now=now, retry_at=failed.retry_at, chance=chance)
    elif rule.level is Level.RACE and races >= MOST_RACES:
        return give_up(f"{rule.advice} That was the {races}th time.")
    elif attempts >= task.max_attempts:
        return give_up(f"{rule.advice} {attempts} of {task.max_attempts} attempts failed.")
    return Again(at=at, attempts=attempts, call_failures=calls, races=races)
