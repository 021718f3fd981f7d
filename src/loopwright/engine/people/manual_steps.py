"""Manual steps: the question that asks the user to do one, and the effect of the answer."""

from loopwright.core.policy.manual_steps import DONE, FAILED, KIND, OPTIONS, SKIP, meaning, outcome_of, words
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Outcome, Plan, Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.errors import Refused
from loopwright.core.values.ids import Kind
from loopwright.core.values.states import QuestionState, TaskState
from loopwright.engine.rows.moves import (
    MACHINE,
    complete_task,
    move_question,
    move_task,
    need,
    note_completion,
)
from loopwright.ports import Ids, Tx


def ask_by_hand(tx: Tx, ids: Ids, task: Task) -> None:
    """Ask the user to do a step. The question has no deadline, and only what depends on the step waits for it."""
    plan = need(tx.get(Plan, task.plan_id), "the plan")
    question = Question(
        id=ids(Kind.QUESTION),
        project_id=plan.project_id,
        loop_id=plan.loop_id,
        plan_id=plan.id,
        task_id=task.id,
        run_id="",
        kind=KIND,
        key=task.id,
        text=words(task.title, task.description, task.criteria),
        options=OPTIONS,
        created_at=tx.now(),
    )
    tx.insert(question)
    task = move_task(tx, task, TaskState.AWAITING_RESPONSE, "task_awaiting")
    asked = happened(
        "question_asked", MACHINE, plan=plan, task=task, question=question.id, text=question.text
    )
    tx.append(asked)


def open_steps(tx: Tx, plan_id: str) -> list[Question]:
    """Return the questions about the manual steps of a plan."""
    return tx.find(Question, plan_id=plan_id, kind=KIND, state=QuestionState.OPEN, order_by=("created_at",))


def take_answer(tx: Tx, question: Question, text: str, actor: str) -> str:
    """Settle a manual step as the user answers; return what happened, in words."""
    found = meaning(text)
    if found is None:
        raise Refused(
            f"{text!r} is not an answer to this question",
            code="answer_not_offered",
            hint=f"answer {DONE}, {SKIP} or {FAILED}; add words after a colon, such as '{FAILED}: WHY'",
        )
    option, note = found
    task = need(tx.get(Task, question.task_id), "the task")
    move_question(tx, question, QuestionState.ANSWERED, actor, answer=f"{option}: {note}" if note else option)
    reason = outcome_of(option, note)
    if option == DONE:
        complete_task(tx, task, outcome=Outcome.UNVERIFIED, landed_sha=None, actor=actor, reason=reason)
        return f"{task.key} is done by hand"
    if option == SKIP:
        changes = {"reason": reason, "outcome": Outcome.CANCELLED}
        move_task(tx, task, TaskState.CANCELLED, "task_cancelled", actor, **changes)
        note_completion(tx, task)
        return f"{task.key} is skipped; what depends on it continues"
    about = {"reason": reason}
    changes = {"reason": reason, "outcome": Outcome.NEEDS_HUMAN}
    move_task(tx, task, TaskState.ERROR, "task_failed", actor, about=about, **changes)
    return f"{task.key} failed"
