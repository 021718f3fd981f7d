"""Change the meaning of a roadmap: the planner writes a new revision, the reviewer approves it, and it becomes active.

Loaded only if a review or the planner requests it. Nothing else is delegated until it has ended.
"""

import re
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final

from loopwright.core.orchestrator import manifest
from loopwright.core.orchestrator.ladder import (
    Rung,
    Trouble,
    next_rung,
    tried_again,
    with_retry,
    without_retry,
)
from loopwright.core.orchestrator.manifest import role_file, round_file
from loopwright.core.orchestrator.records import ControlState, RoadmapUpdate
from loopwright.core.values.round_states import (
    UPDATE,
    UPDATE_OWNERS,
    ControllerStage,
    RoundRole,
    UpdateStatus,
)
from loopwright.core.values.states import step
from loopwright.services.orchestrator import state_edits as edits
from loopwright.services.orchestrator.control_plane import ControlError
from loopwright.services.orchestrator.delegation import Assignment, begin, end, has_result
from loopwright.services.orchestrator.finalization import move_base, new_update, passes, squashed
from loopwright.services.orchestrator.record_check import FILE, UPDATE_CHECK
from loopwright.services.orchestrator.round_work import Interrupted, RoundWork, live_round

REJECTIONS: Final = 3
"""After this many rejections an update is blocked."""
_DECISION: Final = re.compile(r"^#+ Decision\s+\**(APPROVED|REJECTED:.*?)\**\s*$", re.MULTILINE)


async def advance(work: RoundWork, state: ControlState, round_id: str) -> None:
    """Begin the update that a planner requests, or take the next step of the active one."""
    work.desk.plane.text(manifest.ADVANCED[0])
    update = state.roadmap_update
    if update is None:
        await _requested(work, state, round_id)
        return
    if update.status is UpdateStatus.APPROVED:
        await _activate(work, state, update)
        return
    if update.status is UpdateStatus.BLOCKED:
        _recover(work, update)
        return
    base = await work.desk.branches.tip(state.base_branch)
    await work.desk.branches.open(update.branch, update.worktree_path, at=base)
    if not await work.desk.branches.begin_of(_subject(update)):
        await work.desk.branches.note_begin(_subject(update), base)
    if update.resume_error:
        _try_again(work, state, update)
    elif update.status is UpdateStatus.REVIEW:
        await _review(work, state, update)
    else:
        await _author(work, state, update)


def _subject(update: RoadmapUpdate) -> str:
    return f"{update.source_round_id}-update"


async def _requested(work: RoundWork, state: ControlState, round_id: str) -> None:
    """Keep the planner's request as evidence, and drop the round without a selection."""
    desk, live = work.desk, live_round(state, round_id)
    update = new_update(state, round_id, "planner-request")
    await desk.branches.keep(live.worktree_path, f"Keep what the worktree of {round_id} holds")
    await desk.branches.open(
        update.branch, update.worktree_path, at=await desk.branches.tip(state.base_branch)
    )
    was, now = (desk.plane.at(one.worktree_path).root for one in (live, update))
    desk.writer.preserve_request(was, now, round_id)
    await desk.branches.keep(update.worktree_path, f"Keep the request of {round_id}")
    desk.tell(f"{round_id}: the planner asks for another roadmap")
    desk.writer.edit_state(
        edits.both(
            edits.drop_round(round_id),
            edits.retry(without_retry(state.retry, round_id)),
            edits.controller_to(ControllerStage.UPDATE),
            edits.update(update),
        )
    )
    await desk.branches.close(live.worktree_path)


def _moved(update: RoadmapUpdate, status: UpdateStatus, **more: Any) -> RoadmapUpdate:
    step("update", UPDATE, update.source_round_id, update.status, status)
    return replace(update, status=status, resume_error=None, **more)


async def _author(work: RoundWork, state: ControlState, update: RoadmapUpdate) -> None:
    folder = _folder(state, update)
    plane = work.desk.plane.at(update.worktree_path)
    request = round_file("roadmap_update_request", update.source_round_id)
    told = {}
    if plane.has(request):
        told["request"] = plane.text(request)
    if update.last_rejection_summary:
        told["changes"] = f"- {update.last_rejection_summary}"
    files = (
        update.update_artifact,
        f"{folder}/roadmap.md, {folder}/roadmap-view.json and {folder}/verification.md: the new revision",
    )
    check = (UPDATE_CHECK, update.source_round_id, state.roadmap_id, update.proposed_roadmap_revision, folder)
    asked = _assignment(state, update, "update-roadmap", files, (*check, update.update_artifact), told)
    if await _delegated(work, state, asked, update):
        work.desk.writer.edit_state(edits.update(_moved(update, UpdateStatus.REVIEW)))


async def _review(work: RoundWork, state: ControlState, update: RoadmapUpdate) -> None:
    check = (FILE, update.source_round_id, state.roadmap_id, update.proposed_roadmap_revision, "-")
    files = (update.review_artifact,)
    asked = _assignment(state, update, "update-review", files, (*check, update.review_artifact), {})
    if not await _delegated(work, state, asked, update):
        return
    plane = work.desk.plane.at(update.worktree_path)
    found = _DECISION.search(plane.text(update.review_artifact))
    if found is None:
        why = f"{update.review_artifact} has no decision that is exactly APPROVED or REJECTED: reason"
        work.desk.writer.edit_state(edits.update(replace(update, resume_error=why)))
    elif found[1] == "APPROVED":
        work.desk.writer.edit_state(edits.update(_moved(update, UpdateStatus.APPROVED)))
    else:
        reject(work, update, found[1].removeprefix("REJECTED:").strip())


