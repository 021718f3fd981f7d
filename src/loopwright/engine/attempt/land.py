"""From a finished run to a commit on the plan branch: check a candidate, and land exactly that commit.

`core.policy.landing` decides, `candidates` collects the facts, and `apply` carries the decision out.
"""

import asyncio
from dataclasses import replace
from typing import assert_never

from loopwright.core.gates.verdicts import evidence, task_outcome
from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.policy.landing import (
    AskPerson,
    AskReviewer,
    CannotTell,
    Complete,
    Decision,
    Found,
    GiveTurn,
    Land,
    Objection,
    Reject,
    SendBack,
)
from loopwright.core.policy.retry import Failed
from loopwright.core.receipts.gaps import is_open
from loopwright.core.rows.model import Attempt, Task, VerdictRecord
from loopwright.core.values.errors import CannotRun, FenceLost, LeaseLost
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Verdict, VerdictStatus
from loopwright.core.values.states import AttemptState, TaskState
from loopwright.engine.attempt.candidates import Built, build
from loopwright.engine.attempt.contradictions import ask_person, give_turn
from loopwright.engine.attempt.landing_line import Judged, Landing, LandingLines, Outdated, Place
from loopwright.engine.attempt.reviewing import ask_reviewer, lands_capped, send_back
from loopwright.engine.branch.branch import reverts, tip_of
from loopwright.engine.memory.interrupts import Interrupted
from loopwright.engine.rows.failing import fail_attempt
from loopwright.engine.rows.moves import change_attempt, complete_task, move_attempt, need
from loopwright.ports import Tx


async def check_and_land(landing: Landing, lines: LandingLines, interrupt: asyncio.Event) -> None:
    """Take the attempt to LANDED or to its end; return early if the branch moved, to be called again."""
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
    """Check the candidate on the expected tip of the branch, and land it if it passes; False to build it again."""
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
            # Not stopped by the user, but because the verdict would be about a tree that cannot land any more.
            if stop.is_set() and not interrupt.is_set():
                return False
            raise
    if attempt is not None:
        await _swap(replace(landing, attempt=attempt), ground)
    return True


async def _was_landed(landing: Landing, tip: str) -> bool:
    """Find out whether an earlier leg landed it, on the exact snapshot that the compare-and-swap will guard."""
    since = need(landing.task.first_base_sha, "a first base")
    tries, taken = await landing.world.store.read(
        lambda tx: (tx.find(Attempt, task_id=landing.task.id), reverts(tx))
    )
    # A commit that was never a candidate cannot have landed, even if it has a trailer.
    made = {one.candidate_sha for one in tries if one.candidate_sha is not None}
    if not made:
        return False
    task_id = landing.task.id
    already = await landing.repository.landed(tip, since=since, task_id=task_id, among=made, reverts=taken)
    if already is not None:
        await _record_landed(landing, already)
    return already is not None


async def _check(landing: Landing, tip: str, interrupt: asyncio.Event) -> Attempt | None:
    """Check the candidate; return the attempt if it may land, None if its row says what follows."""
    built = await build(landing, tip)
    if isinstance(built, Objection):
        await reject(landing, Reject(objections=(built,)))
        return None
    against = await built.objections()
    if not against:
        built = await built.ready()
    found, decision = await built.decide(built.found(against), interrupt)
    return await apply(built, found, decision)


async def apply(built: Built, found: Found, decision: Decision) -> Attempt | None:
    """Apply a decision; return the attempt if it may land now."""
    landing = built.landing
    match decision:
        case Land():
            await landing.place.first(lands=True)
            return await _approve(built, found, decision)
        case Complete():
            await landing.place.first(lands=False)
            await landing.world.store.transact(
                "attempt.landed", lambda tx: _complete(tx, built, found, decision)
            )
        case Reject():
            judged = _judged(built, found, decision.files) if found.verdict is not None else None
            await reject(landing, decision, judged)
        case CannotTell():
            await cannot_tell(landing, decision.verdict, _judged(built, found, decision.files))
        case GiveTurn() | AskReviewer() | SendBack() | AskPerson():
            name = (
                "attempt.review" if isinstance(decision, AskReviewer | SendBack) else "attempt.contradiction"
            )
            await landing.world.store.transact(name, lambda tx: _hand_on(tx, built, found, decision))
        case _:
            assert_never(decision)
    return None


