"""What follows when a run of an attempt's agent has ended.

`settle_run` saves the work, `after_run` decides what follows, as a pure function, and `apply` writes it in
one transaction.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, assert_never

from loopwright.core.gates.contradictions import has_had_its_turn
from loopwright.core.gates.gates import task_commands
from loopwright.core.policy.fallback import handed_on, meant
from loopwright.core.policy.graph import kept, strayed
from loopwright.core.policy.retry import Failed, pause_until
from loopwright.core.replies.answers import Unreadable
from loopwright.core.replies.investigations import Investigation
from loopwright.core.replies.qa import TYPE, QaReport
from loopwright.core.replies.questions import Asking
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Review, Role, Run, Task
from loopwright.core.values.failures import RULES, Failure, Level
from loopwright.core.values.states import AttemptState, RunState
from loopwright.engine.attempt.agent_ends import (
    end_run,
    failure_of,
    is_answer,
    is_over_budget,
    put_answer,
    stop_over_budget,
)
from loopwright.engine.attempt.agent_runs import PAUSED
from loopwright.engine.attempt.consulting import answer_of, consulted
from loopwright.engine.attempt.qa import report_of
from loopwright.engine.attempt.reviewing import take_in
from loopwright.engine.intake import doc_sync
from loopwright.engine.integrity.gate_scripts import inside
from loopwright.engine.money import quotas
from loopwright.engine.money.spending import is_reviewed_out
from loopwright.engine.processes.runs import Ended
from loopwright.engine.rows import questions
from loopwright.engine.rows.failing import fail_attempt, hand_on
from loopwright.engine.rows.legs import Rows
from loopwright.engine.rows.moves import MACHINE, cancel_attempt, move_attempt, need
from loopwright.engine.rows.ref_names import attempt_ref, commit_subject, trailers
from loopwright.engine.rows.world import World
from loopwright.ports import Tx, able

FORGOTTEN = "its conversation is gone: it continues in a new one"
"""Why an attempt starts a new conversation, with only its workspace and its prompt."""

_NAMED = 20
"""The most paths outside a task's scope that an event names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    """A run of an agent that has ended."""

    run: Run
    ended: Ended
    strayed: str = ""
    """What it wrote outside its workspace, in words; empty if nothing."""
    asked: tuple[Asking, ...] = ()
    resumed: bool = False
    """Whether it should have continued a conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """Where the work of an attempt is saved."""

    tip_sha: str
    agent_sha: str | None = None
    touched: tuple[str, ...] = ()
    refused: str = ""
    """The parts of the agent's git folder that lead out of its workspace, in words; empty if none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Other facts that decide what follows the end of a run."""

    can: frozenset[str] = frozenset()
    """The agent's capabilities."""
    saved: Saved | None = None
    """None for a reviewer, whose changes are not kept."""
    answered: bool = False
    """Whether it gave an answer that a check can judge."""
    review_budget_spent: bool = False
    """Whether it was stopped by the limit on reviews, and not by one that pauses the loop."""
    decides: bool = False
    """Whether it reviews contradicted checks: the user can decide about those too, so nothing waits for the review."""
    crashed_before: bool = False
    """Whether an earlier run of the attempt crashed."""


# --- what can follow -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PauseForBudget:
    """The run may cost no more: keep the work and pause the loop."""


@dataclass(frozen=True, slots=True)
class Park:
    """The run was stopped: keep the work until the loop continues."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Wait for the user's answer; the slot is free in the meantime."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Have the work checked."""

    qa: QaReport | None = None
    """The report of a QA review; its changes are discarded."""


@dataclass(frozen=True, slots=True)
class WaitForService:
    """Try the same agent again later."""

    failed: Failed
    calls: int
    """How many calls of the task have failed so far."""


@dataclass(frozen=True, slots=True)
class NewConversation:
    """Let the agent continue in the same workspace, with a summary of the work and the answers.

    Only its memory is gone: another attempt would discard the work, and the user's answers with it.
    """

    failed: Failed


@dataclass(frozen=True, slots=True)
class HandOn:
    """Let the next agent of the fallback chain continue in the same workspace."""

    failed: Failed


@dataclass(frozen=True, slots=True)
class EndAttempt:
    """The attempt failed; `counts` is whether its work is the cause."""

    failed: Failed
    counts: bool


