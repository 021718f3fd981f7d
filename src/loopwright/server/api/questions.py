"""Questions that wait for your answer."""

from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from loopwright.core.values.documents import document
from loopwright.core.values.errors import Refused
from loopwright.server.context import Home, Operator, Paging, Reader
from loopwright.server.shapes import NEXT, SnakeRequest
from loopwright.services.remote import questions

router = APIRouter(prefix="/api", tags=["questions"])


class Answer(SnakeRequest):
    """An answer."""

    answer: str = Field(max_length=20_000)
    scope: Literal["run", "loop", "project"] = Field(
        default="run", description="How far the answer to a permission request goes."
    )
    other: bool = Field(default=False, description="Allow an answer that is not one of the options.")


class QuestionPage(BaseModel):
    """Some questions."""

    questions: list[dict[str, Any]]
    next: str | None = NEXT


class Taken(BaseModel):
    """An accepted answer."""

    plan_id: str
    result: str


def check_answer(text: str) -> None:
    """Refuse an empty answer."""
    if not text.strip():
        raise Refused("the answer is empty", code="answer_empty", hint="say what the agent should do")


@router.get("/needs-response")
async def needs_response(
    home: Home, caller: Reader, page: Paging, project: str | None = None
) -> QuestionPage:
    """List the questions that wait for an answer, the oldest first."""
    found = await questions.open_questions(home.at, caller, page, project_id=project)
    return QuestionPage(questions=[document(one) for one in found.items], next=found.next)


@router.post("/questions/{question_id}/answer")
async def answer(question_id: str, said: Answer, home: Home, caller: Operator) -> Taken:
    """Answer a question."""
    check_answer(said.answer)
    taken = await questions.answer_question(
        home.at, caller, question_id, said.answer, scope=said.scope, other=said.other
    )
    return Taken(plan_id=taken.plan_id, result=taken.command.result)
