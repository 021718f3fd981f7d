"""What follows an investigator's answer: the next healing step, or smaller tasks before the task itself.

The answer is a claim. It chooses the next step and agents get it as data; it never lands anything.
"""

from typing import Any

from loopwright.core.healing.steps import after_parts, told_by
from loopwright.core.replies.answers import Unreadable
from loopwright.core.replies.investigations import Investigation, read_investigation
from loopwright.core.rows.model import Attempt, Plan, Task
from loopwright.core.values.healing import HealStep
from loopwright.core.values.states import AttemptState, TaskState
from loopwright.engine.rows.added_tasks import add_parts
from loopwright.engine.rows.attempts import diagnosis_of
from loopwright.engine.rows.failing import give_up, next_healing
from loopwright.engine.rows.legs import Rows
from loopwright.engine.rows.moves import cancel_attempt, move_attempt, move_task, need
from loopwright.engine.rows.queue import new_attempt
from loopwright.ports import AgentResult, Ids, Tx


def answer_of(rows: Rows, result: AgentResult) -> Investigation | Unreadable:
    """Return an investigator's answer."""
    said = result.last_words or result.summary
    return read_investigation(result.structured, said, parts=rows.attempt.healing is HealStep.SPLIT)


def consulted(tx: Tx, ids: Ids, rows: Rows, answer: Investigation, *, fence: int, **saved: Any) -> None:
    """End an attempt that only answered, and do what follows from its answer."""
    current = need(tx.get(Attempt, rows.attempt.id), "the attempt")
    task = need(tx.get(Task, current.task_id), "the task")
    if task.status is TaskState.CANCELLED or current.interrupt == "cancel":
        cancel_attempt(tx, current, fence=fence, **saved)
        return
    why = f"{answer.cause.value}: {answer.why}"[:2000]
    # Its changes, if any, are discarded, so it blocks no other task.
    saved |= {"touched": ()}
    ended = move_attempt(tx, current, AttemptState.BROKEN, fence=fence, detail=why, interrupt="", **saved)
    plan = need(tx.get(Plan, current.plan_id), "the plan")
    task = need(tx.get(Task, task.id), "the task")
    if ended.healing is HealStep.SPLIT:
        _split(tx, ids, plan, task, ended, answer)
        return
    found = diagnosis_of(tx, task)
    told = told_by(need(found, "a diagnosis"), answer)
    advice = f"An investigator says: {answer.why}\n{answer.advice}".strip()
    if next_healing(tx, ids, plan, task, ended, told, evidence=ended.evidence, advice=advice) is None:
        reason = f"Likely cause: {told.because}. {answer.advice}"[:2000]
        give_up(tx, ids, plan, task, ended, reason, about={"reason": reason})


def _split(tx: Tx, ids: Ids, plan: Plan, task: Task, ended: Attempt, answer: Investigation) -> None:
    """Add the parts as tasks, in order, and the task itself after them."""
    parts, changes = add_parts(tx, ids, plan, task, [(one.title, one.description) for one in answer.parts])
    keys = [one.key for one in parts]
    following = new_attempt(
        tx, ids, plan, task, n=ended.n + 1, evidence=ended.evidence, advice=after_parts(keys)
    )
    move_task(
        tx,
        task,
        TaskState.QUEUED,
        "task_split",
        about={"parts": keys, "n": following.n},
        attempt_id=following.id,
        **changes,
    )