def reject(work: RoundWork, update: RoadmapUpdate, why: str) -> None:
    """Send an update back to the planner; after the third rejection it is blocked."""
    rejected = replace(update, last_rejection_artifact=update.review_artifact, last_rejection_summary=why)
    if update.attempt >= REJECTIONS:
        reason = f"the roadmap update of {update.source_round_id} was rejected {update.attempt} times: {why}"
        blocked = replace(_moved(rejected, UpdateStatus.BLOCKED), resume_error=reason)
        work.clear_once(reason)
        work.desk.writer.edit_state(
            edits.both(edits.update(blocked), edits.controller_to(ControllerStage.BLOCKED))
        )
        raise ControlError(reason)
    again = _moved(rejected, UpdateStatus.REJECTED, attempt=update.attempt + 1)
    work.desk.writer.edit_state(edits.both(edits.update(again), edits.controller_to(ControllerStage.UPDATE)))


def _recover(work: RoundWork, update: RoadmapUpdate) -> None:
    """Author a blocked update again, once for each run of the folder."""
    if not work.clear_once(update.resume_error or ""):
        raise ControlError(update.resume_error or "the roadmap update is blocked")
    work.desk.writer.edit_state(
        edits.both(
            edits.all_errors_cleared,
            edits.update(_moved(update, UpdateStatus.AUTHORING, attempt=1)),
            edits.controller_to(ControllerStage.DISPATCH),
        )
    )
    # The table has no other way out of `blocked`, and one edit moves the controller once.
    work.desk.writer.edit_state(edits.controller_to(ControllerStage.UPDATE))


def _try_again(work: RoundWork, state: ControlState, update: RoadmapUpdate) -> None:
    subject = _subject(update)
    before = state.retry_of(subject)
    rung = next_rung(Trouble(is_investigated=True, retry=before))
    if rung is Rung.BLOCK:
        raise ControlError(f"{subject}: {update.resume_error}")
    again = tried_again(
        before,
        subject_id=subject,
        stage="update-roadmap",
        mechanism="fresh-agent" if rung is Rung.FRESH_AGENT else "same-role",
        reason=update.resume_error or "no result",
    )
    work.desk.writer.edit_state(
        edits.both(
            edits.retry(with_retry(state.retry, again)), edits.update(replace(update, resume_error=None))
        )
    )


async def _delegated(work: RoundWork, state: ControlState, asked: Assignment, update: RoadmapUpdate) -> bool:
    """Delegate a step of an update, unless its result exists; return whether it does."""
    desk = work.desk
    asked = replace(
        asked, began=await desk.branches.begin_of(_subject(update)), retry=state.retry_of(_subject(update))
    )
    if await has_result(desk, asked.subject_id, asked.stage, await desk.branches.tip(update.branch)):
        return True
    with ExitStack() as held:
        done = await end(desk, await begin(desk, asked, held))
    if done.interrupted:
        raise Interrupted(done.plan_id)
    if done.sha is None:
        desk.writer.edit_state(edits.update(replace(update, resume_error=done.problem)))
    return done.sha is not None


def _assignment(
    state: ControlState,
    update: RoadmapUpdate,
    stage: str,
    files: tuple[str, ...],
    check: tuple[str, ...],
    told: Mapping[str, str],
) -> Assignment:
    role = UPDATE_OWNERS[update.status]
    assert role in (RoundRole.PLANNER, RoundRole.REVIEWER), role_file(role)
    return Assignment(
        subject_id=update.source_round_id,
        stage=stage,
        role=role,
        branch=update.branch,
        worktree_path=update.worktree_path,
        began="",
        files=files,
        lineage={
            "round_id": update.source_round_id,
            "roadmap_id": state.roadmap_id,
            "prior_roadmap_revision": update.prior_roadmap_revision,
            "proposed_roadmap_revision": update.proposed_roadmap_revision,
            "roadmap_dir": _folder(state, update),
            "trigger": update.trigger,
        },
        check=check,
        told=told,
        revision=_folder(state, update),
    )


def _folder(state: ControlState, update: RoadmapUpdate) -> str:
    return f"{state.roadmap_dir.rstrip('/').rpartition('/')[0]}/{update.proposed_roadmap_revision}"


async def _activate(work: RoundWork, state: ControlState, update: RoadmapUpdate) -> None:
    """Merge an approved update and make its revision the active one."""
    desk, folder = work.desk, _folder(state, update)
    base = await desk.branches.tip(state.base_branch)
    if await desk.repository.file_at(base, update.review_artifact) is None:
        tip = await desk.branches.tip(update.branch)
        if not await desk.repository.is_ancestor(base, tip):
            joined = await desk.branches.join(tip, base, f"Merge {state.base_branch} into {update.branch}")
            if joined.conflicts:
                raise ControlError(
                    f"{update.branch} conflicts with {state.base_branch}: {', '.join(joined.conflicts)}"
                )
            await desk.branches.forward(update.worktree_path, joined.sha)
            tip = joined.sha
        subject = f"Activate {update.proposed_roadmap_revision} of {state.roadmap_id}"
        sha = await squashed(desk, tip, base, subject, {"Loopwright-Round": update.source_round_id})
        if problem := await passes(desk, sha):
            raise ControlError(f"gates fail on the roadmap update: {problem}")
        if not await move_base(desk, sha, base):
            return
    desk.tell(f"{update.proposed_roadmap_revision} is active")
    desk.writer.edit_state(
        edits.both(
            edits.revision(update.proposed_roadmap_revision, folder),
            edits.update(None),
            edits.retry(without_retry(state.retry, _subject(update))),
            edits.controller_to(ControllerStage.DISPATCH),
        )
    )
    await desk.branches.close(update.worktree_path)
    await desk.branches.commit_only(
        [manifest.STATE], f"Make {update.proposed_roadmap_revision} the active revision"
    )