@dataclass(frozen=True, slots=True)
class EndReview:
    """Read a reviewer's answer; `failed` is the reason if there is none."""

    failed: Failed | None = None


@dataclass(frozen=True, slots=True)
class Consulted:
    """An investigator answered: its answer decides what follows for the task."""

    answer: Investigation


Written = (
    PauseForBudget | Park | Ask | Judge | WaitForService | NewConversation | HandOn | EndAttempt | Consulted
)
Next = Written | EndReview

_TRANSACTIONS: Final[dict[type[Written], str]] = {
    PauseForBudget: "attempt.over_budget",
    Park: "attempt.interrupted",
    Ask: "attempt.asking",
    Judge: "attempt.checking",
    WaitForService: "attempt.waiting",
    NewConversation: "attempt.forgotten",
    HandOn: "attempt.handed_on",
    EndAttempt: "attempt.failed",
    Consulted: "attempt.consulted",
}


# --- the decision ----------------------------------------------------------------------------------------


def after_run(end: EndedRun, rows: Rows, known: Known) -> Next:
    """Decide what follows the end of a run."""
    ended, result, saved = end.ended, end.ended.result, known.saved
    if is_over_budget(end.run, ended, known.can):
        if not known.review_budget_spent:
            return PauseForBudget()
        why = "it has cost as much as the reviews of its task may"
        return _over(end, Failed(failure=Failure.BUDGET, detail=why, lasting=True), counts=False)
    if ended.excess:
        return _over(end, failure_of(ended), counts=False)
    # "asked" without our interrupt: a worker ended its agents quickly, before it could record that.
    if ended.interrupted or (ended.exit.ended_by == "asked" and not (result and result.claimed)):
        return Park()
    if end.strayed and not (result is not None and result.failure and RULES[result.failure].parks):
        return _over(end, Failed(failure=Failure.STRAY_WRITE, detail=end.strayed), counts=True)
    if saved is not None and saved.refused:
        detail = f"{saved.refused}. Its own commits were not read; the files that it left are kept."
        return _over(end, Failed(failure=Failure.LINKED_GIT, detail=detail), counts=True)
    if end.asked:
        return Ask()
    if known.answered or (result is not None and result.claimed) or _speaks_for_itself(end, rows, saved):
        return _claimed(end, rows)
    return _after_failure(end, rows, known, failure_of(ended))


def _after_failure(end: EndedRun, rows: Rows, known: Known, failed: Failed) -> Next:
    """Decide what follows a run that did not claim to be done."""
    reviews, rule = end.run.role is Role.REVIEWER, RULES[failed.failure]
    calls = rows.task.call_failures + (not rule.closes)
    if rule.parks and not (reviews and known.decides) and calls <= rows.plan.policy.max_call_retries:
        return WaitForService(failed, calls)
    if reviews:
        return EndReview(failed)
    if _is_forgotten(end, failed) and not known.crashed_before:
        return NewConversation(failed)
    if has_had_its_turn(rows.attempt):
        # The work was finished before this turn: what the workspace contains is checked however the turn ended.
        return _claimed(end, rows)
    counts = rule.level is Level.ATTEMPT
    if not counts and handed_on(rows.task, failed.failure, rows.plan.policy):
        return HandOn(failed)
    return EndAttempt(failed, counts)


def _claimed(end: EndedRun, rows: Rows) -> Next:
    """Have the work checked; a reviewer's answer is read instead."""
    if end.run.role is Role.REVIEWER:
        return EndReview()
    if end.run.role is Role.INVESTIGATOR:
        answer = answer_of(rows, need(end.ended.result, "a result"))
        if isinstance(answer, Unreadable):
            failed = Failed(failure=Failure.AGENT_ERROR, detail=f"The answer is of no use: {answer.problem}.")
            return EndAttempt(failed, counts=True)
        return Consulted(answer)
    if rows.task.type != TYPE:
        return Judge()
    report = report_of(rows.plan, rows.task, need(end.ended.result, "a result"))
    if isinstance(report, Unreadable):
        return EndAttempt(Failed(failure=Failure.LOOK, detail=report.problem), counts=True)
    return Judge(report)


def _over(end: EndedRun, failed: Failed, *, counts: bool) -> Next:
    """End the attempt, or only the review: a reviewer's failure is not the attempt's fault."""
    return EndReview(failed) if end.run.role is Role.REVIEWER else EndAttempt(failed, counts)


