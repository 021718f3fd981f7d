"""Views of questions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from loopwright.core.gates.contradictions import KIND as CONTRADICTION
from loopwright.core.policy import budget as budgets
from loopwright.core.policy.escalations import is_given_up
from loopwright.core.policy.manual_steps import KIND as MANUAL
from loopwright.core.rows.model import Attempt, Plan, Project, Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.errors import NotFound
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import QuestionState
from loopwright.engine.people.manual_steps import open_steps
from loopwright.engine.rows.escalations import open_ones
from loopwright.engine.rows.projects import Checkouts, project_ids
from loopwright.engine.rows.questions import of_plan
from loopwright.ports import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionView:
    """One question, and the tasks that wait for its answer."""

    id: str
    kind: str
    text: str
    options: tuple[str, ...]
    default: str | None
    state: QuestionState
    answer: str | None
    holds_for: str
    answered_by: str
    project: str
    plan_id: str
    tasks: tuple[str, ...]
    """The names of the tasks that asked."""
    key: str = ""
    asked_at: datetime
    deadline: datetime | None

    @property
    def is_given_up(self) -> bool:
        """Whether it asks what to do about a task that failed for good."""
        return is_given_up(self.kind, self.key)

    @property
    def is_contradiction(self) -> bool:
        """Whether it asks if work may contradict existing checks."""
        return self.kind == CONTRADICTION

    @property
    def is_manual(self) -> bool:
        """Whether it asks the user to do a manual step."""
        return self.kind == MANUAL

    @property
    def is_about_budget(self) -> bool:
        """Whether it asks if more may be spent."""
        return self.kind == budgets.ASKED


def question_view(tx: Tx, question: Question) -> QuestionView:
    """Return one question."""
    project = tx.get(Project, question.project_id)
    attempts = tx.find(Attempt, id=question.asked_by) if question.asked_by else []
    ids = [one.task_id for one in attempts] or ([question.task_id] if question.kind == MANUAL else [])
    tasks = tx.find(Task, id=ids, order_by=("position",)) if ids else []
    return QuestionView(
        id=question.id,
        kind=question.kind,
        key=question.key,
        text=question.text,
        options=question.options,
        default=question.default,
        state=question.state,
        answer=question.answer,
        holds_for=question.holds_for,
        answered_by=question.answered_by,
        project=project.name if project else "",
        plan_id=question.plan_id,
        tasks=tuple(dict.fromkeys(one.key for one in tasks)),
        asked_at=question.created_at,
        deadline=question.deadline,
    )


def asked_in_plan(tx: Tx, plan: Plan, attempts: Sequence[Attempt]) -> tuple[QuestionView, ...]:
    """Return the open questions that a plan or its attempts wait for."""
    ids = dict.fromkeys(asked for attempt in attempts for asked in attempt.questions)
    order = ("created_at",)
    found = tx.find(Question, id=list(ids), state=QuestionState.OPEN, order_by=order) if ids else []
    budget = tx.find(Question, plan_id=plan.id, kind=budgets.ASKED, state=QuestionState.OPEN, order_by=order)
    result = [one for one in of_plan(tx, plan.id) if one.state is QuestionState.OPEN]
    given_up = open_ones(tx, plan_id=plan.id) if plan.failed_tasks else []
    by_hand = open_steps(tx, plan.id)
    return tuple(question_view(tx, one) for one in (*budget, *result, *by_hand, *found, *given_up))


def list_questions(
    tx: Tx, *, project_path: Checkouts | None = None, closed: bool = False
) -> list[QuestionView]:
    """Return the open questions, of one project or of all; with `closed`, settled ones too."""
    where: dict[str, Any] = {} if closed else {"state": QuestionState.OPEN}
    if project_path is not None:
        where["project_id"] = project_ids(tx, project_path)
    return [question_view(tx, one) for one in tx.find(Question, order_by=("created_at",), **where)]


def find_question(tx: Tx, text: str) -> Question:
    """Find a question by its id or the beginning of one."""
    exact = tx.get(Question, text)
    if exact is not None:
        return exact
    known = tx.find(Question, order_by=("created_at",))
    bare = text.removeprefix("ask_")
    found = [one for one in known if bare and one.id.removeprefix("ask_").startswith(bare)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(short_id(one.id) for one in found)
        raise NotFound(
            f"{text!r} could be any of {names}", code="question_ambiguous", hint="give more of the id"
        )
    raise NotFound(
        f"there is no question {text!r}", code="question_not_found", hint="`loopwright answer` lists them"
    )
