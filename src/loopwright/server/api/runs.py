"""Runs and what they printed."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from loopwright.core.values.documents import document
from loopwright.server.api.questions import check_answer
from loopwright.server.context import Home, Operator, Reader
from loopwright.server.shapes import Logs, logs_document
from loopwright.services.remote import plans, questions

router = APIRouter(prefix="/api/runs", tags=["runs"])


class Respond(BaseModel):
    """An answer to the question of a run."""

    response: str = Field(max_length=20_000)


class Responded(BaseModel):
    """An answer that was taken."""

    plan_id: str
    result: str


@router.get("/{run_id}")
async def get_run(run_id: str, home: Home, caller: Reader) -> dict[str, Any]:
    """Return everything that is known of a run."""
    return document(await plans.get_run(home.at, caller, run_id))


@router.get("/{run_id}/logs")
async def get_logs(
    run_id: str,
    home: Home,
    caller: Reader,
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=5000)] = 500,
) -> Logs:
    """Return what a run printed, from a position on."""
    return logs_document(await plans.run_log(home.at, caller, run_id, offset=offset, limit=limit))


@router.post("/{run_id}/respond")
async def respond(run_id: str, answer: Respond, home: Home, caller: Operator) -> Responded:
    """Answer the question that a run asked."""
    check_answer(answer.response)
    taken = await questions.respond(home.at, caller, run_id, answer.response)
    return Responded(plan_id=taken.plan_id, result=taken.command.result)