def _speaks_for_itself(end: EndedRun, rows: Rows, saved: Saved | None) -> bool:
    """Return whether there is work to check although its agent does not claim it.

    If nothing checks the work, only the agent's end is known.
    """
    result, plan, task = end.ended.result, rows.plan, rows.task
    if (
        end.run.role is Role.INVESTIGATOR
        or result is None
        or not result.by_work
        or task.type == TYPE
        or plan.policy.answer is not None
    ):
        return False
    return saved is not None and bool(saved.touched) and bool(task_commands(plan, task))


def _is_forgotten(end: EndedRun, failed: Failed) -> bool:
    """Return whether the agent lost the conversation that it should have continued: none began."""
    result = end.ended.result
    return end.resumed and failed.failure is Failure.CRASH and result is not None and not result.session_ref


# --- the effects -----------------------------------------------------------------------------------------


async def settle_run(world: World, rows: Rows, end: EndedRun, *, fence: int) -> bool:
    """Save the work, then do what follows; return whether the leg has more to do."""
    answered = await _put_answer(world, rows, end)
    saved = None if end.run.role is Role.REVIEWER else await _save(world, rows, end)
    known = await world.store.read(lambda tx: _known(tx, world, rows, end, saved, answered=answered))
    return await apply(world, rows, end, saved, after_run(end, rows, known), fence=fence)


async def _put_answer(world: World, rows: Rows, end: EndedRun) -> bool:
    """Save the answer of a run whose task is to answer; return whether a check can judge it."""
    answering, result = rows.plan.policy.answer, end.ended.result
    if answering is None or result is None or end.asked or not is_answer(result):
        return False
    await put_answer(world, rows, answering, result)
    return True


async def _save(world: World, rows: Rows, end: EndedRun) -> Saved:
    """Save what the workspace contains."""
    snapshot = await world.repository(rows.project).snapshot(
        Path(need(rows.attempt.workspace, "a workspace")),
        base_sha=need(rows.attempt.base_sha, "a base"),
        ref=attempt_ref(rows.attempt),
        subject=commit_subject(rows.task),
        trailers=trailers(rows.attempt, end.run),
        at=end.ended.exit.ended_at,
    )
    return Saved(
        tip_sha=snapshot.sha,
        agent_sha=snapshot.agent_sha,
        touched=kept(inside(rows.project.subfolder, path) for path in snapshot.changed),
        refused=snapshot.refused,
    )


def _known(tx: Tx, world: World, rows: Rows, end: EndedRun, saved: Saved | None, *, answered: bool) -> Known:
    run = end.run
    agent = world.agent(run.agent or rows.attempt.agent)
    review = tx.get(Review, run.label) if run.role is Role.REVIEWER else None
    crashed = tx.find(Run, attempt_id=rows.attempt.id, role=run.role, failure=Failure.CRASH)
    return Known(
        can=able(agent, rows.plan.policy.agents.get(agent.name, {})),
        saved=saved,
        answered=answered,
        review_budget_spent=is_reviewed_out(tx, run, end.ended.over),
        decides=review is not None and bool(review.contradicted),
        crashed_before=any(one.id != run.id for one in crashed),
    )


async def apply(
    world: World, rows: Rows, end: EndedRun, saved: Saved | None, following: Next, *, fence: int
) -> bool:
    """Apply a decision; return whether the leg has more to do."""
    if isinstance(following, EndReview):
        await take_in(world, rows, end.run, end.ended, following.failed, fence=fence)
        return True
    where: dict[str, Any] = {}
    if saved is not None:
        where = {"tip_sha": saved.tip_sha, "agent_sha": saved.agent_sha, "touched": saved.touched}
    return await world.store.transact(
        _TRANSACTIONS[type(following)], lambda tx: _write(tx, world, rows, end, following, where, fence=fence)
    )


