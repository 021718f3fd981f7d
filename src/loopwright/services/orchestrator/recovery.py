"""Recovery: the ladder of the contract, read on its exit alone. It needs no healing to be switched on."""

from contextlib import ExitStack
from dataclasses import replace

from loopwright.core.orchestrator.checks import RoadmapView
from loopwright.core.orchestrator.ladder import (
    Rung,
    Trouble,
    next_rung,
    tried_again,
    with_retry,
)
from loopwright.core.orchestrator.manifest import role_file, round_file
from loopwright.core.orchestrator.records import ControlState, LiveRound
from loopwright.core.values.round_states import ControllerStage, RoundRole, RoundStage
from loopwright.engine.intake.submit import plan_of_source
from loopwright.services.orchestrator import state_edits as edits
from loopwright.services.orchestrator.control_plane import ControlError
from loopwright.services.orchestrator.delegation import KIND, Assignment, begin, end
from loopwright.services.orchestrator.observing import Observed, observe
from loopwright.services.orchestrator.record_check import FILE
from loopwright.services.orchestrator.round_work import Interrupted, RoundWork, lineage, live_round


async def recover(work: RoundWork, state: ControlState, view: RoadmapView, round_id: str) -> None:
    """Take the lowest rung that is left; raise `ControlError` with the blockage when there is none."""
    if not round_id:
        _recover_controller(work, state)
        return
    live = live_round(state, round_id)
    desk, path = work.desk, live.worktree_path
    if not desk.branches.is_open(path):
        if not await desk.branches.tip(live.branch):
            raise ControlError(
                f"{round_id}: its branch {live.branch} and its worktree are gone; restore the branch"
            )
        desk.tell(f"{round_id}: {Rung.RECREATE}")
        await desk.branches.open(live.branch, path, at=live.branch)
        return
    await desk.branches.keep(path, f"Keep what the worktree of {round_id} holds")
    if live.stage is RoundStage.BLOCKED:
        await _unblock(work, state, view, live)
        return
    found = observe(desk.plane.root / path, live.stage, round_id, state, view)
    retry = state.retry_of(round_id)
    trouble = Trouble(
        is_proven=not found.problems and retry is None,
        is_investigated=await _is_investigated(work, state, live),
        retry=retry if retry is not None and retry.stage == live.stage.value else None,
    )
    rung = next_rung(trouble)
    desk.tell(f"{round_id}: {rung}: {live.resume_error}")
    match rung:
        case Rung.RESUME:
            desk.writer.edit_state(edits.round_error(round_id, None))
        case Rung.INVESTIGATE:
            await _investigate(work, state, live, found)
        case Rung.SAME_ROLE | Rung.FRESH_AGENT:
            again = tried_again(
                retry,
                subject_id=round_id,
                stage=live.stage.value,
                mechanism="fresh-agent" if rung is Rung.FRESH_AGENT else "same-role",
                reason=live.resume_error or "the stage left no result",
            )
            desk.writer.edit_state(
                edits.both(edits.retry(with_retry(state.retry, again)), edits.round_error(round_id, None))
            )
        case _:
            _block(work, state, live)


def _recover_controller(work: RoundWork, state: ControlState) -> None:
    """Clear an error or a stage that may be stale; what still holds is found again, and then it blocks."""
    errors = state.errors
    key = (
        "; ".join(f"{name}: {text}" for name, text in sorted(errors.items())) or state.controller_stage.value
    )
    if not work.clear_once(key):
        raise ControlError(errors.get("controller") or key)
    work.desk.tell(f"recovering from: {key}")
    changes: list[edits.Change] = [edits.all_errors_cleared]
    if state.controller_stage in (ControllerStage.BLOCKED, ControllerStage.UPDATE):
        changes.append(edits.controller_to(ControllerStage.DISPATCH))
    work.desk.writer.edit_state(edits.both(*changes))


async def _unblock(work: RoundWork, state: ControlState, view: RoadmapView, live: LiveRound) -> None:
    """Return a blocked round to the stage that its files prove, or to its plan if the review found no other way."""
    desk, round_id = work.desk, live.round_id
    tree = desk.plane.root / live.worktree_path
    seen = observe(tree, RoundStage.REVIEW, round_id, state, view)
    review = seen.review
    reason = live.resume_error or "the round was blocked"
    if review is not None and review.decision == "approved":
        target = RoundStage.FINALIZE
    elif review is not None and review.retry_target in ("implement", "plan"):
        target = RoundStage(review.retry_target)
    elif review is not None:
        target, reason = RoundStage.PLAN, "; ".join(review.required_changes)
    elif observe(tree, RoundStage.IMPLEMENT, round_id, state, view).problems:
        planned = observe(tree, RoundStage.PLAN, round_id, state, view)
        target = RoundStage.PLAN if planned.problems else RoundStage.IMPLEMENT
    else:
        target = RoundStage.REVIEW
    retry = state.retry_of(round_id)
    if retry is not None and retry.review_cycles > 3:
        _block(work, state, live)
        return
    desk.tell(f"{round_id}: its files prove {target}")
    changes = [edits.round_to(round_id, target)]
    if target is not RoundStage.FINALIZE:
        changes.append(work.retried(state, round_id, target.value, reason))
    desk.writer.edit_state(edits.both(*changes))


async def _is_investigated(work: RoundWork, state: ControlState, live: LiveRound) -> bool:
    """Return whether the investigator looked at this try, or cannot: its prompt was not there when the round began."""
    desk = work.desk
    began = await work.began(live.round_id, live.branch, state.base_branch)
    if await desk.repository.file_at(began, role_file(RoundRole.INVESTIGATOR)) is None:
        return True
    source = f"{KIND}:{live.round_id}/{_investigation(state, live)}"
    place = desk.place
    plan = await desk.at.home.store.read(lambda tx: plan_of_source(tx, place.root, place.subfolder, source))
    return plan is not None and plan.completed_at is not None


def _investigation(state: ControlState, live: LiveRound) -> str:
    retry = state.retry_of(live.round_id)
    return f"recovery-{live.stage}-{retry.attempt if retry is not None else 1}"


async def _investigate(work: RoundWork, state: ControlState, live: LiveRound, found: Observed) -> None:
    """Ask the investigator for a diagnosis; its advice is told to the role that is tried next."""
    desk, path = work.desk, round_file("recovery_investigation", live.round_id)
    asked = Assignment(
        subject_id=live.round_id,
        stage=_investigation(state, live),
        role=RoundRole.INVESTIGATOR,
        branch=live.branch,
        worktree_path=live.worktree_path,
        began=await work.began(live.round_id, live.branch, state.base_branch),
        files=(path,),
        lineage=lineage(state, live.round_id, found),
        check=(FILE, live.round_id, state.roadmap_id, state.roadmap_revision, state.roadmap_dir, path),
        told={"request": f"What was seen of the stage {live.stage}: {live.resume_error}"},
    )
    with ExitStack() as held:
        done = await end(desk, await begin(desk, asked, held))
    if done.interrupted:
        raise Interrupted(done.plan_id)


def _block(work: RoundWork, state: ControlState, live: LiveRound) -> None:
    """Stop with the precise blockage; running the folder again starts the ladder over."""
    retry = state.retry_of(live.round_id)
    tried = f" after {retry.attempt} tries" if retry is not None else ""
    why = f"{live.round_id} cannot leave {live.stage}{tried}: {live.resume_error or (retry and retry.reason)}"
    if retry is not None:
        over = replace(retry, mechanism="same-role", same_mechanism=1, review_cycles=0)
        work.desk.writer.edit_state(edits.retry(with_retry(state.retry, over)))
    raise ControlError(why)
