"""Questions that agents and Loopwright ask you: list them and answer them.

Not here: the other decisions (`services.control`), what an answer does to rows (`engine.rows.questions`).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from loopwright.core.policy.escalations import RETRY, is_given_up, meaning
from loopwright.core.rows.model import Command, Loop, Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.states import LoopState
from loopwright.engine.views.question_views import QuestionView, find_question, question_view
from loopwright.engine.views.question_views import list_questions as _list
from loopwright.services.homes.read_only_home import glancing, project_here

if TYPE_CHECKING:
    from loopwright.services.homes.session import Session

__all__ = ["Answered", "QuestionView", "Scope", "answer", "list_questions", "show_question"]


def list_questions(*, everything: bool = False) -> tuple[QuestionView, ...]:
    """Return the open questions of this repository; `everything` adds other repositories and settled ones."""
    project = None if everything else project_here()
    with glancing() as look:
        return tuple(look.store.read_sync(lambda tx: _list(tx, project_path=project, closed=everything)))


def show_question(question: str) -> QuestionView:
    """Return one question; an id or the beginning of one names it."""
    with glancing() as look:
        return look.store.read_sync(lambda tx: question_view(tx, find_question(tx, question)))


Scope = Literal["run", "loop", "project"]
"""How far the answer to a permission request goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer that was taken."""

    command: Command
    """Its record; `result` is the result in words."""
    plan_id: str
    needs_worker: bool
    """Whether the plan can continue and no process works on it."""


async def answer(
    at: "Session", question: str, text: str, *, scope: Scope = "run", other: bool = False
) -> Answered:
    """Answer a question by its id or the beginning of it; `other` allows an answer that is not an option."""
    store = at.home.store
    row = await store.read(lambda tx: find_question(tx, question))
    await _refuse_another_attempt(at, row, text)
    # Listing questions loads no parts of a worker.
    from loopwright.services.control.sending import is_worked_on, send

    command = await send(at, "answer", row.id, {"answer": text, "for": scope, "other": other})
    loop = await store.read(lambda tx: tx.get(Loop, row.loop_id))
    # A task that the user left failed, or cancelled, may leave nothing to continue with.
    rests = is_given_up(row.kind, row.key) and loop is not None and loop.state is not LoopState.RUNNING
    needs_worker = not rests and not await is_worked_on(at.home, row.project_id)
    return Answered(command=command, plan_id=row.plan_id, needs_worker=needs_worker)


async def _refuse_another_attempt(at: "Session", question: Question, text: str) -> None:
    """Refuse an answer that retries a task if `retry` would refuse it."""
    if not is_given_up(question.kind, question.key) or (meaning(text) or ("", ""))[0] != RETRY:
        return
    task = await at.home.store.read(lambda tx: tx.get(Task, question.task_id))
    if task is not None:
        # Listing questions loads no parts of a worker.
        from loopwright.services.control.decisions import check_another_attempt, refuse_changed_checks

        await refuse_changed_checks(at, task)
        await check_another_attempt(at, task)
