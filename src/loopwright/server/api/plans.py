"""Plans and their tasks: look at them, and decide about them."""

from typing import Annotated, Literal

from fastapi import APIRouter, Body
from pydantic import BaseModel, Field

from loopwright.server.context import Home, Operator, Reader
from loopwright.server.shapes import PlanDocument, RunDocument, plan_document, run_document
from loopwright.services.remote import plans

router = APIRouter(prefix="/api/plans", tags=["plans"])


class Result(BaseModel):
    """What a decision came to."""

    command: str = Field(description="The id of its record.")
    result: str
    notes: list[str]


class Retry(BaseModel):
    """How to try a task again."""

    note: str | None = Field(default=None, max_length=20_000, description="What the agent should know.")
    agent: str | None = Field(default=None, max_length=64)
    model: str | None = Field(default=None, max_length=200)


@router.get("/{plan_id}")
async def get_plan(plan_id: str, home: Home, caller: Reader) -> PlanDocument:
    """Return a plan with its tasks."""
    return plan_document(await plans.get_plan(home.at, caller, plan_id))


@router.get("/{plan_id}/runs")
async def list_runs(plan_id: str, home: Home, caller: Reader) -> list[RunDocument]:
    """List the runs of a plan, the oldest first."""
    return [run_document(one) for one in await plans.plan_runs(home.at, caller, plan_id)]


@router.post("/{plan_id}/{action}")
async def decide(
    plan_id: str,
    action: Literal["pause", "resume", "stop", "cancel", "reverify"],
    home: Home,
    caller: Operator,
    now: Annotated[bool, Body(embed=True)] = False,
) -> Result:
    """Pause, resume, stop or cancel a plan, or verify it again."""
    decided = await plans.decide_plan(home.at, caller, plan_id, action, now=now)
    return Result(command=decided.command.id, result=decided.command.result, notes=list(decided.notes))


@router.post("/{plan_id}/tasks/{task}/retry")
async def retry(plan_id: str, task: str, home: Home, caller: Operator, how: Retry | None = None) -> Result:
    """Give a task another attempt."""
    how = how or Retry()
    decided = await plans.decide_task(
        home.at, caller, plan_id, task, "retry", note=how.note, agent=how.agent, model=how.model
    )
    return Result(command=decided.command.id, result=decided.command.result, notes=list(decided.notes))


@router.post("/{plan_id}/tasks/{task}/cancel")
async def cancel(plan_id: str, task: str, home: Home, caller: Operator) -> Result:
    """Give a task up."""
    decided = await plans.decide_task(home.at, caller, plan_id, task, "cancel")
    return Result(command=decided.command.id, result=decided.command.result, notes=list(decided.notes))
