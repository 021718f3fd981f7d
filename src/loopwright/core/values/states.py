"""The state machines as data: code, tests and docs use the same tables.

Every state has a row. A state with an empty row is final. Transitions that only the user may make are in the
table too: it says what is possible, and policy says who may do it.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeVar

from loopwright.core.values.errors import IllegalTransition
from loopwright.core.values.round_states import CONTROLLER, ROUND, UPDATE


class LoopState(StrEnum):
    """The state of a loop."""

    IDLE = "IDLE"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


class PlanState(StrEnum):
    """The state of a plan."""

    DRAFT = "DRAFT"
    DISPATCHING = "DISPATCHING"
    RUNNING = "RUNNING"
    VERIFYING = "VERIFYING"
    VERIFIED = "VERIFIED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class TaskState(StrEnum):
    """The state of a task."""

    CREATED = "CREATED"
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    AWAITING_RESPONSE = "AWAITING_RESPONSE"
    WAITING_CHILDREN = "WAITING_CHILDREN"
    COMPLETE = "COMPLETE"
    ERROR = "ERROR"
    CANCELLED = "CANCELLED"


class AttemptState(StrEnum):
    """The state of an attempt."""

    QUEUED = "QUEUED"
    PREPARING = "PREPARING"
    WORKING = "WORKING"
    WAITING = "WAITING"
    CHECKING = "CHECKING"
    LANDING = "LANDING"
    LANDED = "LANDED"
    REJECTED = "REJECTED"
    BROKEN = "BROKEN"
    CANCELLED = "CANCELLED"


class RunState(StrEnum):
    """The state of a run."""

    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    AWAITING_RESPONSE = "AWAITING_RESPONSE"
    COMPLETE = "COMPLETE"
    ERROR = "ERROR"
    CANCELLED = "CANCELLED"


class QuestionState(StrEnum):
    """The state of a question."""

    OPEN = "OPEN"
    ANSWERED = "ANSWERED"
    EXPIRED = "EXPIRED"
    WITHDRAWN = "WITHDRAWN"


class DiscoveryState(StrEnum):
    """The state of discovered work."""

    OPEN = "OPEN"
    ACCEPTED = "ACCEPTED"
    DISMISSED = "DISMISSED"


class ReviewState(StrEnum):
    """The state of a review."""

    ASKED = "ASKED"
    CLEAR = "CLEAR"
    BLOCKING = "BLOCKING"
    UNCLEAR = "UNCLEAR"
    WITHDRAWN = "WITHDRAWN"


class HoldState(StrEnum):
    """Whether a loop has the files or the lock that it asked for."""

    WAITING = "WAITING"
    HELD = "HELD"
    REFUSED = "REFUSED"


class ActionState(StrEnum):
    """What became of an agent's action."""

    BEGUN = "BEGUN"
    DONE = "DONE"
    REFUSED = "REFUSED"
    UNDONE = "UNDONE"


class HealingState(StrEnum):
    """The result of a step that was tried for a task that failed for good."""

    TRYING = "TRYING"
    HEALED = "HEALED"
    FAILED = "FAILED"
    WITHDRAWN = "WITHDRAWN"


class LessonState(StrEnum):
    """Whether agents get a lesson."""

    PROPOSED = "PROPOSED"
    TRIED = "TRIED"
    KEPT = "KEPT"
    REMOVED = "REMOVED"


class EnvelopeState(StrEnum):
    """Whether runs may draw from an account."""

    OPEN = "OPEN"
    CLOSED = "CLOSED"


class FinishState(StrEnum):
    """The state of a finish: what happens to the plan's branch."""

    CHECKING = "CHECKING"
    LANDING = "LANDING"
    FINISHED = "FINISHED"
    REFUSED = "REFUSED"


S = TypeVar("S", bound=StrEnum)
Table = Mapping[S, frozenset[S]]


def _table(rows: dict[S, set[S]]) -> Table[S]:
    return MappingProxyType({state: frozenset(targets) for state, targets in rows.items()})


_L, _P, _T, _A, _R, _Q = LoopState, PlanState, TaskState, AttemptState, RunState, QuestionState
_D = DiscoveryState

LOOP: Final[Table[LoopState]] = _table(
    {
        _L.IDLE: {_L.RUNNING, _L.STOPPED},
        _L.RUNNING: {_L.PAUSED, _L.STOPPED, _L.COMPLETED, _L.FAILED},
        _L.PAUSED: {_L.RUNNING, _L.STOPPED},
        # The user, or new work in the source, starts an ended loop again.
        _L.STOPPED: {_L.RUNNING},
        _L.COMPLETED: {_L.RUNNING},
        _L.FAILED: {_L.RUNNING},
    }
)

