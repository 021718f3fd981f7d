"""Finalize a round: its approved closeout, the gates on exactly what will land, and the merge."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from loopwright.adapters.sources.orchestrator.roadmap_closeout import refuse_other_meaning
from loopwright.core.orchestrator import manifest
from loopwright.core.orchestrator.checks import closeout_problems, unmerged
from loopwright.core.orchestrator.ladder import tried_again, with_retry, without_retry
from loopwright.core.orchestrator.manifest import FOLDER, round_file
from loopwright.core.orchestrator.records import (
    Closeout,
    ControlState,
    LiveRound,
    ReviewRecord,
    RoadmapUpdate,
    Verified,
)
from loopwright.core.plans.base_checks import Condition
from loopwright.core.values.errors import BadPlan
from loopwright.core.values.round_states import ControllerStage, RoundStage, UpdateStatus
from loopwright.core.values.shapes import Misshapen
from loopwright.ports import Files, PlannedWork
from loopwright.services.gates.base_gates import checked_on_base
from loopwright.services.orchestrator import state_edits as edits
from loopwright.services.orchestrator.control_plane import ControlError, ControlPlane, view_of
from loopwright.services.orchestrator.delegation import Desk
from loopwright.services.orchestrator.observing import observe


async def finalize(desk: Desk, state: ControlState, live: LiveRound) -> bool:
    """Take a round through its finalisation; return whether it is merged.

    A repeated step finds its own work.
    """
    base = await desk.branches.tip(state.base_branch)
    if await _is_archived(desk, base, live):
        return await _merged(desk, state, live)
    tree = desk.plane.at(live.worktree_path).root
    tip = await desk.branches.keep(live.worktree_path, f"Keep what the worktree of {live.round_id} holds")
    seen = observe(tree, RoundStage.FINALIZE, live.round_id, state, view_of(desk.plane.bundle()))
    if seen.problems or seen.review is None or seen.selection is None or seen.review.decision != "approved":
        why = "; ".join(seen.problems) or "the review does not approve the round"
        return _back(desk, state, live, RoundStage.REVIEW, why)
    if waits := unmerged(seen.selection, *await _merged_before(desk, base)):
        raise ControlError(f"{live.round_id} waits for {', '.join(waits)}, and nothing that runs merges it")
    await _same_meaning(desk, live, base)
    refreshed = not await desk.repository.is_ancestor(base, tip)
    if refreshed:
        joined = await desk.branches.join(tip, base, f"Merge {state.base_branch} into {live.round_id}")
        await desk.branches.forward(live.worktree_path, joined.sha)
        if joined.conflicts:
            why = f"the base branch moved, and these files have conflicts: {', '.join(joined.conflicts)}"
            return _back(desk, state, live, RoundStage.IMPLEMENT, why)
    if not seen.review.is_semantic:
        try:
            tip = await _close(desk, live, seen.review, base, refreshed=refreshed)
        except BadPlan as stale:
            return _back(desk, state, live, RoundStage.REVIEW, f"the closeout is stale: {stale}")
    else:
        tip = await desk.branches.tip(live.branch)
    sha = await squashed(
        desk,
        tip,
        base,
        f"Complete {live.round_id}: {' '.join(seen.selection.summary.split())[:100]}",
        {"Loopwright-Round": live.round_id, "Loopwright-Item": seen.selection.extracted_item_id},
    )
    if problem := await passes(desk, sha):
        return _back(
            desk, state, live, RoundStage.IMPLEMENT, f"gates fail on what would be merged: {problem}"
        )
    if not await move_base(desk, sha, base):
        return False  # the base moved just now: the next pass begins with it
    return await _merged(desk, state, live)


def _back(desk: Desk, state: ControlState, live: LiveRound, stage: RoundStage, why: str) -> bool:
    before = state.retry_of(live.round_id)
    again = tried_again(
        before,
        subject_id=live.round_id,
        stage=stage.value,
        mechanism=before.mechanism if before is not None else "same-role",
        reason=why,
    )
    desk.tell(f"{live.round_id}: back to {stage}: {why}")
    desk.writer.edit_state(
        edits.both(edits.round_to(live.round_id, stage), edits.retry(with_retry(state.retry, again)))
    )
    return False


async def _is_archived(desk: Desk, base: str, live: LiveRound) -> bool:
    """Return whether the base branch has the round: a kill between the merge and the state update causes that."""
    path = round_file("review_record", live.round_id)
    archived = await desk.repository.file_at(base, path)
    if archived is None or not (desk.plane.at(live.worktree_path).root / path).is_file():
        return archived is not None
    return archived == (desk.plane.at(live.worktree_path).root / path).read_text(encoding="utf-8")


async def _merged_before(desk: Desk, base: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return the rounds and the items that the base branch has."""
    listed = [
        path
        for path in await desk.repository.listed(base)
        if path.startswith(f"{FOLDER}/rounds/") and path.endswith("/selection-record.json")
    ]
    found = await desk.repository.files_at(base, listed)
    items = []
    for content in found.values():
        try:
            items.append(str(json.loads(content).get("extracted_item_id", "")))
        except (ValueError, AttributeError):
            continue  # of an older contract: it names no item that a round could wait for
    return [path.split("/")[2] for path in listed], items


