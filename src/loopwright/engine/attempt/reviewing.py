"""Review a candidate before it lands: start the reviewer, and act on its findings.

The landing requests a review under its lock. The reviewer works without the lock, like any agent. Then the
landing decides again with current data, so the decision is made in one place.
"""

import logging
from typing import Any

from loopwright.core.policy.landing import AskReviewer
from loopwright.core.policy.red_first import must_show
from loopwright.core.policy.retry import Failed
from loopwright.core.receipts.gaps import landing_gaps
from loopwright.core.replies.answers import Unreadable
from loopwright.core.replies.reviews import (
    MOST_TRIES,
    Answer,
    blocking,
    in_words,
    outcome,
    place,
    read_answer,
)
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import AUTHORS, Attempt, Plan, Review, Run, Task
from loopwright.core.values.errors import FenceLost, GitFailed, UserError
from loopwright.core.values.failures import RULES, Failure, Level
from loopwright.core.values.ids import Kind
from loopwright.core.values.states import AttemptState, ReviewState, RunState
from loopwright.engine.attempt.agent_ends import end_run
from loopwright.engine.attempt.landing_line import Judged, Landing
from loopwright.engine.people.handover import HUMAN
from loopwright.engine.processes.runs import Ended
from loopwright.engine.rows.failing import fail_attempt
from loopwright.engine.rows.legs import Rows
from loopwright.engine.rows.moves import (
    MACHINE,
    cancel_attempt,
    change_attempt,
    move_attempt,
    move_review,
    move_run,
    need,
    next_run,
)
from loopwright.engine.rows.queue import new_review_run, new_run
from loopwright.engine.rows.world import World
from loopwright.ports import Candidate, Repository, Tx

log = logging.getLogger(__name__)


def ask_reviewer(
    tx: Tx, landing: Landing, attempt: Attempt, candidate: Candidate, asked: AskReviewer
) -> None:
    """Start a review of a candidate."""
    patch, why = asked.patch, asked.reasons
    policy = landing.plan.policy.review
    # The reviewer of the user's own work is the agent that would have done it.
    author = landing.task.agent or landing.plan.policy.agent if attempt.agent == HUMAN else attempt.agent
    agent = policy.agent or author
    review = Review(
        id=landing.world.ids(Kind.REVIEW),
        plan_id=landing.plan.id,
        task_id=landing.task.id,
        attempt_id=attempt.id,
        n=tx.count(Review, attempt_id=attempt.id) + 1,
        run_id="",
        agent=agent,
        model=policy.model or (attempt.model if agent == attempt.agent else None),
        parent_sha=candidate.parent,
        candidate_sha=candidate.sha,
        patch_sha256=patch.sha256,
        shown_whole=patch.is_whole,
        reasons=why or ("it contradicts existing checks",),
        contradicted=asked.contradicted,
        created_at=tx.now(),
    )
    tx.insert(review)
    run = new_review_run(tx, landing.world.ids, review)
    tx.update(Review, review.id, run_id=run.id)
    moved = move_attempt(
        tx,
        attempt,
        AttemptState.WORKING,
        fence=landing.fence,
        about={"review": review.id},
        run_id=run.id,
        # The user's work is on no particular machine yet; from now on the reviewer and its tree are on this one.
        host_id=attempt.host_id or landing.world.me.host_id,
    )
    told: dict[str, Any] = {"review": review.id, "patch_sha256": patch.sha256, "reasons": list(why)}
    tx.append(happened("review_asked", MACHINE, plan=landing.plan, attempt=moved, run=run, **told))


def send_back(tx: Tx, landing: Landing, attempt: Attempt, review: Review, judged: Judged) -> None:
    """Let the agent fix the findings, in the same workspace and conversation; end the attempt after too many turns.

    The user's own work goes back to the user.
    """
    found = blocking(review.findings)
    by_hand = attempt.agent == HUMAN
    if by_hand or attempt.fix_turns >= landing.plan.policy.review.max_turns:
        names = ", ".join(place(one) for one in found[:3]) + (" and more" if len(found) > 3 else "")
        turns = "1 turn" if attempt.fix_turns == 1 else f"{attempt.fix_turns} turns"
        still = "a reviewer objects" if by_hand else f"a reviewer still objects after {turns} to fix it"
        fail_attempt(
            tx,
            landing.world.ids,
            attempt,
            Failed(failure=Failure.REVIEW, detail=f"{still}: {names}"),
            fence=landing.fence,
            counts=True,
            chance=landing.world.chance(),
            evidence=f"An independent reviewer found what must not land:\n\n{in_words(found)}",
            review_id=review.id,
            **judged.columns,
        )
        return
    move_attempt(
        tx,
        attempt,
        AttemptState.WORKING,
        fence=landing.fence,
        about={"review": review.id, "blocking": len(found)},
        run_id=new_run(tx, landing.world.ids, attempt, landing.plan).id,
        review_id=review.id,
        fix_turns=attempt.fix_turns + 1,
    )


