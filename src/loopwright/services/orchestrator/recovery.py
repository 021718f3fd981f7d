"""Recovery: the ladder of the contract, imported only on its exit. It does not need `auto_heal`."""

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
from loopwright.core.orchestrator.manifest import foreign_files, role_file, round_file
from loopwright.core.orchestrator.records import ControlState, LiveRound
from loopwright.core.rows.model import Loop, Plan
from loopwright.core.values.round_states import ROUND, ControllerStage, RoundRole, RoundStage
from loopwright.core.values.states import ENDED_PLAN
from loopwright.engine.intake.submit import Submitted, plan_of_source
from loopwright.engine.rows.moves import need
from loopwright.services.control import decisions
from loopwright.services.driving.recorded_environments import submitting
from loopwright.services.orchestrator import state_edits as edits
from loopwright.services.orchestrator.control_plane import ControlError, view_of
from loopwright.services.orchestrator.delegation import KIND, Assignment, Begun, begin, end, role_text
from loopwright.services.orchestrator.observing import Observed, observe
from loopwright.services.orchestrator.record_check import FILE
from loopwright.services.orchestrator.round_work import Interrupted, RoundWork, lineage, live_round


async def recover(work: RoundWork, state: ControlState, view: RoadmapView, round_id: str) -> None:
    """Take the lowest step that is left; raise `ControlError` with the blocker if there is none."""
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
    if await _is_open(work, f"{KIND}:{round_id}/{live.stage}"):
        desk.tell(f"{round_id}: {live.stage} is under way")
        desk.writer.edit_state(edits.round_error(round_id, None))
        return
    if live.stage is RoundStage.BLOCKED:
        await _unblock(work, state, view, live)
        return
    found = observe(desk.plane.root / path, live.stage, round_id, state, view)
    retry = state.retry_of(round_id)
    trouble = Trouble(
        is_proven=not found.problems and retry is None,
        is_undermined=bool(foreign_files(live.stage, found.problems)),
        may_step_back=RoundStage.BLOCKED in ROUND[live.stage],
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
        case Rung.STEP_BACK:
            # The table leads to the proven stage only through `blocked`.
            desk.writer.edit_state(
                edits.both(
                    edits.round_to(round_id, RoundStage.BLOCKED),
                    edits.round_error(round_id, live.resume_error),
                )
            )
        case _:
            _block(work, state, live)


def _recover_controller(work: RoundWork, state: ControlState) -> None:
    """Clear an error or a stage that may be stale; a real problem is found again, and then it blocks."""
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
    tree = desk.plane.at(live.worktree_path).root
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
        is_review = review is not None
        changes.append(work.retried(state, round_id, target.value, reason, is_review=is_review))
    desk.writer.edit_state(edits.both(*changes))


async def not_observable(work: RoundWork, asked: Assignment, why: str) -> None:
    """Record that a live stage shows no activity, and run the investigator in parallel; its agent is not interrupted.

    The diagnosis goes to the round's branch only if the stage ends without a result.
    """
    desk, state = work.desk, work.desk.plane.state()
    live = next((one for one in state.active_rounds if one.round_id == asked.subject_id), None)
    if live is None:
        return
    desk.tell(f"{live.round_id}: {why}")
    desk.writer.edit_state(edits.round_error(live.round_id, why))
    live = replace(live, resume_error=why)
    if await _is_investigated(work, state, live) or await _investigation_plan(work, state, live) is not None:
        return
    found = observe(
        desk.plane.at(live.worktree_path).root, live.stage, live.round_id, state, view_of(desk.plane.bundle())
    )
    with ExitStack() as held:
        # The process that drives the stage drives this plan too.
        await begin(desk, await _asked(work, state, live, found), held)


async def settle(work: RoundWork, round_id: str) -> None:
    """End the investigation of a stage that became active again and left its result."""
    state = work.desk.plane.state()
    live = next((one for one in state.active_rounds if one.round_id == round_id), None)
    plan = await _investigation_plan(work, state, live) if live and not live.resume_error else None
    if plan is not None and plan.status not in ENDED_PLAN:
        await decisions.cancel(work.desk.at, plan.id, reason="the stage that it looked at has a result")


async def _is_investigated(work: RoundWork, state: ControlState, live: LiveRound) -> bool:
    """Return whether the investigator diagnosed this try, or cannot: its prompt did not exist when the round began."""
    desk = work.desk
    began = await work.began(live.round_id, live.branch, state.base_branch)
    if not await role_text(desk, began, role_file(RoundRole.INVESTIGATOR)):
        return True
    plan = await _investigation_plan(work, state, live)
    if plan is None or plan.completed_at is None:
        return False
    return plan.result_sha is None or plan.id in work.diagnosed


async def _investigation_plan(work: RoundWork, state: ControlState, live: LiveRound) -> Plan | None:
    return await _plan_of(work, f"{KIND}:{live.round_id}/{_investigation(state, live)}")


async def _is_open(work: RoundWork, source: str) -> bool:
    plan = await _plan_of(work, source)
    return plan is not None and plan.status not in ENDED_PLAN


async def _plan_of(work: RoundWork, source: str) -> Plan | None:
    place = work.desk.place
    return await work.desk.at.home.store.read(
        lambda tx: plan_of_source(tx, place.root, place.subfolder, source)
    )


def _investigation(state: ControlState, live: LiveRound) -> str:
    retry = state.retry_of(live.round_id)
    return f"recovery-{live.stage}-{retry.attempt if retry is not None else 1}"


async def _investigate(work: RoundWork, state: ControlState, live: LiveRound, found: Observed) -> None:
    """Request a diagnosis from the investigator, or wait for a requested one; the next role gets it."""
    desk = work.desk
    asked = await _asked(work, state, live, found)
    plan = await _investigation_plan(work, state, live)
    with ExitStack() as held:
        if plan is None:
            begun = await begin(desk, asked, held)
        else:
            loop = await desk.at.home.store.read(lambda tx: need(tx.get(Loop, plan.loop_id), "the loop"))
            submitted = Submitted(loop=loop, plan=plan, created=False)
            submitter = held.enter_context(submitting(desk.at.home))
            begun = Begun(assignment=asked, tip=plan.base_sha, submitted=submitted, submitter=submitter)
        done = await end(desk, begun)
    work.diagnosed.add(done.plan_id)
    if done.interrupted:
        raise Interrupted(done.plan_id)


async def _asked(work: RoundWork, state: ControlState, live: LiveRound, found: Observed) -> Assignment:
    path = round_file("recovery_investigation", live.round_id)
    return Assignment(
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


def _block(work: RoundWork, state: ControlState, live: LiveRound) -> None:
    """Stop with the exact blocker; running the folder again restarts the ladder."""
    retry = state.retry_of(live.round_id)
    tried = f" after {retry.attempt} tries" if retry is not None else ""
    why = f"{live.round_id} cannot leave {live.stage}{tried}: {live.resume_error or (retry and retry.reason)}"
    if retry is not None:
        over = replace(retry, mechanism="same-role", same_mechanism=1, review_cycles=0)
        work.desk.writer.edit_state(edits.retry(with_retry(state.retry, over)))
    raise ControlError(why)
