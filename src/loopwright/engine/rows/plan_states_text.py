"""The words for how a plan stands: made here from its rows, the same for every reader and every message."""

from typing import Final, Literal

from loopwright.core.policy.finishing import PULL_REQUEST
from loopwright.core.rows.model import Finish, Loop, Plan, Task
from loopwright.core.values.failures import Failure
from loopwright.core.values.states import ENDED_PLAN, FinishState, LoopState, PlanState, TaskState
from loopwright.engine.rows.blocked_reasons import is_held
from loopwright.ports import Tx

NO_WORKER: Final = "NO_WORKER"
"""The word for a plan that would go on if a worker were there."""
_RESTING: Final = ("PAUSED", "STOPPED")
_GOING: Final = frozenset(state.value for state in PlanState if state not in ENDED_PLAN)


def word_of(status: str, outcome: str | None, loop_state: str) -> str:
    """Return the word for a plan: what it ended as, else what its loop waits for, else its status."""
    if status == "VERIFIED":
        return "VERIFIED" if outcome == "verified" else "VERIFIED_WITH_GAPS"
    if status in ("FAILED", "CANCELLED"):
        return status if outcome != "unverified" else "UNVERIFIED"
    if loop_state == "FAILED":
        return "NEEDS_YOU"
    return loop_state if loop_state in _RESTING else status


def attended(word: str, *, worked: bool) -> str:
    """Return the word for a plan as it is seen together with its workers: without one, nothing is running."""
    return NO_WORKER if word in _GOING and not worked else word


def plan_word(tx: Tx, plan: Plan) -> str:
    """Return the word for a plan, for a sentence about it."""
    loop = tx.get(Loop, plan.loop_id)
    return word_of(plan.status, plan.outcome, driven_by(loop, plan)).replace("_", " ")


def driven_by(loop: Loop | None, plan: Plan) -> LoopState | Literal[""]:
    """Return the state of the loop that drives a plan; empty when its loop drives another one by now."""
    return loop.state if loop is not None and loop.plan_id == plan.id else ""


def taken_by(tx: Tx, plan_id: str) -> str:
    """Say where a plan's work went as a whole: accepted into its base branch, or a pull request; else empty."""
    ends = tx.find(Finish, plan_id=plan_id, state=FinishState.FINISHED, order_by=("created_at",))
    whole = [one for one in ends if not one.tasks]
    if not whole:
        return ""
    return "pull request" if whole[-1].how == PULL_REQUEST else "accepted"


def is_blocked(task: Task) -> bool:
    """Say whether a task failed at nothing: a person has it, its source calls it blocked, or nobody answered it."""
    if task.status is not TaskState.ERROR:
        return False
    return task.failure is Failure.UNANSWERED or (task.failure is None and is_held(task.reason))
