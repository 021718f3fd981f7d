"""From a finished run to a commit on the plan branch: build the candidate, gate exactly that, land exactly that."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from loopwright.core.gates.contradictions import MOST, contradicted, is_tampered, missing_too_many
from loopwright.core.gates.gates import task_commands
from loopwright.core.gates.held_out import held_commands, held_files, not_passed
from loopwright.core.gates.verdict_reuse import names_all
from loopwright.core.gates.verdicts import evidence, of_installed, task_outcome
from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.policy.retry import Failed
from loopwright.core.policy.rounds import loops
from loopwright.core.receipts.gaps import is_open
from loopwright.core.rows.model import Attempt, Role, Run, Task, VerdictRecord
from loopwright.core.values.errors import CannotRun, LeaseLost, MergeConflict
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Verdict, VerdictStatus, is_sentence
from loopwright.core.values.states import AttemptState, TaskState
from loopwright.engine.attempt import contradictions
from loopwright.engine.attempt.collisions import told_of_conflict, told_of_red
from loopwright.engine.attempt.landing_line import Landing, LandingLines, Outdated, Place
from loopwright.engine.attempt.red_proof import NOT_RUN, with_red_proof
from loopwright.engine.attempt.rejected_work import as_rejected, rejected
from loopwright.engine.attempt.reviewing import author_of, covered, lands_capped
from loopwright.engine.attempt.rounds import settles
from loopwright.engine.branch.branch import reverts, tip_of
from loopwright.engine.branch.receipt import landing_trailer
from loopwright.engine.gates.gate_runs import judge_until_known
from loopwright.engine.gates.judging import Judging
from loopwright.engine.intake.doc_sync import left_behind
from loopwright.engine.integrity.gate_scripts import inside, judges_of
from loopwright.engine.integrity.old_checks import OldChecks, with_old_checks
from loopwright.engine.integrity.suspicion import leading_out
from loopwright.engine.memory.interrupts import Interrupted
from loopwright.engine.rows.moves import complete_task, fail_attempt, move_attempt, need
from loopwright.engine.rows.ref_names import commit_subject, taken_ref, trailers
from loopwright.engine.sources.status_writeback import booked, touched_books
from loopwright.ports import Candidate, FileChange, Tx


async def check_and_land(landing: Landing, lines: LandingLines, interrupt: asyncio.Event) -> None:
    """Take the attempt to LANDED or to its end; returns early when the branch moved, to be called again."""
    if landing.attempt.state is AttemptState.LANDING:
        tip = await tip_of(landing.world, landing.repository, landing.plan)
        if not await _was_landed(landing, tip):
            await _swap(landing, tip)
        return
    with lines.place(landing.plan.id, landing.task.id) as place:
        landing = replace(landing, place=place)
        while not await _judged_in_line(landing, place, interrupt):
            pass


async def _judged_in_line(landing: Landing, place: Place, interrupt: asyncio.Event) -> bool:
    """Judge the candidate on what will be the branch, and land it or not; False when it has to be built anew."""
    ahead = await place.turn(landing.plan.policy.parallel_gates, interrupt)
    tip = await tip_of(landing.world, landing.repository, landing.plan)
    ground = ahead or tip
    place.stand_on(ground, is_tip=ahead is None)
    if await _was_landed(landing, tip):
        return True
    async with place.stopping(interrupt) as stop:
        try:
            attempt = await _check(landing, ground, stop)
        except Outdated:
            return False
        except Interrupted:
            # Not by a person, but because the verdict would have been about a tree that cannot land any more.
            if stop.is_set() and not interrupt.is_set():
                return False
            raise
    if attempt is not None:
        await _swap(replace(landing, attempt=attempt), ground)
    return True


async def _was_landed(landing: Landing, tip: str) -> bool:
    """Find out whether an earlier leg landed it, on the very snapshot that the compare-and-swap will guard."""
    since = need(landing.task.first_base_sha, "a first base")
    tries, taken = await landing.world.store.read(
        lambda tx: (tx.find(Attempt, task_id=landing.task.id), reverts(tx))
    )
    # What was never a candidate cannot have landed, whoever wrote its trailer.
    made = {one.candidate_sha for one in tries if one.candidate_sha is not None}
    if not made:
        return False
    task_id = landing.task.id
    already = await landing.repository.landed(tip, since=since, task_id=task_id, among=made, reverts=taken)
    if already is not None:
        await _record_landed(landing, already)
    return already is not None


async def _check(landing: Landing, tip: str, interrupt: asyncio.Event) -> Attempt | None:
    """Judge the candidate; return the attempt when it may land, None when it has ended."""
    attempt = landing.attempt
    if await landing.repository.is_pinned(taken_ref(landing.plan.id, need(attempt.base_sha, "a base"))):
        # A merge would bring it back, as if this attempt had made it.
        told = "It builds on commits that an agent had put on the plan's branch, and they were taken off it again."
        await reject(
            landing, Failure.CONFLICT, told, evidence=f"{told} Your workspace is without them: do it again."
        )
        return None
    run, at, receipt = await _author(landing)
    try:
        candidate = await landing.repository.candidate(
            tip=tip,
            attempt_sha=need(attempt.tip_sha, "a snapshot"),
            subject=commit_subject(landing.task),
            trailers=replace(trailers(attempt, run), receipt=receipt),
            at=at,
            leave=touched_books(landing.project, landing.plan, attempt),
        )
    except MergeConflict as conflict:
        await landing.place.first(lands=False)
        landing.place.leave()
        told = f"It changes the same places as work that landed meanwhile: {', '.join(conflict.paths)}"
        seen = await told_of_conflict(landing.world, landing.repository, landing.plan, attempt, tip, conflict)
        await reject(landing, Failure.CONFLICT, told, evidence=seen)
        return None
    if outside := await leading_out(landing.repository, landing.task, candidate):
        told = f"It adds a link that leads out of the project: {'; '.join(outside[:5])}"
        way = "Nobody else has what is behind it: put the file itself there. One that is meant belongs into the scope."
        await reject(landing, Failure.GATE, told, evidence=f"{told}\n{way}")
        return None
    if behind := await left_behind(
        landing.repository, landing.project, landing.plan, landing.task, candidate.sha
    ):
        told = f"These documents are as they were when the plan began: {', '.join(behind)}"
        await reject(landing, Failure.GATE, told, evidence=told)
        return None
    sent_back = await landing.world.store.read(lambda tx: rejected(tx, landing.task, attempt))
    if again := await as_rejected(landing.repository, candidate, sent_back):
        n, said = again
        told = f"It is the very change that a person rejected as attempt {n}, so it cannot land.\n\n{said}"
        await reject(landing, Failure.NO_CHANGE, told, evidence=told)
        return None
    if landing.plan.books:
        below = await landing.repository.judged(candidate.parent)
        candidate = replace(candidate, judged_parent=below)
    top = await booked(
        landing.world,
        landing.repository,
        landing.project,
        landing.plan,
        landing.task,
        attempt,
        candidate,
    )
    landing.place.build(top, lands=not candidate.empty)
    judges = judges_of(landing.project, landing.plan, landing.task)
    old = await with_old_checks(landing.repository, judges, candidate)
    facts = old.facts
    judged: dict[str, Any] = {
        "candidate_parent": tip,
        "candidate_tree": candidate.tree,
        "gate_files": facts,
    }
    record_id, verdict = await _judged(landing, candidate, interrupt, facts, candidate.changes)
    judged["verdict_id"] = record_id
    own = verdict
    if landing.task.held_out and verdict.status is VerdictStatus.PASSED:
        # With the old judging files, where the work changed them: they are what judges these checks too.
        verdict = await _judged_unseen(landing, old.restored or candidate, interrupt, facts)
        if verdict.status is VerdictStatus.FAILED:
            told, seen = not_passed(landing.task.held_out, verdict)
            await reject(landing, Failure.GATE, told, evidence=seen, **judged)
            return None
    match verdict.status:
        case VerdictStatus.INCONCLUSIVE:
            await cannot_tell(landing, verdict, judged)
        case VerdictStatus.FAILED if candidate.empty:
            told = "The agent said that it was done, but it changed nothing, and the checks do not pass."
            await reject(landing, Failure.NO_CHANGE, told, evidence=f"{told}\n{evidence(verdict)}", **judged)
        # Nobody lands beside the rounds of a loop, and each begins with what the one before left.
        case VerdictStatus.FAILED if old.restored is not None or loops(landing.plan, landing.task):
            why = of_installed(landing.plan.policy, verdict)
            told, seen = first_line(verdict) + why, evidence(verdict) + why
            await reject(landing, Failure.GATE, told, evidence=seen, **judged)
        case VerdictStatus.FAILED:
            await landing.place.first(lands=False)
            # Whether it would pass alone concerns nobody behind it.
            landing.place.leave()
            ask = _asked(landing, candidate, facts)
            alone, seen = await told_of_red(landing.world, landing.repository, ask, verdict, interrupt)
            failure = Failure.TOGETHER if alone else Failure.GATE
            why = of_installed(landing.plan.policy, verdict)
            await reject(landing, failure, first_line(verdict) + why, evidence=seen + why, **judged)
        case VerdictStatus.UNVERIFIED if not landing.plan.policy.allow_unverified:
            told = "nothing is configured to check it; its work is kept but does not land"
            await reject(landing, Failure.UNVERIFIED, told)
        case _ if candidate.empty:
            await _nothing_to_land(landing, candidate, verdict, record_id)
        case _:
            settled = await _with_old_checks_settled(landing, candidate, old, own, interrupt, judged)
            if settled is None:
                return None
            ask = _asked(landing, candidate, settled)
            facts, left = await with_red_proof(landing, ask, candidate, settled, own, record_id, interrupt)
            judged["gate_files"] = facts
            if left:
                told = "; ".join(left)
                await reject(landing, Failure.GATE, told, evidence=f"{told}\n{NOT_RUN}", **judged)
                return None
            if review := await covered(landing, candidate, facts, judged):
                await landing.place.first(lands=True)
                return await _approve(landing, candidate, top, record_id, facts, review.review_id)
    return None


async def _with_old_checks_settled(
    landing: Landing,
    candidate: Candidate,
    old: OldChecks,
    verdict: Verdict,
    interrupt: asyncio.Event,
    judged: dict[str, Any],
) -> GateFiles | None:
    """Judge the work with its judging files as they were before; None when it does not land now.

    `verdict` is the candidate's own. If no judging file changed, that run is this one.
    """
    facts = replace(old.facts, missing=verdict.lost[:MOST])
    parent = candidate.judged_parent or candidate.parent
    removed = verdict.lost
    if old.restored is None:
        checks = contradicted(verdict)
    elif old.restored.tree == await landing.repository.tree_of(parent):
        # Nothing but judging files changed: without them it is what was there before.
        facts = replace(facts, pinned_tree=None)
        checks = verdict.lost if missing_too_many(verdict) else ()
    else:
        found = await _judged_as_before(landing, old, interrupt, candidate.changes)
        if found.status is VerdictStatus.INCONCLUSIVE:
            if not found.as_before:
                await cannot_tell(landing, found, judged)
                return None
            facts = replace(facts, pinned_tree=None)  # it tells nothing of the work
        if is_tampered(found):
            told = f"With the tests and their configuration as before: {first_line(found)}"
            await reject(landing, Failure.GATE, told, evidence=f"{told}\n\n{evidence(found)}", **judged)
            return None
        checks = contradicted(found)
        if checks:
            removed = found.lost
        elif missing_too_many(verdict):
            checks = verdict.lost
    if not checks:
        return facts
    return await contradictions.settle(landing, candidate, facts, checks, removed, judged)


async def _judged_as_before(
    landing: Landing, old: OldChecks, interrupt: asyncio.Event, changes: Sequence[FileChange]
) -> Verdict:
    """Gate the candidate with the old judging files; a command that needs an added file has nothing to say there."""
    left_out, restored = old.facts.pinned_without, need(old.restored, "the restored tree")
    if all(one.command in left_out for one in task_commands(landing.plan, landing.task)):
        return Verdict(status=VerdictStatus.PASSED)
    _, found = await _judged(
        landing, restored, interrupt, old.facts, changes, without=left_out, old_files=True
    )
    return found


async def cannot_tell(landing: Landing, verdict: Verdict, judged: dict[str, Any]) -> None:
    """Nothing was learned about the work, so it is not at fault: a person mends what lasts, the rest is tried again."""
    if not verdict.lasting:
        raise CannotRun(f"the gate could not run: {verdict.reason}")
    await reject(landing, Failure.CANNOT_CHECK, verdict.reason, evidence=evidence(verdict), **judged)


async def _author(landing: Landing) -> tuple[Run, datetime, str]:
    """Return the run that did the work, when that was, and the hash of what is known of it."""
    plan, task, attempt = landing.plan, landing.task, landing.attempt
    run, receipt = await landing.world.store.read(
        lambda tx: (author_of(tx, attempt), landing_trailer(tx, plan, task, attempt))
    )
    return run, run.ended_at or attempt.updated_at, receipt


def _asked(landing: Landing, candidate: Candidate, facts: GateFiles) -> Judging:
    commands = task_commands(landing.plan, landing.task)
    return Judging(
        project=landing.project,
        plan=landing.plan,
        attempt=landing.attempt,
        role=Role.GATE,
        sha=candidate.sha,
        tree=candidate.tree,
        commands=commands,
        still_mine=landing.still_mine,
        before=candidate.judged_parent or candidate.parent,
        exempt=facts.exempt,
        rewritten=(*facts.exempt, *facts.pinned),
        # A loop goes on until its gates are green, so they are its own.
        own=commands if loops(landing.plan, landing.task) else landing.task.acceptance,
    )


async def _judged(
    landing: Landing,
    candidate: Candidate,
    interrupt: asyncio.Event,
    facts: GateFiles,
    changes: Sequence[FileChange],
    *,
    without: Sequence[str] = (),
    old_files: bool = False,
) -> tuple[str | None, Verdict]:
    """Gate the candidate with everything that its author knows of, or without some of it."""
    top = landing.project.subfolder
    brought = tuple(inside(top, one.path) for one in changes if one.after is not None)
    ask = _asked(landing, candidate, facts)
    commands, own = (
        tuple(one for one in each if one.command not in without) for each in (ask.commands, ask.own)
    )
    gates = {gate.command for gate in landing.plan.gates}
    acceptance = tuple(one for one in own if one.command not in gates)
    # New test files could act on the tests of others, so only a command that names all of them shares a run.
    touched = () if old_files else (*facts.pinned, *facts.exempt)
    may_share = tuple(one for one in acceptance if names_all(one.command, landing.plan.gates, touched))
    may_be_empty = acceptance if old_files else ()
    ask = replace(ask, commands=commands, own=own, brought=brought)
    return await gated(landing, replace(ask, may_share=may_share, may_be_empty=may_be_empty), interrupt)


async def _judged_unseen(
    landing: Landing, candidate: Candidate, interrupt: asyncio.Event, facts: GateFiles
) -> Verdict:
    """Gate the candidate with its held-out checks. There is nothing to compare with: no tree before had their files."""
    held = landing.task.held_out
    ask = replace(
        _asked(landing, candidate, facts),
        commands=held_commands(held),
        own=held_commands(held),
        unseen=True,
        files=held_files(held),
        before=None,
        exempt=(),
        rewritten=(),
    )
    _, verdict = await gated(landing, ask, interrupt)
    return verdict


async def gated(landing: Landing, ask: Judging, interrupt: asyncio.Event) -> tuple[str | None, Verdict]:
    """Run a gate for an attempt, and return the id of its verdict beside that."""
    record, verdict = await judge_until_known(landing.world, landing.repository, ask, interrupt)
    return (record.id if record else None), verdict


async def _approve(
    landing: Landing,
    candidate: Candidate,
    top: str,
    record_id: str | None,
    facts: GateFiles,
    review_id: str | None,
) -> Attempt:
    def approve(tx: Tx) -> Attempt:
        if need(tx.get(Attempt, landing.attempt.id), "the attempt").interrupt:
            raise Interrupted  # once it is LANDING, a cancel is refused: so this is the last moment
        return move_attempt(
            tx,
            landing.attempt,
            AttemptState.LANDING,
            fence=landing.fence,
            about={"candidate": candidate.sha, "tree": candidate.tree},
            candidate_parent=candidate.parent,
            candidate_sha=candidate.sha,
            candidate_tree=candidate.tree,
            books_sha=top if top != candidate.sha else None,
            verdict_id=record_id,
            gate_files=facts,
            review_id=review_id,
        )

    return await landing.world.store.transact("attempt.landing", approve)


async def _swap(landing: Landing, tip: str) -> None:
    """Land the very commit that was gated, if the branch is still where it was gated."""
    attempt = landing.attempt
    landed = need(attempt.candidate_sha, "a candidate")
    new = attempt.books_sha or landed
    await landing.world.store.read(landing.still_mine)
    if not landing.world.may_act():
        raise LeaseLost("the lease lapsed before the landing")
    if tip == attempt.candidate_parent:
        swapped = await landing.repository.advance(landing.plan.branch, new=new, old=tip)
        if swapped:
            landing.place.landed(new)
            await _record_landed(landing, landed)
            return

    def again(tx: Tx) -> None:
        move_attempt(
            tx, attempt, AttemptState.CHECKING, fence=landing.fence, about={"why": "the branch moved"}
        )

    await landing.world.store.transact("attempt.recheck", again)


async def _record_landed(landing: Landing, sha: str) -> None:
    tree = await landing.repository.tree_of(sha)

    def landed(tx: Tx) -> None:
        current = need(tx.get(Attempt, landing.attempt.id), "the attempt")
        if current.state is AttemptState.CHECKING:
            current = move_attempt(tx, current, AttemptState.LANDING, fence=landing.fence)
        move_attempt(tx, current, AttemptState.LANDED, fence=landing.fence, about={"commit": sha})
        task = need(tx.get(Task, landing.task.id), "the task")
        if task.status is not TaskState.RUNNING:
            tx.update(Task, task.id, landed_sha=sha)  # cancelled after an earlier attempt had landed it
            return
        judged = tx.find(VerdictRecord, plan_id=task.plan_id, tree=tree)
        passed = [one.verdict for one in judged if one.verdict.status is VerdictStatus.PASSED]
        # An earlier attempt may have landed it, just before everything was killed.
        by = [one for one in tx.find(Attempt, task_id=task.id) if one.candidate_sha == sha]
        pinned = {one.gate_files.pinned_tree for one in by if one.gate_files is not None} - {None}
        judged += [one for each in pinned for one in tx.find(VerdictRecord, plan_id=task.plan_id, tree=each)]
        good = [one.verdict for one in judged if one.verdict.status is VerdictStatus.PASSED]
        outcome = task_outcome(
            status=TaskState.COMPLETE,
            landed=True,
            verdict=VerdictStatus.PASSED if passed else VerdictStatus.UNVERIFIED,
            # What failed before the work and still does is judged on the plan's final tree.
            capped=is_open(good) or any(lands_capped(tx, one) for one in by),
        )
        complete_task(tx, task, outcome=outcome, landed_sha=sha)

    await landing.world.store.transact("attempt.landed", landed)


async def _nothing_to_land(
    landing: Landing, candidate: Candidate, verdict: Verdict, record_id: str | None
) -> None:
    """An empty change is right only when the task's own acceptance proves that nothing was needed.

    Or when rounds landed before, and one after the other finds nothing more to do.
    """
    settled = await settles(landing.world, landing.plan, landing.task, landing.attempt, verdict)
    proves = landing.task.acceptance and verdict.status is VerdictStatus.PASSED
    if not proves and not settled:
        told = "The agent said that it was done, but it changed nothing."
        await reject(landing, Failure.NO_CHANGE, told, evidence=told)
        return

    await landing.place.first(lands=False)

    def proven(tx: Tx) -> None:
        moved = move_attempt(
            tx,
            landing.attempt,
            AttemptState.LANDING,
            fence=landing.fence,
            verdict_id=record_id,
            candidate_parent=candidate.parent,
            candidate_tree=candidate.tree,
        )
        move_attempt(
            tx, moved, AttemptState.LANDED, fence=landing.fence, detail="nothing had to be changed", about={}
        )
        task = need(tx.get(Task, landing.task.id), "the task")
        outcome = task_outcome(
            status=TaskState.COMPLETE, landed=False, verdict=verdict.status, capped=is_open([verdict])
        )
        complete_task(tx, task, outcome=outcome, landed_sha=None)

    await landing.world.store.transact("attempt.landed", proven)


async def reject(
    landing: Landing,
    failure: Failure,
    detail: str,
    *,
    evidence: str = "",
    counts: bool = True,
    **judged: Any,
) -> None:
    """End the attempt because of what was found out about its work."""
    await landing.place.first(lands=False)

    def over(tx: Tx) -> None:
        fail_attempt(
            tx,
            landing.world.ids,
            landing.attempt,
            Failed(failure=failure, detail=detail),
            fence=landing.fence,
            counts=counts,
            chance=landing.world.chance(),
            evidence=evidence,
            **judged,
        )

    await landing.world.store.transact("attempt.rejected", over)


def first_line(verdict: Verdict) -> str:
    """Say in one line what failed: names of checks, and what is wrong where that is known in words."""
    failing = [check for check in verdict.checks if check.status in ("failed", "error")]
    if not failing:
        return verdict.reason or "the gate failed"
    names = [check.name for check in failing if not is_sentence(check)]
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    failed = [f"{', '.join(names[:5])}{more} failed"] if names else []
    return "; ".join([*failed, *(check.name for check in failing if is_sentence(check))][:5])
