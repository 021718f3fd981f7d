"""The words for the state of a plan, from its rows: the same for every reader and every message."""

import re
from typing import Final, Literal

from loopwright.core.policy.finishing import PULL_REQUEST
from loopwright.core.rows.model import Finish, Loop, Plan, Task
from loopwright.core.values.failures import POINTERS, Failure
from loopwright.core.values.states import ENDED_PLAN, FinishState, LoopState, PlanState, TaskState
from loopwright.ports import Tx

NO_WORKER: Final = "NO_WORKER"
"""The word for a plan that would continue if it had a worker."""
_RESTING: Final = ("PAUSED", "STOPPED")
_GOING: Final = frozenset(state.value for state in PlanState if state not in ENDED_PLAN)


def word_of(status: str, outcome: str | None, loop_state: str) -> str:
    """Return the word for a plan: how it ended, else what its loop waits for, else its status."""
    if status == "VERIFIED":
        return "VERIFIED" if outcome == "verified" else "VERIFIED_WITH_GAPS"
    if status in ("FAILED", "CANCELLED"):
        return status if outcome != "unverified" else "UNVERIFIED"
    if loop_state == "FAILED":
        return "NEEDS_YOU"
    return loop_state if loop_state in _RESTING else status


def attended(word: str, *, worked: bool) -> str:
    """Return the word for a plan together with its workers: without one, nothing is running."""
    return NO_WORKER if word in _GOING and not worked else word


def plan_word(tx: Tx, plan: Plan) -> str:
    """Return the word for a plan, for a sentence about it."""
    loop = tx.get(Loop, plan.loop_id)
    return word_of(plan.status, plan.outcome, driven_by(loop, plan)).replace("_", " ")


def driven_by(loop: Loop | None, plan: Plan) -> LoopState | Literal[""]:
    """Return the state of the loop that drives a plan; empty if its loop drives another one by now."""
    return loop.state if loop is not None and loop.plan_id == plan.id else ""


def taken_by(tx: Tx, plan_id: str) -> str:
    """Return where a plan's whole work went: accepted into its base branch, or a pull request; else empty."""
    ends = tx.find(Finish, plan_id=plan_id, state=FinishState.FINISHED, order_by=("created_at",))
    whole = [one for one in ends if not one.tasks]
    if not whole:
        return ""
    return "pull request" if whole[-1].how == PULL_REQUEST else "accepted"


def is_blocked(task: Task) -> bool:
    """Return whether a task is blocked and did not fail: the user has it, its source blocks it, or it has no answer."""
    if task.status is not TaskState.ERROR:
        return False
    return task.failure is Failure.UNANSWERED or (task.failure is None and is_held(task.reason))


# The reason of a task that its source calls blocked: our words around those of the source.

_BEFORE: Final = "it is marked as blocked: "
_UNSAID: Final = "no reason is given"
UNDO: Final = "To undo it, once you have looked at it:"
"""The beginning of the commands that undo an agent's changes to a checkout: they only help on this machine."""
_PATH: Final = re.compile(
    r"(?<![\w./~-])/(?:Users|Volumes|home|media|mnt|nix|opt|private|root|srv|tmp|usr|var|workspaces?)"
    r"(?:/[^\s/'\"`,;:()\[\]<>]+)*/(?P<name>[^\s/'\"`,;:()\[\]<>]*)"
)
"""A path below a folder that is typical of machines; `/api/users` is not one."""


def held_because(reason: str) -> str:
    """Return the reason of such a task, for people."""
    return f"{_BEFORE}{reason or _UNSAID}"


def is_held(words: str) -> bool:
    """Return whether these are our words for a task that its source calls blocked."""
    return words.startswith(_BEFORE)


def source_reason(words: str) -> str:
    """Return the reason of a task for its source, which gets its own words back unchanged."""
    if words.startswith(_BEFORE):
        said = words.removeprefix(_BEFORE)
        return "" if said == _UNSAID else said
    for pointer in POINTERS:
        words = words.replace(pointer, "")
    return portable(words.partition(f"\n{UNDO}")[0])


def portable(words: str) -> str:
    """Return text for a file that is committed and read elsewhere: without paths of this machine."""
    return _PATH.sub(lambda found: f"…/{found['name']}" if found["name"] else "…", words)
