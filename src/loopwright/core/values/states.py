"""The state machines as data: code, tests and docs read the same tables.

Every state has a row. A state with an empty row is terminal for the machine; what only a person may
undo is in the table too, because the table says what is possible and policy says who may do it.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeVar

from loopwright.core.values.errors import IllegalTransition
from loopwright.core.values.round_states import CONTROLLER, ROUND, UPDATE


class LoopState(StrEnum):
    """Where a loop stands."""

    IDLE = "IDLE"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


class PlanState(StrEnum):
    """Where a plan stands."""

    DRAFT = "DRAFT"
    DISPATCHING = "DISPATCHING"
    RUNNING = "RUNNING"
    VERIFYING = "VERIFYING"
    VERIFIED = "VERIFIED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class TaskState(StrEnum):
    """Where a task stands."""

    CREATED = "CREATED"
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    AWAITING_RESPONSE = "AWAITING_RESPONSE"
    WAITING_CHILDREN = "WAITING_CHILDREN"
    COMPLETE = "COMPLETE"
    ERROR = "ERROR"
    CANCELLED = "CANCELLED"


class AttemptState(StrEnum):
    """Where an attempt stands."""

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
    """Where a run stands."""

    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    AWAITING_RESPONSE = "AWAITING_RESPONSE"
    COMPLETE = "COMPLETE"
    ERROR = "ERROR"
    CANCELLED = "CANCELLED"


class QuestionState(StrEnum):
    """Where a question stands."""

    OPEN = "OPEN"
    ANSWERED = "ANSWERED"
    EXPIRED = "EXPIRED"
    WITHDRAWN = "WITHDRAWN"


class DiscoveryState(StrEnum):
    """What becomes of work that was found."""

    OPEN = "OPEN"
    ACCEPTED = "ACCEPTED"
    DISMISSED = "DISMISSED"


class ReviewState(StrEnum):
    """Where a review stands."""

    ASKED = "ASKED"
    CLEAR = "CLEAR"
    BLOCKING = "BLOCKING"
    UNCLEAR = "UNCLEAR"
    WITHDRAWN = "WITHDRAWN"


class HealingState(StrEnum):
    """What came of a step that was tried for a task that had failed for good."""

    TRYING = "TRYING"
    HEALED = "HEALED"
    FAILED = "FAILED"
    WITHDRAWN = "WITHDRAWN"


class LessonState(StrEnum):
    """Whether agents are told a lesson."""

    PROPOSED = "PROPOSED"
    TRIED = "TRIED"
    KEPT = "KEPT"
    REMOVED = "REMOVED"


class EnvelopeState(StrEnum):
    """Whether runs may draw from an account."""

    OPEN = "OPEN"
    CLOSED = "CLOSED"


class FinishState(StrEnum):
    """Where the end of a plan stands: what becomes of its branch."""

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
        # A person, or new work in the source, starts an ended loop again.
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
        # Back to RUNNING when the verification itself broke, or was stopped, before a verdict.
        _P.VERIFYING: {_P.VERIFIED, _P.FAILED, _P.RUNNING, _P.CANCELLED},
        # Only by a person's rollback of a task.
        _P.VERIFIED: {_P.RUNNING},
        # Only by a person: verify again, or retry a task.
        _P.FAILED: {_P.VERIFYING, _P.RUNNING, _P.CANCELLED},
        _P.CANCELLED: set(),
    }
)

TASK: Final[Table[TaskState]] = _table(
    {
        # To COMPLETE only by a person who ticked it off in the source.
        _T.CREATED: {_T.QUEUED, _T.ERROR, _T.CANCELLED, _T.COMPLETE},
        # To AWAITING_RESPONSE for a manual step, which Loopwright asks you to do.
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
        # Only by a person: retry, or an answer.
        _T.ERROR: {_T.AWAITING_RESPONSE, _T.QUEUED, _T.COMPLETE, _T.CANCELLED},
        _T.CANCELLED: {_T.AWAITING_RESPONSE, _T.QUEUED},
        # Only by a person's rollback.
        _T.COMPLETE: {_T.QUEUED},
    }
)

_UNFINISHED = {_A.REJECTED, _A.BROKEN, _A.CANCELLED}

ATTEMPT: Final[Table[AttemptState]] = _table(
    {
        _A.QUEUED: {_A.PREPARING} | _UNFINISHED,
        # To WAITING when what it draws from closed, or nothing was left for it, before its agent started.
        _A.PREPARING: {_A.WORKING, _A.WAITING} | _UNFINISHED,
        _A.WORKING: {_A.WAITING, _A.CHECKING} | _UNFINISHED,
        # To PREPARING while no agent has begun: it starts from what has landed by then.
        # To CHECKING after a person decided about contradicted checks.
        _A.WAITING: {_A.PREPARING, _A.WORKING, _A.CHECKING} | _UNFINISHED,
        # To WORKING while a reviewer looks at it, for a fix turn on what that found, and for the turn about
        # contradicted checks; to WAITING while a person decides about these.
        _A.CHECKING: {_A.LANDING, _A.WORKING, _A.WAITING} | _UNFINISHED,
        # Back to CHECKING when the plan branch moved under the candidate.
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
        # Expired when its deadline passed without an answer; withdrawn when it is no longer needed.
        _Q.OPEN: {_Q.ANSWERED, _Q.EXPIRED, _Q.WITHDRAWN},
        _Q.ANSWERED: set(),
        _Q.EXPIRED: set(),
        _Q.WITHDRAWN: set(),
    }
)

DISCOVERY: Final[Table[DiscoveryState]] = _table(
    {
        _D.OPEN: {_D.ACCEPTED, _D.DISMISSED},
        # You can reverse a dismissal; accepted work is a task or a plan by now.
        _D.DISMISSED: {_D.ACCEPTED},
        _D.ACCEPTED: set(),
    }
)

REVIEW: Final[Table[ReviewState]] = _table(
    {
        # Unclear without a decision that counts; withdrawn when its attempt ended before there was one.
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
        # Healed only when the task verifies; withdrawn when a person decides about the task in the meantime.
        HealingState.TRYING: {HealingState.HEALED, HealingState.FAILED, HealingState.WITHDRAWN},
        HealingState.HEALED: set(),
        HealingState.FAILED: set(),
        HealingState.WITHDRAWN: set(),
    }
)

LESSON: Final[Table[LessonState]] = _table(
    {
        # A person approves it; from then on its own measurement decides, or a person.
        LessonState.PROPOSED: {LessonState.TRIED, LessonState.REMOVED},
        LessonState.TRIED: {LessonState.KEPT, LessonState.REMOVED},
        LessonState.KEPT: {LessonState.REMOVED},
        LessonState.REMOVED: set(),
    }
)

ENVELOPE: Final[Table[EnvelopeState]] = _table(
    {
        EnvelopeState.OPEN: {EnvelopeState.CLOSED},
        # By a probe that the service answered, or by a person.
        EnvelopeState.CLOSED: {EnvelopeState.OPEN},
    }
)

FINISH: Final[Table[FinishState]] = _table(
    {
        FinishState.CHECKING: {FinishState.LANDING, FinishState.FINISHED, FinishState.REFUSED},
        # Back to CHECKING when the branch that it goes to moved in the meantime.
        FinishState.LANDING: {FinishState.CHECKING, FinishState.FINISHED, FinishState.REFUSED},
        FinishState.FINISHED: set(),
        # Nothing was moved; a person's `accept` begins another one.
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
"""States of a run that has had its process: one that waits for an answer has cost what it cost, and says no more."""


def drawn(state: StrEnum) -> str:
    """Return the name of a state in a diagram, where a hyphen would end it."""
    return state.value.replace("-", "_")


def step(machine: str, table: Table[S], subject: str, source: S, target: S) -> S:
    """Return `target`, or raise when the table has no such edge."""
    if target not in table[source]:
        raise IllegalTransition(machine, subject, source.value, target.value)
    return target
