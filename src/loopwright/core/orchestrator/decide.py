"""Decide what the controller does next: a pure function of `state.json`, the roadmap and the files in the worktrees."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from loopwright.core.orchestrator.checks import RoadmapView
from loopwright.core.orchestrator.records import ControlState, LiveRound, ReviewRecord
from loopwright.core.values.round_states import ROUND, ControllerStage, RoundStage
from loopwright.core.values.states import step


class Do(StrEnum):
    """What the controller can do. The last three are the named exits from the serial path."""

    BEGIN = "begin a round"
    DELEGATE = "delegate the stage"
    ADVANCE = "advance the round"
    REQUEST = "follow the planner's request"
    FINALIZE = "finalize the round"
    REOPEN = "reopen the roadmap"
    FINISH = "finish"
    UPDATE = "update the roadmap"
    RECOVER = "recover"
    FAN_OUT = "fan out"


EXITS: Final = frozenset({Do.UPDATE, Do.RECOVER, Do.FAN_OUT, Do.REQUEST})
"""Exits from the serial path: their instructions, roles and code are loaded only now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One action, and the round that it is for."""

    do: Do
    round_id: str = ""
    to: RoundStage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundSeen:
    """What a live round's worktree shows."""

    has_worktree: bool = True
    requests_update: bool = False
    """Whether the planner wrote a request instead of a selection."""
    is_proven: bool = False
    """Whether the files of its stage are all present and valid, and nothing requested them again."""
    is_fan_out: bool = False
    review: ReviewRecord | None = None
    """The review, if it is valid."""
    has_bad_review: bool = False
    """Whether the review record exists, is invalid, and nothing requested another one."""


def next_actions(state: ControlState, view: RoadmapView, seen: Mapping[str, RoundSeen]) -> tuple[Action, ...]:
    """Return what to do now: one action, or one for each of several live rounds."""
    if state.roadmap_update is not None:
        return (Action(do=Do.UPDATE),)
    errors = state.errors
    if state.controller_stage is ControllerStage.BLOCKED or errors.keys() - {
        one.round_id for one in state.active_rounds
    }:
        return (Action(do=Do.RECOVER),)
    if state.controller_stage is ControllerStage.UPDATE:
        return (Action(do=Do.RECOVER),)  # without a record there is nothing to update
    actions = tuple(_of_round(one, seen[one.round_id]) for one in state.active_rounds)
    free = min(state.max_parallel_rounds, len(view.ready)) - len(state.active_rounds)
    if not actions and not view.unfinished:
        return (Action(do=Do.FINISH),)
    if state.controller_stage is ControllerStage.DONE:
        return (Action(do=Do.REOPEN),)
    # A round without a selection may take any milestone, so the next one begins after that is decided.
    undecided = any(one.stage is RoundStage.PLAN for one in state.active_rounds)
    return (*actions, *((Action(do=Do.BEGIN),) if free > 0 and not undecided else ()))


def _of_round(live: LiveRound, seen: RoundSeen) -> Action:
    about = live.round_id
    if live.stage is RoundStage.BLOCKED or live.resume_error or not seen.has_worktree:
        return Action(do=Do.RECOVER, round_id=about)
    if live.stage in (RoundStage.FINALIZE, RoundStage.DONE):
        return Action(do=Do.FINALIZE, round_id=about)
    if live.stage is RoundStage.PLAN and seen.requests_update:
        return Action(do=Do.REQUEST, round_id=about)
    if seen.is_proven or seen.has_bad_review:
        return Action(do=Do.ADVANCE, round_id=about, to=after(live, seen.review))
    if live.stage is RoundStage.IMPLEMENT and seen.is_fan_out:
        return Action(do=Do.FAN_OUT, round_id=about)
    return Action(do=Do.DELEGATE, round_id=about)


def after(live: LiveRound, review: ReviewRecord | None) -> RoundStage:
    """Return the stage after a finished one: a review names it, and an invalid review blocks the round."""
    target = {RoundStage.PLAN: RoundStage.IMPLEMENT, RoundStage.IMPLEMENT: RoundStage.REVIEW}.get(live.stage)
    if target is None:
        if review is None:
            target = RoundStage.BLOCKED
        elif review.decision == "approved":
            target = RoundStage.FINALIZE
        else:
            target = RoundStage(review.retry_target or RoundStage.BLOCKED)
    return step("round", ROUND, live.round_id, live.stage, target)
