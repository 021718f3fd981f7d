"""One word for how a plan stands: made of its status, its outcome and its loop's state, the same for every reader."""

from typing import Final

from loopwright.core.failures import Failure
from loopwright.core.model import Task
from loopwright.core.states import TaskState
from loopwright.engine.held import is_held

_RESTING: Final = ("PAUSED", "STOPPED")


def word_of(status: str, outcome: str | None, loop_state: str) -> str:
    """Return the word for a plan: what it ended as, else what its loop waits for, else its status."""
    if status == "VERIFIED":
        return "VERIFIED" if outcome == "verified" else "VERIFIED_WITH_GAPS"
    if status in ("FAILED", "CANCELLED"):
        return status if outcome != "unverified" else "UNVERIFIED"
    if loop_state == "FAILED":
        return "NEEDS_YOU"
    return loop_state if loop_state in _RESTING else status


def is_blocked(task: Task) -> bool:
    """Say whether a task failed at nothing: a person has it, its source calls it blocked, or nobody answered it."""
    if task.status is not TaskState.ERROR:
        return False
    return task.failure is Failure.UNANSWERED or (task.failure is None and is_held(task.reason))