PLAN: Final[Table[PlanState]] = _table(
    {
        _P.DRAFT: {_P.DISPATCHING, _P.FAILED, _P.CANCELLED},
        _P.DISPATCHING: {_P.RUNNING, _P.FAILED, _P.CANCELLED},
        _P.RUNNING: {_P.VERIFYING, _P.FAILED, _P.CANCELLED},
        # Back to RUNNING if the verification itself broke, or was stopped, before a verdict.
        _P.VERIFYING: {_P.VERIFIED, _P.FAILED, _P.RUNNING, _P.CANCELLED},
        # Only by the user's rollback of a task.
        _P.VERIFIED: {_P.RUNNING},
        # Only by the user: verify again, or retry a task.
        _P.FAILED: {_P.VERIFYING, _P.RUNNING, _P.CANCELLED},
        _P.CANCELLED: set(),
    }
)

TASK: Final[Table[TaskState]] = _table(
    {
        # To COMPLETE only if the user ticked it off in the source.
        _T.CREATED: {_T.QUEUED, _T.ERROR, _T.CANCELLED, _T.COMPLETE},
        # To AWAITING_RESPONSE for a manual step, which Loopwright asks the user to do.
        _T.QUEUED: {_T.RUNNING, _T.ERROR, _T.CANCELLED, _T.COMPLETE, _T.AWAITING_RESPONSE},
        _T.RUNNING: {
            _T.COMPLETE,
            _T.ERROR,
            _T.CANCELLED,
            _T.AWAITING_RESPONSE,
            _T.WAITING_CHILDREN,
            # The attempt ended without landing and another one is due.
            _T.QUEUED,
        },
        _T.AWAITING_RESPONSE: {_T.QUEUED, _T.RUNNING, _T.CANCELLED, _T.ERROR, _T.COMPLETE},
        _T.WAITING_CHILDREN: {_T.COMPLETE, _T.ERROR, _T.AWAITING_RESPONSE, _T.CANCELLED},
        # Only by the user: retry, or an answer.
        _T.ERROR: {_T.AWAITING_RESPONSE, _T.QUEUED, _T.COMPLETE, _T.CANCELLED},
        _T.CANCELLED: {_T.AWAITING_RESPONSE, _T.QUEUED},
        # Only by the user's rollback.
        _T.COMPLETE: {_T.QUEUED},
    }
)

_UNFINISHED = {_A.REJECTED, _A.BROKEN, _A.CANCELLED}

ATTEMPT: Final[Table[AttemptState]] = _table(
    {
        _A.QUEUED: {_A.PREPARING} | _UNFINISHED,
        # To WAITING if its account closed, or no budget was left, before its agent started.
        _A.PREPARING: {_A.WORKING, _A.WAITING} | _UNFINISHED,
        _A.WORKING: {_A.WAITING, _A.CHECKING} | _UNFINISHED,
        # To PREPARING while no agent has begun: it then starts from the current plan branch.
        # To CHECKING after the user decided about contradicted checks.
        _A.WAITING: {_A.PREPARING, _A.WORKING, _A.CHECKING} | _UNFINISHED,
        # To WORKING while a reviewer reads it, for a fix turn about the findings, and for the turn about contradicted
        # checks; to WAITING while the user decides about these.
        _A.CHECKING: {_A.LANDING, _A.WORKING, _A.WAITING} | _UNFINISHED,
        # Back to CHECKING if the plan branch moved since the candidate was built.
        _A.LANDING: {_A.LANDED, _A.CHECKING} | _UNFINISHED,
        _A.LANDED: set(),
        _A.REJECTED: set(),
        _A.BROKEN: set(),
        _A.CANCELLED: set(),
    }
)

RUN: Final[Table[RunState]] = _table(
    {
        _R.QUEUED: {_R.RUNNING, _R.ERROR, _R.CANCELLED},
        _R.RUNNING: {_R.COMPLETE, _R.ERROR, _R.CANCELLED, _R.AWAITING_RESPONSE},
        _R.AWAITING_RESPONSE: {_R.RUNNING, _R.COMPLETE, _R.ERROR, _R.CANCELLED},
        _R.COMPLETE: set(),
        _R.ERROR: set(),
        _R.CANCELLED: set(),
    }
)

QUESTION: Final[Table[QuestionState]] = _table(
    {
        # Expired if its deadline passed without an answer; withdrawn if it is no longer needed.
        _Q.OPEN: {_Q.ANSWERED, _Q.EXPIRED, _Q.WITHDRAWN},
        _Q.ANSWERED: set(),
        _Q.EXPIRED: set(),
        _Q.WITHDRAWN: set(),
    }
)

DISCOVERY: Final[Table[DiscoveryState]] = _table(
    {
        _D.OPEN: {_D.ACCEPTED, _D.DISMISSED},
        # The user can reverse a dismissal; accepted work is a task or a plan by now.
        _D.DISMISSED: {_D.ACCEPTED},
        _D.ACCEPTED: set(),
    }
)

