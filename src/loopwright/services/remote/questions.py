"""Questions: list the open ones, and answer them."""

from collections.abc import Mapping
from typing import Final

from loopwright.core.gates import contradictions
from loopwright.core.policy import budget
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values import access
from loopwright.core.values.access import Caller
from loopwright.core.values.errors import NotAllowed, Refused
from loopwright.core.values.states import QuestionState
from loopwright.engine.views.question_views import QuestionView, question_view
from loopwright.ports import Tx
from loopwright.services.homes.session import Session
from loopwright.services.questions import Answered, Scope, answer
from loopwright.services.remote.pages import Asked, Page, find_page
from loopwright.services.remote.seen import acting, seen_project, seen_question, seen_run, seen_where

_WIDENING: Final[Mapping[str, str]] = {
    "permission": "what an agent may do",
    contradictions.KIND: "the checks that judge the work",
    budget.ASKED: "the budget",
}
"""Kinds of questions that an agent's token cannot answer, and what they decide about."""


async def open_questions(
    at: Session, caller: Caller, page: Asked, *, project_id: str | None = None
) -> Page[QuestionView]:
    """Return the questions that wait for an answer, the oldest first."""

    def load(tx: Tx) -> Page[QuestionView]:
        where = seen_where(tx, caller, project_id)
        rows = find_page(tx, Question, page, order_by=("created_at",), state=QuestionState.OPEN, **where)
        return rows.map(lambda one: question_view(tx, one))

    return await at.home.store.read(load)


async def answer_question(
    at: Session, caller: Caller, question_id: str, text: str, *, scope: Scope = "run", other: bool = False
) -> Answered:
    """Answer a question; one that could widen the sandbox, the gates or the budget needs an admin."""
    question = await at.home.store.read(lambda tx: seen_question(tx, caller, question_id))
    if question.kind in _WIDENING and not caller.may(access.Scope.ADMIN):
        raise NotAllowed(
            f"the answer decides about {_WIDENING[question.kind]}, so it needs a token with the scope `admin`",
            code="answer_needs_admin",
        )
    project = await at.home.store.read(lambda tx: seen_project(tx, caller, question.project_id))
    with acting(at, caller, project):
        return await answer(at, question.id, text, scope=scope, other=other)


async def respond(at: Session, caller: Caller, run_id: str, text: str) -> Answered:
    """Answer a run's question."""

    def find(tx: Tx) -> Question | None:
        run = seen_run(tx, caller, run_id)
        asked = tx.find(Question, plan_id=run.plan_id, state=QuestionState.OPEN, order_by=("created_at",))
        mine = [
            one
            for one in asked
            if one.run_id == run.id or (run.attempt_id and run.attempt_id in one.asked_by)
        ]
        return mine[0] if mine else None

    question = await at.home.store.read(find)
    if question is None:
        raise Refused(
            f"the run {run_id} waits for no answer",
            code="no_open_question",
            hint="GET /api/needs-response lists what does",
        )
    return await answer_question(at, caller, question.id, text, other=True)
