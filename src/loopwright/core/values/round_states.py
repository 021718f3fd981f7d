"""The state machines of an orchestrator folder as data: its controller, its rounds, and its roadmap update.

The states and transitions are those of the contract `orchestrator-v2`, in its spelling.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

FOLDER_KIND: Final = "orchestrator"
"""The kind of a loop over an orchestrator folder. In rounds it has no plan itself: its stages have."""
STAGE_KIND: Final = "round"
"""The kind of the loop of one stage."""


class ControllerStage(StrEnum):
    """What the controller does."""

    DISPATCH = "dispatch-rounds"
    UPDATE = "update-roadmap"
    DONE = "done"
    BLOCKED = "blocked"


class RoundStage(StrEnum):
    """The state of a round."""

    PLAN = "plan"
    IMPLEMENT = "implement"
    REVIEW = "review"
    FINALIZE = "finalize-round"
    DONE = "done"
    BLOCKED = "blocked"


class UpdateStatus(StrEnum):
    """The state of a semantic roadmap update."""

    AUTHORING = "authoring"
    REVIEW = "review"
    REJECTED = "rejected"
    APPROVED = "approved"
    BLOCKED = "blocked"


class RoundRole(StrEnum):
    """The role that does a stage.

    All but the controller are agents with a prompt in `orchestrator/roles/`.
    """

    CONTROLLER = "controller"
    PLANNER = "planner"
    IMPLEMENTER = "implementer"
    REVIEWER = "reviewer"
    INVESTIGATOR = "recovery-investigator"


_C, _R, _U, _WHO = ControllerStage, RoundStage, UpdateStatus, RoundRole

CONTROLLER: Final[Mapping[ControllerStage, frozenset[ControllerStage]]] = MappingProxyType(
    {
        # To itself after a merged round, while milestones are unfinished.
        _C.DISPATCH: frozenset({_C.DISPATCH, _C.UPDATE, _C.DONE}),
        # To itself after a rejected review of the update, which the planner revises.
        _C.UPDATE: frozenset({_C.UPDATE, _C.DISPATCH, _C.DONE, _C.BLOCKED}),
        # Only when the roadmap has unfinished milestones again.
        _C.DONE: frozenset({_C.DISPATCH}),
        _C.BLOCKED: frozenset({_C.DISPATCH}),
    }
)

ROUND: Final[Mapping[RoundStage, frozenset[RoundStage]]] = MappingProxyType(
    {
        _R.PLAN: frozenset({_R.IMPLEMENT}),
        _R.IMPLEMENT: frozenset({_R.REVIEW}),
        _R.REVIEW: frozenset({_R.IMPLEMENT, _R.PLAN, _R.BLOCKED, _R.FINALIZE}),
        _R.FINALIZE: frozenset({_R.IMPLEMENT, _R.REVIEW, _R.PLAN, _R.DONE}),
        _R.DONE: frozenset(),
        # It needs recovery; it is never final.
        _R.BLOCKED: frozenset({_R.PLAN, _R.IMPLEMENT, _R.REVIEW, _R.FINALIZE}),
    }
)

UPDATE: Final[Mapping[UpdateStatus, frozenset[UpdateStatus]]] = MappingProxyType(
    {
        _U.AUTHORING: frozenset({_U.REVIEW}),
        _U.REVIEW: frozenset({_U.APPROVED, _U.REJECTED, _U.BLOCKED}),
        # To blocked after three rejections.
        _U.REJECTED: frozenset({_U.REVIEW, _U.BLOCKED}),
        _U.APPROVED: frozenset(),
        _U.BLOCKED: frozenset({_U.AUTHORING}),
    }
)

ROUND_OWNERS: Final[Mapping[RoundStage, RoundRole]] = MappingProxyType(
    {
        _R.PLAN: _WHO.PLANNER,
        _R.IMPLEMENT: _WHO.IMPLEMENTER,
        _R.REVIEW: _WHO.REVIEWER,
        _R.FINALIZE: _WHO.CONTROLLER,
        _R.DONE: _WHO.CONTROLLER,
        _R.BLOCKED: _WHO.INVESTIGATOR,
    }
)
"""Who owns each stage of a round."""

UPDATE_OWNERS: Final[Mapping[UpdateStatus, RoundRole]] = MappingProxyType(
    {
        _U.AUTHORING: _WHO.PLANNER,
        _U.REVIEW: _WHO.REVIEWER,
        _U.REJECTED: _WHO.PLANNER,
        _U.APPROVED: _WHO.CONTROLLER,
        _U.BLOCKED: _WHO.INVESTIGATOR,
    }
)
"""Who owns each status of a roadmap update."""
