"""Plans and their tasks: look at them, and decide about them."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Body
from pydantic import BaseModel, Field

from loopwright.server.context import Home, Operator, Reader
from loopwright.server.shapes import (
    Camel,
    GateResult,
    PlanDocument,
    RunDocument,
    gate_result,
    plan_document,
    run_document,
)
from loopwright.services.remote import planning, plans

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


class DispatchPlan(BaseModel):
    """How to dispatch a draft."""

    parallel: bool = Field(default=True, description="Run tasks at the same time.")
    despite: str = Field(default="", max_length=2000, description="Why to run it against its evaluation.")


class DispatchedRun(Camel):
    """The run of a task."""

    task_id: str
    run_id: str | None


class DispatchedPlan(Camel):
    """A plan that was dispatched."""

    plan_id: str
    status: str
    runs: list[DispatchedRun]
    executed_at: datetime | None


class VerifiedPlan(Camel):
    """A plan that was judged."""

    plan_id: str
    status: str
    verify_run_id: str | None
    gate_result: GateResult | None
    verified_at: datetime | None


@router.post("/{plan_id}/dispatch")
async def dispatch(
    plan_id: str, home: Home, caller: Operator, how: DispatchPlan | None = None
) -> DispatchedPlan:
    """Dispatch a draft: create the run of every task."""
    how = how or DispatchPlan()
    record = await planning.dispatch_plan(
        home.at, caller, plan_id, parallel=how.parallel, despite=how.despite
    )
    return DispatchedPlan(
        plan_id=record.plan.id,
        status=record.plan.status.value,
        runs=[DispatchedRun(task_id=one.task.id, run_id=one.run_id) for one in record.tasks],
        executed_at=record.plan.executed_at,
    )


@router.post("/{plan_id}/verify")
async def verify(plan_id: str, home: Home, caller: Operator) -> VerifiedPlan:
    """Run the complete gate of a plan, and wait for its result."""
    plan = (await planning.verify_plan(home.at, caller, plan_id)).plan
    return VerifiedPlan(
        plan_id=plan.id,
        status=plan.status.value,
        verify_run_id=plan.verify_run_id,
        gate_result=gate_result(plan),
        verified_at=plan.verified_at,
    )


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