def _judged(built: Built, found: Found, files: GateFiles | None) -> Judged:
    return Judged(parent=built.tip, tree=built.candidate.tree, verdict_id=found.verdict_id, files=files)


def _hand_on(
    tx: Tx, built: Built, found: Found, decision: GiveTurn | AskReviewer | SendBack | AskPerson
) -> None:
    """Let the agent, a reviewer or the user continue."""
    landing = built.landing
    current = change_attempt(tx, landing.attempt.id, landing.fence)
    if current.state is not AttemptState.CHECKING:
        raise FenceLost(f"{current.id} was carried on by a second run of the same leg")
    if current.interrupt:
        raise Interrupted
    match decision:
        case GiveTurn():
            give_turn(tx, landing, current, decision.files)
        case AskReviewer():
            if decision.files is not None:
                tx.update(Attempt, current.id, gate_files=decision.files)
            ask_reviewer(tx, landing, current, built.candidate, decision)
        case SendBack():
            send_back(tx, landing, current, decision.review, _judged(built, found, decision.files))
        case AskPerson():
            ask_person(tx, landing, current, decision, found.verdict_id)


async def cannot_tell(landing: Landing, verdict: Verdict, judged: Judged) -> None:
    """Try again later if the checks could not run; end the attempt if only the user can fix that."""
    if not verdict.lasting:
        raise CannotRun(f"the gate could not run: {verdict.reason}")
    objection = Objection(failure=Failure.CANNOT_CHECK, detail=verdict.reason, evidence=evidence(verdict))
    await reject(landing, Reject(objections=(objection,)), judged)


async def reject(landing: Landing, decision: Reject, judged: Judged | None = None) -> None:
    """End the attempt because of its work, once no other attempt is ahead of it."""
    await landing.place.first(lands=False)

    def end(tx: Tx) -> None:
        fail_attempt(
            tx,
            landing.world.ids,
            landing.attempt,
            Failed(failure=decision.failure, detail=decision.detail),
            fence=landing.fence,
            counts=True,
            chance=landing.world.chance(),
            evidence=decision.evidence,
            **(judged.columns if judged is not None else {}),
        )

    await landing.world.store.transact("attempt.rejected", end)


async def _approve(built: Built, found: Found, decision: Land) -> Attempt:
    landing, candidate = built.landing, built.candidate

    def approve(tx: Tx) -> Attempt:
        if need(tx.get(Attempt, landing.attempt.id), "the attempt").interrupt:
            raise Interrupted  # the last moment: once it is LANDING, a cancel is refused
        return move_attempt(
            tx,
            landing.attempt,
            AttemptState.LANDING,
            fence=landing.fence,
            about={"candidate": candidate.sha, "tree": candidate.tree},
            candidate_parent=candidate.parent,
            candidate_sha=candidate.sha,
            candidate_tree=candidate.tree,
            books_sha=built.top if built.top != candidate.sha else None,
            verdict_id=found.verdict_id,
            gate_files=decision.files,
            review_id=decision.review_id,
        )

    return await landing.world.store.transact("attempt.landing", approve)


def _complete(tx: Tx, built: Built, found: Found, decision: Complete) -> None:
    landing, verdict = built.landing, decision.verdict
    moved = move_attempt(
        tx,
        landing.attempt,
        AttemptState.LANDING,
        fence=landing.fence,
        verdict_id=found.verdict_id,
        candidate_parent=built.candidate.parent,
        candidate_tree=built.candidate.tree,
    )
    move_attempt(
        tx, moved, AttemptState.LANDED, fence=landing.fence, detail="nothing had to be changed", about={}
    )
    task = need(tx.get(Task, landing.task.id), "the task")
    outcome = task_outcome(
        status=TaskState.COMPLETE, landed=False, verdict=verdict.status, capped=is_open([verdict])
    )
    complete_task(tx, task, outcome=outcome, landed_sha=None)


async def _swap(landing: Landing, tip: str) -> None:
    """Land exactly the checked commit, if the branch is still where it was checked."""
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
            # Failures that existed before the work are judged on the plan's final tree.
            capped=is_open(good) or any(lands_capped(tx, one) for one in by),
        )
        complete_task(tx, task, outcome=outcome, landed_sha=sha)

    await landing.world.store.transact("attempt.landed", landed)