async def _same_meaning(desk: Desk, live: LiveRound, base: str) -> None:
    """Refuse to merge over an active revision with another meaning than when the round began."""
    began = await desk.branches.begin_of(live.round_id)
    was = await bundle_files(desk, began or base)
    if was is None:
        return  # the revision is newer than the round
    try:
        refuse_other_meaning(desk.plane.bundle(was), desk.plane.bundle())
    except BadPlan as changed:
        raise ControlError(
            f"the active revision changed its meaning during {live.round_id}: {'; '.join(changed.problems)}"
        ) from changed


async def bundle_files(desk: Desk, sha: str) -> Files | None:
    """Return the files of the active revision on a commit, with the current state; None if some are missing."""
    now = desk.plane.files()
    names = [name for name in now if name != "state.json"]
    found = await desk.repository.files_at(sha, [f"{FOLDER}/{name}" for name in names])
    if len(found) != len(names):
        return None
    return {"state.json": now["state.json"], **{name: found[f"{FOLDER}/{name}"] for name in names}}


async def _close(desk: Desk, live: LiveRound, review: ReviewRecord, base: str, *, refreshed: bool) -> str:
    """Apply the approved edits in the round's worktree and write the closeout, unless that is done; return the tip."""
    tree = desk.plane.at(live.worktree_path).root
    plane, path = ControlPlane(root=tree), round_file("closeout_record", live.round_id)
    proof = plane.sha256(round_file("review_record", live.round_id))
    closeout = review.roadmap_closeout
    assert closeout is not None, "an approved review has a closeout"
    files = {**plane.files(), "state.json": (desk.plane.root / manifest.STATE).read_bytes()}
    statuses = {one.milestone_id: one.status for one in view_of(plane.bundle(files)).milestones}
    try:
        known = plane.record(Closeout, path)
        is_applied = not closeout_problems(known, live.round_id, proof) and all(
            statuses[one.milestone_id] == one.target_status for one in closeout.status_changes
        )
    except Misshapen:
        is_applied = False
    if not is_applied:
        desk.writer.close_milestones(tree, files, closeout)
    if not is_applied or refreshed:
        summary = [
            *(
                f"{one.milestone_id} status {one.expected_current_status} -> {one.target_status}"
                for one in closeout.status_changes
            ),
            *(f"{one.anchor_id} pointer recorded" for one in closeout.completion_pointers),
            *(f"{one.anchor_id} history entry recorded" for one in closeout.history_entries),
        ]
        record = Closeout(
            schema_version="closeout-record-v3",
            round_id=live.round_id,
            review_record_path=round_file("review_record", live.round_id),
            review_record_sha256=proof,
            base_revision=base,
            status="revalidated" if refreshed else "applied",
            applied_edit_summary=tuple(summary),
            verification=Verified(
                roadmap_view_revalidated=True,
                active_bundle_revalidated=True,
                diff_matches_review_record=True,
                revalidated_after_base_refresh=refreshed,
            ),
        )
        desk.writer.write(tree, path, json.dumps(asdict(record), indent=2, ensure_ascii=False) + "\n")
    return await desk.branches.keep(live.worktree_path, f"Close out {live.round_id}")


