"""The work on live rounds that the serial path and its exits share: reading, assigning, delegating, retrying."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from loopwright.core.orchestrator.checks import RoadmapView
from loopwright.core.orchestrator.decide import RoundSeen
from loopwright.core.orchestrator.ladder import tried_again, with_retry
from loopwright.core.orchestrator.manifest import round_file
from loopwright.core.orchestrator.records import ControlState, LiveRound
from loopwright.core.values.round_states import ROUND_OWNERS, RoundStage
from loopwright.services.orchestrator import state_edits as edits
from loopwright.services.orchestrator.control_plane import view_of
from loopwright.services.orchestrator.delegation import (
    Assignment,
    Delegated,
    Desk,
    begin,
    end,
    has_result,
)
from loopwright.services.orchestrator.observing import Observed, observe
from loopwright.services.orchestrator.watching import Lost, watching

_FILES: Final[Mapping[RoundStage, tuple[str, ...]]] = {
    RoundStage.PLAN: ("selection_record", "plan", "round_plan_record"),
    RoundStage.IMPLEMENT: ("implementation_notes",),
    RoundStage.REVIEW: ("review", "review_record"),
}


class Interrupted(Exception):
    """A stage's plan is unfinished; carries its id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """What was read for one pass."""

    state: ControlState
    view: RoadmapView
    observed: Mapping[str, Observed]
    seen: Mapping[str, RoundSeen]


class RoundWork:
    """The operations on live rounds."""

    def __init__(self, desk: Desk, lost: Lost) -> None:
        """Use this desk, and this action for silent stages; all state is in the files."""
        self.desk = desk
        self._lost = lost
        self.diagnosed: set[str] = set()
        """The plans of investigators whose diagnosis is already in its round."""
        self._cleared: set[str] = set()
        """Errors that were cleared here once: an error that returns blocks."""

    async def look(
        self, state: ControlState, view: RoadmapView, live: LiveRound
    ) -> tuple[Observed, RoundSeen]:
        desk = self.desk
        found = observe(desk.plane.at(live.worktree_path).root, live.stage, live.round_id, state, view)
        if not desk.branches.is_open(live.worktree_path):
            return found, RoundSeen(has_worktree=False)
        tip = await desk.branches.tip(live.branch)
        ours = await has_result(desk, live.round_id, live.stage.value, tip)
        # After a retry, old files prove nothing: only the result of the retry does.
        is_current = ours or state.retry_of(live.round_id) is None
        return found, RoundSeen(
            requests_update=found.requests_update,
            is_proven=is_current and not found.problems,
            has_bad_review=is_current and found.has_bad_review,
            is_fan_out=found.plan is not None and found.plan.worker_mode == "fanout",
            review=found.review,
        )

    def retried(
        self, state: ControlState, subject_id: str, stage: str, reason: str, *, is_review: bool = True
    ) -> edits.Change:
        """Return the change that records one more try of a stage."""
        before = state.retry_of(subject_id)
        again = tried_again(
            before,
            subject_id=subject_id,
            stage=stage,
            mechanism=before.mechanism if before is not None else "same-role",
            reason=reason,
            is_review=is_review,
        )
        return edits.retry(with_retry(state.retry, again))

    async def carry_out(self, *asked: Assignment) -> None:
        """Delegate the stages of rounds: all of them are submitted before the first is driven."""
        with ExitStack() as held:
            begun = [await begin(self.desk, one, held) for one in asked]
            async with watching(self.desk, begun, self._lost):
                for one in begun:
                    await self.record(one.assignment.subject_id, await end(self.desk, one))

    async def record(self, round_id: str, done: Delegated) -> None:
        """Record what keeps a round from continuing after a stage."""
        if done.interrupted:
            raise Interrupted(done.plan_id)
        problem = done.problem if done.sha is None else await self._left(round_id)
        if problem or live_round(self.desk.plane.state(), round_id).resume_error:
            self.desk.writer.edit_state(edits.round_error(round_id, problem or None))

    async def _left(self, round_id: str) -> str:
        """Return the objections of the current roadmap to a result that passed its check in the round's own tree."""
        state = self.desk.plane.state()
        view = view_of(self.desk.plane.bundle())
        found, _ = await self.look(state, view, live_round(state, round_id))
        return "" if found.requests_update else "; ".join(found.problems)

    async def assignment(self, now: Now, round_id: str) -> Assignment:
        """Return the assignment for the role of a round's stage."""
        desk, state = self.desk, now.state
        live, seen = live_round(state, round_id), now.observed[round_id]
        stage, retry = live.stage, state.retry_of(round_id)
        files = [round_file(key, round_id) for key in _FILES[stage]]
        if stage is RoundStage.PLAN:
            files.append(f"or, instead of these three, {round_file('roadmap_update_request', round_id)}")
        told: dict[str, str] = {}
        taken = {
            one.selection.milestone_id
            for key, one in now.observed.items()
            if key != round_id and one.selection
        }
        if stage is RoundStage.PLAN and taken:
            files.append(
                f"choose another milestone than {', '.join(sorted(taken))}: other rounds work on them"
            )
        plane = desk.plane.at(live.worktree_path)
        review = observe(plane.root, RoundStage.REVIEW, round_id, state, now.view).review
        if retry is not None and review is not None and review.decision == "rejected":
            told["changes"] = "\n".join(f"- {one}" for one in review.required_changes)
        if retry is not None and plane.has(round_file("recovery_investigation", round_id)):
            told["diagnosis"] = plane.text(round_file("recovery_investigation", round_id))
        if retry is not None and retry.reason.startswith("the base branch moved"):
            told["refresh"] = f"- {retry.reason}"
        return Assignment(
            subject_id=round_id,
            stage=stage.value,
            role=ROUND_OWNERS[stage],
            branch=live.branch,
            worktree_path=live.worktree_path,
            began=await self.began(round_id, live.branch, state.base_branch),
            files=tuple(files),
            lineage=lineage(state, round_id, seen),
            check=(
                stage.value,
                round_id,
                state.roadmap_id,
                state.roadmap_revision,
                state.roadmap_dir.rstrip("/"),
            ),
            gates=desk.settings.gates if stage is RoundStage.IMPLEMENT else (),
            told=told,
            retry=retry,
        )

    async def began(self, round_id: str, branch: str, base_branch: str) -> str:
        """Return the start commit of a round; for a round of another controller, its merge base."""
        branches = self.desk.branches
        known = await branches.begin_of(round_id)
        if not known:
            known = await branches.fork(branch, base_branch)
            await branches.note_begin(round_id, known)
        return known

    def clear_once(self, key: str) -> bool:
        """Return whether an error may be cleared: the second time it is a real one."""
        is_new = key not in self._cleared
        self._cleared.add(key)
        return is_new


def lineage(state: ControlState, round_id: str, seen: Observed) -> dict[str, str]:
    """Return the values that every record of a round repeats."""
    chosen = seen.selection
    return {
        "round_id": round_id,
        "roadmap_id": state.roadmap_id,
        "roadmap_revision": state.roadmap_revision,
        "roadmap_dir": state.roadmap_dir.rstrip("/"),
        **(
            {
                "milestone_id": chosen.milestone_id,
                "direction_id": chosen.direction_id,
                "extracted_item_id": chosen.extracted_item_id,
            }
            if chosen is not None
            else {}
        ),
    }


def live_round(state: ControlState, round_id: str) -> LiveRound:
    """Return a live round by its id."""
    return next(one for one in state.active_rounds if one.round_id == round_id)