REVIEW: Final[Table[ReviewState]] = _table(
    {
        # Unclear without a decision that counts; withdrawn if its attempt ended before there was one.
        ReviewState.ASKED: {
            ReviewState.CLEAR,
            ReviewState.BLOCKING,
            ReviewState.UNCLEAR,
            ReviewState.WITHDRAWN,
        },
        ReviewState.CLEAR: set(),
        ReviewState.BLOCKING: set(),
        ReviewState.UNCLEAR: set(),
        ReviewState.WITHDRAWN: set(),
    }
)

HEALING: Final[Table[HealingState]] = _table(
    {
        # Healed only if the task verifies; withdrawn if the user decides about the task first.
        HealingState.TRYING: {HealingState.HEALED, HealingState.FAILED, HealingState.WITHDRAWN},
        HealingState.HEALED: set(),
        HealingState.FAILED: set(),
        HealingState.WITHDRAWN: set(),
    }
)

HOLD: Final[Table[HoldState]] = _table(
    {
        # Refused when loops wait for each other; the row is deleted when its plan ends.
        HoldState.WAITING: {HoldState.HELD, HoldState.REFUSED},
        HoldState.HELD: set(),
        HoldState.REFUSED: set(),
    }
)

ACTION: Final[Table[ActionState]] = _table(
    {
        # An action whose end was never recorded stays BEGUN: a daemon that ends leaves what it did to the user.
        ActionState.BEGUN: {ActionState.DONE, ActionState.REFUSED},
        ActionState.DONE: {ActionState.UNDONE},
        ActionState.REFUSED: set(),
        ActionState.UNDONE: set(),
    }
)

LESSON: Final[Table[LessonState]] = _table(
    {
        # The user approves it; from then on its measurement decides, or the user.
        LessonState.PROPOSED: {LessonState.TRIED, LessonState.REMOVED},
        LessonState.TRIED: {LessonState.KEPT, LessonState.REMOVED},
        LessonState.KEPT: {LessonState.REMOVED},
        LessonState.REMOVED: set(),
    }
)

ENVELOPE: Final[Table[EnvelopeState]] = _table(
    {
        EnvelopeState.OPEN: {EnvelopeState.CLOSED},
        # By a probe that the service accepted, or by the user.
        EnvelopeState.CLOSED: {EnvelopeState.OPEN},
    }
)

FINISH: Final[Table[FinishState]] = _table(
    {
        FinishState.CHECKING: {FinishState.LANDING, FinishState.FINISHED, FinishState.REFUSED},
        # Back to CHECKING if the target branch moved.
        FinishState.LANDING: {FinishState.CHECKING, FinishState.FINISHED, FinishState.REFUSED},
        FinishState.FINISHED: set(),
        # Nothing was moved; the user's `accept` begins another one.
        FinishState.REFUSED: set(),
    }
)

MACHINES: Final[Mapping[str, Mapping[StrEnum, frozenset[StrEnum]]]] = MappingProxyType(
    {
        "loop": LOOP,  # type: ignore[dict-item]
        "plan": PLAN,  # type: ignore[dict-item]
        "task": TASK,  # type: ignore[dict-item]
        "attempt": ATTEMPT,  # type: ignore[dict-item]
        "run": RUN,  # type: ignore[dict-item]
        "question": QUESTION,  # type: ignore[dict-item]
        "discovery": DISCOVERY,  # type: ignore[dict-item]
        "envelope": ENVELOPE,  # type: ignore[dict-item]
        "review": REVIEW,  # type: ignore[dict-item]
        "healing": HEALING,  # type: ignore[dict-item]
        "hold": HOLD,  # type: ignore[dict-item]
        "action": ACTION,  # type: ignore[dict-item]
        "lesson": LESSON,  # type: ignore[dict-item]
        "finish": FINISH,  # type: ignore[dict-item]
        "controller": CONTROLLER,  # type: ignore[dict-item]
        "round": ROUND,  # type: ignore[dict-item]
        "update": UPDATE,  # type: ignore[dict-item]
    }
)

LIVE_ATTEMPT: Final = frozenset(state for state, targets in ATTEMPT.items() if targets)
SETTLED_TASK: Final = frozenset({_T.COMPLETE, _T.ERROR, _T.CANCELLED})
ENDED_PLAN: Final = frozenset({_P.VERIFIED, _P.FAILED, _P.CANCELLED})
OPEN_FINISH: Final = frozenset(state for state, targets in FINISH.items() if targets)
ENDED_RUN: Final = frozenset(state for state, targets in RUN.items() if not targets)
PROCESS_OVER: Final = ENDED_RUN | {_R.AWAITING_RESPONSE}
"""States of a run whose process has ended: a run that waits for an answer has its final cost and output."""


def drawn(state: StrEnum) -> str:
    """Return the name of a state in a diagram, in which a hyphen is not allowed."""
    return state.value.replace("-", "_")


def step(machine: str, table: Table[S], subject: str, source: S, target: S) -> S:
    """Return `target`, or raise if the table has no such transition."""
    if target not in table[source]:
        raise IllegalTransition(machine, subject, source.value, target.value)
    return target