async def squashed(desk: Desk, tip: str, base: str, subject: str, trailers: dict[str, str]) -> str:
    """Return the single commit on the base with a branch's tree, and the commit that each stage landed."""
    ends = await desk.repository.ends()
    tree = await ends.joined(base, tip)
    stages = [
        f"Loopwright-Landed: {step.tasks[0]} {step.sha}"
        for step in reversed(await desk.repository.steps(tip, since=base))
        if step.tasks
    ]
    lines = [f"{key}: {value}" for key, value in trailers.items()]
    message = "\n".join([subject, "", *lines, f"Loopwright-Tip: {tip}", *stages])
    moment = datetime.fromtimestamp(await desk.branches.committed_at(tip), UTC)
    return await ends.commit(tree, parents=(base,), message=message, at=moment)


async def passes(desk: Desk, sha: str) -> str:
    """Run the project's gates on a commit, unless the result is known; return what failed, empty if all passed."""
    if not desk.settings.gates:
        return ""
    work = PlannedWork(title="gates", tasks=(), sha256="")
    ran = await checked_on_base(desk.repository, sha, desk.place, desk.settings, work, desk.tell)
    red = [one for one in ran.gates if one.condition is not Condition.GREEN]
    return "; ".join(f"{one.name}: {one.condition}" for one in red)


async def move_base(desk: Desk, sha: str, base: str) -> bool:
    """Move the base branch, with its checkout; only the controller's state there may have changes."""
    ends = await desk.repository.ends()
    return await ends.move(desk.base_branch, new=sha, old=base, leave=(manifest.STATE,))


async def _merged(desk: Desk, state: ControlState, live: LiveRound) -> bool:
    """Remove a merged round from the state, and begin the roadmap update that its review requests."""
    plane = desk.plane
    review = plane.record(ReviewRecord, round_file("review_record", live.round_id))
    if not review.is_semantic and not plane.has(round_file("closeout_record", live.round_id)):
        raise ControlError(f"{live.round_id} is merged, and its approved closeout is not on the base branch")
    changes = [
        edits.drop_round(live.round_id),
        edits.retry(without_retry(state.retry, live.round_id)),
        edits.controller_to(ControllerStage.UPDATE if review.is_semantic else ControllerStage.DISPATCH),
    ]
    if review.is_semantic:
        changes.append(edits.update(new_update(state, live.round_id, "merged-round")))
    desk.tell(f"{live.round_id} is merged into {state.base_branch}")
    desk.writer.edit_state(edits.both(*changes))
    await desk.branches.close(live.worktree_path)
    return True


def new_update(state: ControlState, round_id: str, trigger: str) -> RoadmapUpdate:
    """Return the record of a new roadmap update."""
    name, _, number = state.roadmap_revision.rpartition("-")
    return RoadmapUpdate(
        schema_version="roadmap-update-v1",
        trigger="merged-round" if trigger == "merged-round" else "planner-request",
        source_round_id=round_id,
        branch=f"{FOLDER}/roadmap-update-{round_id}-{state.roadmap_revision}",
        worktree_path=manifest.worktree(f"roadmap-update-{round_id}"),
        update_artifact=manifest.update_file(round_id),
        review_artifact=manifest.update_file(round_id, review=True),
        prior_roadmap_revision=state.roadmap_revision,
        proposed_roadmap_revision=f"{name}-{int(number) + 1:03d}",
        status=UpdateStatus.AUTHORING,
        attempt=1,
        last_rejection_artifact=None,
        last_rejection_summary=None,
        resume_error=None,
    )
