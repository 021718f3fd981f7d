"""Escalations: questions to the user about tasks that failed for good, for which nothing waits."""

from typing import Any

from loopwright.core.policy.escalations import CHAIN, GIVEN_UP, KIND, LEAVE, OPTIONS, words
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Plan, Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.failures import Failure
from loopwright.core.values.ids import Kind
from loopwright.core.values.states import QuestionState
from loopwright.ports import Ids, Tx


def escalate(tx: Tx, ids: Ids, plan: Plan, task: Task, attempt: Attempt, actor: str) -> None:
    """Ask the user what to do about a task that is not tried again.

    The question has no deadline with a default: the task already stays as it is, and nothing waits. An
    unanswered question of the task is not repeated. A plan that only answers its command line has none,
    because the same command requests it again.
    """
    if plan.policy.answer is not None or task.failure is Failure.UNANSWERED:
        return
    question = Question(
        id=ids(Kind.QUESTION),
        project_id=plan.project_id,
        loop_id=plan.loop_id,
        plan_id=plan.id,
        task_id=task.id,
        run_id=attempt.run_id or "",
        kind=KIND,
        key=GIVEN_UP,
        text=words(task.key, task.reason),
        options=(*OPTIONS, CHAIN) if task.dependents else OPTIONS,
        default=LEAVE,
        asked_by=(attempt.id,),
        created_at=tx.now(),
    )
    tx.insert(question)
    tx.append(
        happened("question_asked", actor, plan=plan, task=task, question=question.id, text=question.text)
    )


def open_ones(tx: Tx, *, plan_id: str = "", task_id: str = "") -> list[Question]:
    """Return the open escalations of a plan or of one task."""
    of: dict[str, Any] = {"task_id": task_id} if task_id else {"plan_id": plan_id}
    where = {"kind": KIND, "key": GIVEN_UP, "state": QuestionState.OPEN, **of}
    return tx.find(Question, order_by=("created_at",), **where)
