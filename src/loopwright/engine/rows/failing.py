"""What follows for a task when its attempt did not land: another attempt, a healing step, or the user."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from loopwright.core.healing.diagnosis import LEAST, Diagnosis
from loopwright.core.healing.steps import may_heal
from loopwright.core.policy import fallback, rounds
from loopwright.core.policy.retry import After, Again, Failed, GiveUp, after_failure
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Outcome, Plan, Task
from loopwright.core.values.failures import RULES, Failure, Level
from loopwright.core.values.healing import CONSULTS, HealStep
from loopwright.core.values.states import AttemptState, RunState, TaskState
from loopwright.engine.rows import healing, lessons
from loopwright.engine.rows.attempts import diagnosis_of, note_failure
from loopwright.engine.rows.escalations import escalate
from loopwright.engine.rows.moves import (
    MACHINE,
    cancel_attempt,
    end_open_runs,
    move_attempt,
    move_task,
    need,
    withdraw_questions,
    withdraw_reviews,
)
from loopwright.engine.rows.queue import new_attempt
from loopwright.ports import Ids, Tx


def fail_attempt(
    tx: Tx,
    ids: Ids,
    attempt: Attempt,
    failed: Failed,
    *,
    fence: int | None,
    counts: bool,
    chance: float,
    evidence: str = "",
    **changes: Any,
) -> Task:
    """End an attempt that did not land, and decide what follows for its task."""
    task = need(tx.get(Task, attempt.task_id), "the task")
    asked = need(tx.get(Attempt, attempt.id), "the attempt").interrupt
    if task.status is TaskState.CANCELLED or asked == "cancel":
        # It was cancelled, or is to be begun again, while it failed by itself: nothing follows from that.
        cancel_attempt(tx, attempt, fence=fence, failure=failed.failure, detail=failed.detail, **changes)
        return task
    target = AttemptState.REJECTED if counts else AttemptState.BROKEN
    about: dict[str, Any] = {"failure": failed.failure.value, "detail": failed.detail[:1000]}
    end_open_runs(tx, attempt, RunState.ERROR, failure=failed.failure)
    ended = move_attempt(
        tx,
        attempt,
        target,
        fence=fence,
        about=about,
        failure=failed.failure,
        detail=failed.detail,
        interrupt="",
        **changes,
    )
    withdraw_questions(tx, ended)
    withdraw_reviews(tx, ended)
    plan = need(tx.get(Plan, attempt.plan_id), "the plan")
    noted = note_failure(tx, ids, plan, ended)
    if noted is not None and plan.policy.auto_refine:
        lessons.propose(tx, ids, plan.project_id, signature=noted.signature)
    if task.taken_by:
        return _back_to_person(tx, ids, plan, task, ended, failed, evidence)
    after, stopped = _after(tx, plan, task, ended, failed, chance)
    over = isinstance(after, GiveUp) or RULES[failed.failure].level is not Level.CALL
    waits = healing.restore(tx, plan, task) if over and ended.healing is HealStep.BYPASS else None
    if waits is not None:
        return _wait_again(tx, ids, plan, task, ended, waits)
    facts: dict[str, Any] = {
        "attempts": after.attempts,
        "call_failures": after.call_failures,
        "races": after.races,
        "failure": failed.failure,
        "failure_mark": failed.mark,
    }
    match after:
        case GiveUp(reason=reason):
            task = replace(task, attempts=after.attempts)
            if may_heal(plan, task, failed) and (found := diagnosis_of(tx, task)) is not None:
                healing.fail_open(tx, plan, task)
                # An attempt that only answers was not judged: the earlier failure still holds.
                told = evidence if counts and ended.healing not in CONSULTS else ended.evidence
                if healed := next_healing(tx, ids, plan, task, ended, found, evidence=told, facts=facts):
                    return healed
            likely = _likely_cause(tx, plan, task, failed.failure)
            text = " ".join(filter(None, (reason, likely, failed.detail)))[:2000]
            about = {"failure": failed.failure.value, "reason": reason}
            about |= {"stopped": stopped.value} if stopped else {}
            about |= {"signature": noted.signature} if noted else {}
            return give_up(tx, ids, plan, task, ended, text, about=about, facts=facts)
        case Again(at=at):
            # A problem of the machine teaches nothing: the earlier evidence still holds.
            told = evidence if counts else ended.evidence
            task, because = hand_on(tx, plan, task, ended, failed.failure)
            n = ended.n + 1
            # Within a healing step only problems of a machine or a service get here: it gets its attempt again.
            following = new_attempt(
                tx,
                ids,
                plan,
                task,
                n=n,
                evidence=told,
                stands_in=because,
                healing=ended.healing,
                advice=ended.advice,
            )
            about = {"failure": failed.failure.value, "n": following.n, "at": at.isoformat()}
            return move_task(
                tx,
                task,
                TaskState.QUEUED,
                "task_retried",
                about=about,
                attempt_id=following.id,
                not_before=at,
                **facts,
            )


def _after(
    tx: Tx, plan: Plan, task: Task, ended: Attempt, failed: Failed, chance: float
) -> tuple[After, rounds.Stop | None]:
    """Decide what follows a failed attempt: by the rules of loops for a round."""
    after = after_failure(task, failed, plan.policy, now=tx.now(), chance=chance)
    if not rounds.loops(plan, task):
        return after, None
    same = rounds.unchanged(tx.find(Attempt, task_id=task.id), ended)
    return rounds.after_red(after, task, failed, plan, same=same, now=tx.now())


def _wait_again(tx: Tx, ids: Ids, plan: Plan, task: Task, ended: Attempt, waits: Mapping[str, Any]) -> Task:
    """Let a task wait for its failed dependencies again: the try without them uses up no attempt."""
    following = new_attempt(tx, ids, plan, task, n=ended.n + 1)
    about: dict[str, Any] = {"failure": (ended.failure or Failure.GATE).value, "n": following.n}
    return move_task(
        tx, task, TaskState.QUEUED, "task_retried", about=about, attempt_id=following.id, **waits
    )


def next_healing(
    tx: Tx,
    ids: Ids,
    plan: Plan,
    task: Task,
    ended: Attempt,
    found: Diagnosis,
    *,
    evidence: str,
    facts: Mapping[str, Any] = MappingProxyType({}),
    advice: str = "",
) -> Task | None:
    """Begin the next healing step for a task that failed for good; None if the user has to decide."""
    begun = healing.begin(tx, ids, plan, task, found, n=ended.n + 1, evidence=evidence, advice=advice)
    if begun is None:
        return None
    about = {
        "step": begun.row.step.value,
        "cause": begun.row.cause.value,
        "signature": begun.row.signature,
        "because": begun.row.because,
        "n": begun.attempt.n,
    }
    return move_task(
        tx,
        begun.task,
        TaskState.QUEUED,
        "task_healing",
        about=about,
        attempt_id=begun.attempt.id,
        not_before=None,
        **{**facts, **begun.changes},
    )


def give_up(
    tx: Tx,
    ids: Ids,
    plan: Plan,
    task: Task,
    ended: Attempt,
    reason: str,
    *,
    about: Mapping[str, Any],
    facts: Mapping[str, Any] = MappingProxyType({}),
) -> Task:
    """Leave a task to the user, and ask."""
    unverified = facts.get("failure", task.failure) is Failure.UNVERIFIED
    given_up = move_task(
        tx,
        task,
        TaskState.ERROR,
        "task_failed",
        about=about,
        reason=reason,
        outcome=Outcome.UNVERIFIED if unverified else Outcome.NEEDS_HUMAN,
        **facts,
    )
    escalate(tx, ids, plan, given_up, ended, MACHINE)
    return given_up


def _likely_cause(tx: Tx, plan: Plan, task: Task, failure: Failure) -> str:
    """Return why judged work failed repeatedly, in a sentence; empty if it did not."""
    judged = RULES[failure].level is Level.ATTEMPT
    if not judged or plan.policy.answer is not None or rounds.loops(plan, task):
        return ""
    found = diagnosis_of(tx, task)
    return f"Likely cause: {found.because}." if found is not None and len(found.tried) >= LEAST else ""


def _back_to_person(
    tx: Tx, ids: Ids, plan: Plan, task: Task, ended: Attempt, failed: Failed, evidence: str
) -> Task:
    """Leave a task with the user whose work did not pass: that uses up no attempt of agents."""
    following = new_attempt(tx, ids, plan, task, n=ended.n + 1, evidence=evidence)
    about: dict[str, Any] = {"failure": failed.failure.value, "reason": failed.detail[:1000]}
    return move_task(
        tx,
        task,
        TaskState.QUEUED,
        "task_not_accepted",
        about=about,
        attempt_id=following.id,
        failure=failed.failure,
        reason=failed.detail[:2000],
    )


def hand_on(tx: Tx, plan: Plan, task: Task, attempt: Attempt, failure: Failure) -> tuple[Task, str]:
    """Pass a task to the next agent of its chain if the failure allows it; return the task, and why."""
    following = fallback.handed_on(task, failure, plan.policy)
    if following is None:
        return task, attempt.stands_in if task.passed_over else ""
    because = fallback.why(attempt.agent, attempt.model, failure)
    told: dict[str, Any] = {
        "was": fallback.entry(attempt.agent, attempt.model),
        "agent": following[0],
        "model": following[1],
        "because": because,
    }
    tx.append(happened("task_handed_on", MACHINE, plan=plan, task=task, attempt=attempt, **told))
    return tx.update(Task, task.id, passed_over=task.passed_over + 1, call_failures=0), because