def _write(
    tx: Tx, world: World, rows: Rows, end: EndedRun, following: Written, where: dict[str, Any], *, fence: int
) -> bool:
    run, ended, attempt = end.run, end.ended, rows.attempt
    match following:
        case PauseForBudget():
            return stop_over_budget(tx, world, attempt, run, ended, fence=fence, **where)
        case Judge(qa=report):
            # The changes of a QA review are discarded, so it blocks no other task.
            found = {} if report is None else {"qa": report, "touched": ()}
            _have_checked(tx, world, rows, end, {**where, **found}, fence=fence)
            return True
        case EndAttempt(failed=failed, counts=counts):
            _end(tx, world, end, failed)
            fail(tx, world, attempt, failed, fence=fence, counts=counts, **where)
            return True
        case Consulted(answer=answer):
            end_run(tx, world, run, RunState.COMPLETE, ended)
            consulted(tx, world.ids, rows, answer, fence=fence, **where)
            return True
        case Park():
            end_run(tx, world, run, RunState.CANCELLED, ended)
        case Ask():
            end_run(tx, world, run, RunState.AWAITING_RESPONSE, ended)
        case WaitForService() | NewConversation() | HandOn():
            _end(tx, world, end, following.failed)
        case _:
            assert_never(following)
    # The attempt waits now, unless the user cancelled it in the meantime.
    current: Attempt = need(tx.get(Attempt, attempt.id), "the attempt")
    if current.interrupt == "cancel":
        cancel_attempt(tx, attempt, fence=fence, **where)
        return True
    if isinstance(following, Ask):
        questions.wait_for_answers(tx, world.ids, rows.plan, current, run, end.asked, fence=fence, **where)
        return False
    waits = _waits(tx, world, rows, run, current, following)
    move_attempt(tx, attempt, AttemptState.WAITING, fence=fence, **waits, **where)
    return False


def _waits(
    tx: Tx,
    world: World,
    rows: Rows,
    run: Run,
    current: Attempt,
    following: Park | WaitForService | NewConversation | HandOn,
) -> dict[str, Any]:
    """Return what to write on a waiting attempt: for what, until when, and its event."""
    match following:
        case Park():
            # If no pause was requested, it continues as soon as the loop runs.
            wake_at = None if current.interrupt else tx.now()
            return {"interrupt": "", "wait_reason": PAUSED, "wake_at": wake_at}
        case WaitForService(failed=failed, calls=calls):
            rule = RULES[failed.failure]
            if rule.closes:
                waits = quotas.parked(tx, run, failed)
            else:
                chance = world.chance()
                at = pause_until(rule, calls, now=tx.now(), retry_at=failed.retry_at, chance=chance)
                waits = {"wake_at": at, "wait_reason": failed.detail[:500] or rule.advice}
                tx.update(Task, rows.task.id, call_failures=calls)
            about = {"until": waits["wake_at"].isoformat(), "failure": failed.failure.value}
            return {"about": about, **waits}
        case NewConversation():
            return {"about": {"because": FORGOTTEN}, "wake_at": tx.now(), "wait_reason": FORGOTTEN}
        case HandOn(failed=failed):
            task, because = hand_on(tx, rows.plan, rows.task, current, failed.failure)
            agent, model = meant(task, rows.plan.policy)
            return {
                "about": {"agent": agent, "model": model, "because": because},
                "agent": agent,
                "model": model,
                "account": None,
                "stands_in": because,
                "wake_at": tx.now(),
                "wait_reason": because,
            }


def _have_checked(
    tx: Tx, world: World, rows: Rows, end: EndedRun, where: dict[str, Any], *, fence: int
) -> None:
    moved = move_attempt(tx, rows.attempt, AttemptState.CHECKING, fence=fence, **where)
    if outside := strayed(moved.touched, rows.task.scope):
        named = list(outside[:_NAMED])
        tx.append(
            happened("scope_left", MACHINE, plan=rows.plan, attempt=moved, paths=named, count=len(outside))
        )
    result = end.ended.result
    unusable = Failure.CRASH if result is None else None if result.claimed else result.failure
    state = RunState.ERROR if unusable else RunState.COMPLETE
    end_run(tx, world, end.run, state, end.ended, failure=unusable)
    doc_sync.note(tx, rows.plan, moved, (result.last_words or result.summary) if result else "")


def _end(tx: Tx, world: World, end: EndedRun, failed: Failed) -> None:
    end_run(tx, world, end.run, RunState.ERROR, end.ended, failure=failed.failure, retry_at=failed.retry_at)


def fail(
    tx: Tx, world: World, attempt: Attempt, failed: Failed, *, fence: int, counts: bool, **saved: Any
) -> None:
    """End an attempt, with advice for the next one."""
    fail_attempt(
        tx,
        world.ids,
        attempt,
        failed,
        fence=fence,
        counts=counts,
        chance=world.chance(),
        evidence=f"{RULES[failed.failure].advice}\n{failed.detail}",
        **saved,
    )