def author_of(tx: Tx, attempt: Attempt) -> Run:
    """Return the last run that worked on an attempt, without reviews."""
    runs = tx.find(Run, attempt_id=attempt.id, role=AUTHORS, order_by=("-created_at",), limit=1)
    return need(runs[0] if runs else None, "the author's run")


def lands_capped(tx: Tx, attempt: Attempt) -> bool:
    """Return whether an attempt's landed work counts as verified with gaps only."""
    review = tx.get(Review, attempt.review_id) if attempt.review_id else None
    task, plan = (
        need(tx.get(Task, attempt.task_id), "the task"),
        need(tx.get(Plan, attempt.plan_id), "the plan"),
    )
    return bool(
        landing_gaps(
            task.key,
            attempt.gate_files,
            must_show=must_show(task.origin, task.type, prove=task.prove),
            review=review.state if review else None,
            shown_whole=review is not None and review.shown_whole,
            held_out=bool(task.held_out),
            unseen_proof=plan.policy.unseen_proof,
        )
    )


async def take_in(
    world: World, rows: Rows, run: Run, ended: Ended, failed: Failed | None, *, fence: int
) -> None:
    """Record a reviewer's findings. Nothing else that it claims or changes counts."""
    repository = world.repository(rows.project)
    review = need(await world.store.read(lambda tx: tx.get(Review, run.label)), "the review")
    answer: Answer | Unreadable
    if failed is not None or ended.result is None:
        said = f"{failed.failure.value}: {failed.detail}" if failed else "it was lost"
        answer = Unreadable(problem=f"there was none, the run failed ({said[:300]})")
    else:
        patch = await repository.patch(review.parent_sha, review.candidate_sha)
        answer = read_answer(ended.result.structured, ended.result.last_words or ended.result.summary, patch)
    # The user can decide about contradicted checks, so their review is one call.
    hopeless = bool(review.contradicted) or (
        failed is not None and (failed.lasting or RULES[failed.failure].level is Level.NONE)
    )

    def over(tx: Tx) -> bool:
        current = change_attempt(tx, rows.attempt.id, fence)
        if current.state is not AttemptState.WORKING or current.run_id != run.id:
            raise FenceLost(f"{current.id} was carried on by a second run of the same leg")
        state = RunState.COMPLETE if failed is None else RunState.ERROR
        end_run(tx, world, run, state, ended, failure=failed.failure if failed else None)
        if current.interrupt == "cancel":
            cancel_attempt(tx, current, fence=fence)
            return True
        asked = need(tx.get(Review, review.id), "the review")
        if isinstance(answer, Unreadable):
            asked = tx.update(Review, asked.id, tries=asked.tries + 1, problem=answer.problem)
            if asked.tries < MOST_TRIES and not hopeless:
                following = next_run(tx, world.ids, current, rows.plan, run)
                change_attempt(tx, current.id, fence, run_id=following.id)
                return False
        _end(tx, asked, answer, need(tx.get(Run, run.id), "the run"))
        move_attempt(tx, current, AttemptState.CHECKING, fence=fence, run_id=author_of(tx, current).id)
        return True

    if await world.store.transact("review.over", over):
        await remove_tree(world, repository, review.id)


def _end(tx: Tx, review: Review, answer: Answer | Unreadable, run: Run) -> None:
    if isinstance(answer, Unreadable):
        move_review(tx, review, ReviewState.UNCLEAR, model=run.model)
        return
    state, problem = outcome(answer, decides=bool(review.contradicted))
    move_review(
        tx,
        review,
        state,
        model=run.model,
        summary=answer.summary,
        findings=answer.findings,
        problem=problem,
    )


async def give_up(world: World, rows: Rows, run: Run, why: str, *, fence: int) -> None:
    """End a review as unclear because its reviewer cannot start."""

    def over(tx: Tx) -> str:
        current = change_attempt(tx, rows.attempt.id, fence)
        if current.state is not AttemptState.WORKING or current.run_id != run.id:
            raise FenceLost(f"{current.id} was carried on by a second run of the same leg")
        move_run(tx, run, RunState.CANCELLED)
        review = tx.update(Review, need(run.label, "a review"), problem=why)
        move_review(tx, review, ReviewState.UNCLEAR)
        move_attempt(tx, current, AttemptState.CHECKING, fence=fence, run_id=author_of(tx, current).id)
        return review.id

    review_id = await world.store.transact("review.given_up", over)
    await remove_tree(world, world.repository(rows.project), review_id)


async def remove_tree(world: World, repository: Repository, review_id: str) -> None:
    """Remove the tree that a reviewer read, with all its changes."""
    path = world.paths.tree(review_id)
    try:
        world.forget_sessions(world.paths.user(review_id))
        if repository.has_workspace(path):
            await repository.remove_workspace(path)
    except (GitFailed, UserError, OSError) as trouble:
        # The review stands even if files were left behind.
        log.warning("tree of a review kept", extra={"review": review_id, "why": str(trouble)})
