"""The loop over one prompt: what follows a round.

Pure, like all policy. A round is an attempt. If it is not green, the next attempt at the same task continues
it. If it landed, a new task follows, because a task lands once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from loopwright.core.policy.rejections import REJECTED
from loopwright.core.policy.retry import After, Again, Failed, GiveUp
from loopwright.core.rows.model import Attempt, Plan, Task
from loopwright.core.values.failures import RULES, Failure, Level
from loopwright.core.values.states import AttemptState

ROUND: Final = "round"
"""The origin of a task that is a further round of the prompt."""

_ANEW: Final = frozenset({Failure.CONFLICT, Failure.TOGETHER})
"""The next round needs what the branch has now, not what the round before left."""


class Stop(StrEnum):
    """What stopped a loop."""

    GREEN = "green"
    SETTLED = "settled"
    UNCHANGED = "unchanged"
    ROUNDS = "rounds"
    TIME = "time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Last:
    """The newest round that ended finally: it landed, or found nothing left to do."""

    at: datetime
    left: int
    """How many more rounds are allowed."""
    green: bool
    """Whether its checks passed without an excused earlier failure."""
    settled: bool
    """Whether nothing had to be changed any more."""
    has_goal: bool
    """Whether the prompt names commands that say when it is done."""


def loops(plan: Plan, task: Task) -> bool:
    """Return whether a task is a round of a loop, and not a task that was added to it."""
    return plan.policy.rounds.on and task.origin in ("", ROUND)


def tries(plan: Plan, task: Task) -> int:
    """Return how many attempts a task has at first: the rounds of a loop, or the setting."""
    return plan.policy.rounds.max if loops(plan, task) else plan.policy.max_attempts


def deadline(plan: Plan) -> datetime | None:
    """Return when the time of a loop ends."""
    seconds = plan.policy.rounds.stop_after
    if not plan.policy.rounds.on or seconds is None or plan.executed_at is None:
        return None
    return plan.executed_at + timedelta(seconds=seconds)


def is_late(plan: Plan, at: datetime, *, asked: datetime | None = None) -> bool:
    """Return whether it is too late for another round; the user may still request one."""
    end = deadline(plan)
    return end is not None and at >= end and (asked is None or asked < end)


def unchanged(attempts: Sequence[Attempt], last: Attempt) -> int:
    """Return how many of the newest rounds in a row changed nothing; failures of the machine are ignored."""
    if last.touched:
        return 0
    found = 1
    for one in sorted((one for one in attempts if one.n < last.n), key=lambda one: -one.n):
        if one.state is AttemptState.REJECTED and not one.touched:
            found += 1
        elif one.state is not AttemptState.BROKEN or one.touched:
            break
    return found


def carried(task: Task, attempts: Sequence[Attempt], current: Attempt) -> str | None:
    """Return the work that a round starts from; None if it starts from the branch."""
    earlier = [one for one in attempts if one.n < current.n and one.tip_sha is not None]
    before = max(earlier, key=lambda one: one.n, default=None)
    if before is None or before.state is AttemptState.LANDED or _begins_anew(task, current):
        return None
    return before.tip_sha


def is_carried_on(plan: Plan, task: Task, attempt: Attempt) -> bool:
    """Return whether an agent finds the work of earlier rounds."""
    return loops(plan, task) and attempt.n > 1 and not _begins_anew(task, attempt)


def _begins_anew(task: Task, attempt: Attempt) -> bool:
    """Return whether the next round must not start from the last one's work: others landed, or the user rejected it."""
    return task.failure in _ANEW or attempt.evidence.startswith(REJECTED)


def after_red(
    after: After, task: Task, failed: Failed, plan: Plan, *, same: int, now: datetime
) -> tuple[After, Stop | None]:
    """Return what follows a round that did not land, by the rules of the loop, and what stopped it if it did.

    `after` is what follows by the rules of every attempt, `same` how many rounds in a row changed nothing.
    """
    rounds = plan.policy.rounds
    judged = RULES[failed.failure].level is Level.ATTEMPT

    def stop(why: Stop) -> tuple[After, Stop]:
        told = words(why, plan, used=after.attempts)
        return GiveUp(
            reason=told, attempts=after.attempts, call_failures=after.call_failures, races=after.races
        ), why

    if judged and same >= rounds.unchanged:
        return stop(Stop.UNCHANGED)
    if judged and after.attempts >= task.max_attempts:
        return stop(Stop.ROUNDS)
    if isinstance(after, GiveUp):
        return after, None
    at = now + timedelta(seconds=rounds.sleep) if judged else after.at
    if is_late(plan, at):
        return stop(Stop.TIME)
    following = Again(at=at, attempts=after.attempts, call_failures=after.call_failures, races=after.races)
    return following, None


def following(plan: Plan, last: Last) -> datetime | Stop:
    """Return when the next round begins after one that ended finally, or what stops the loop."""
    rounds = plan.policy.rounds
    if last.settled:
        return Stop.SETTLED
    green_is_enough = rounds.until == "green" or (rounds.until == "auto" and last.has_goal)
    if last.green and green_is_enough:
        return Stop.GREEN
    if last.left < 1:
        return Stop.ROUNDS
    at = last.at + timedelta(seconds=rounds.sleep)
    return Stop.TIME if is_late(plan, at) else at


def words(stop: Stop, plan: Plan, *, used: int = 0, green: bool = False) -> str:
    """Return what stopped a loop; `used` is how many rounds in a row were not green at its end.

    `green` is whether the checks of its last round passed without an excused earlier failure.
    """
    rounds = plan.policy.rounds
    last = "round" if rounds.unchanged == 1 else f"{rounds.unchanged} rounds"
    end = f", the last {used} of them not green" if used else ", and the gate is green" if green else ""
    there = "There was nothing more to change"
    return {
        Stop.GREEN: "The gate is green.",
        Stop.SETTLED: "The gate is green, and there was nothing more to change." if green else f"{there}.",
        Stop.UNCHANGED: f"Nothing changed in the last {last} (rounds.unchanged).",
        Stop.ROUNDS: f"All rounds are used up (rounds.max is {rounds.max}){end}.",
        Stop.TIME: f"Its time has ended (rounds.stop_after is {rounds.stop_after or 0:g} s).",
    }[stop]
