"""Plans and their tasks: look at them, and decide about them."""

from datetime import datetime
from http import HTTPStatus
from typing import Annotated

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
from loopwright.services.control.decisions import Decision
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


class Skip(BaseModel):
    """Why a task is given up."""

    reason: str = Field(default="", max_length=2000)


class ChangeTask(BaseModel):
    """What to change in a task."""

    priority: int | None = Field(default=None, ge=0, le=100, description="Lower goes first.")
    agent: str | None = Field(default=None, max_length=64)
    model: str | None = Field(default=None, max_length=200)


class InjectTask(BaseModel):
    """A task to add."""

    key: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
    title: str = Field(min_length=1, max_length=500)
    description: str = Field(default="", max_length=20_000)
    criteria: list[str] = Field(default_factory=list, max_length=100)
    acceptance: list[str] = Field(
        default_factory=list,
        max_length=100,
        description="Commands that must pass; they need the scope `admin`.",
    )
    priority: int = Field(default=50, ge=0, le=100)

    def item(self) -> plans.NewTask:
        """Return it as a value."""
        return plans.NewTask(
            key=self.key,
            title=self.title,
            description=self.description,
            criteria=tuple(self.criteria),
            acceptance=tuple(self.acceptance),
            priority=self.priority,
        )


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


@router.post("/{plan_id}/pause")
async def pause(
    plan_id: str, home: Home, caller: Operator, now: Annotated[bool, Body(embed=True)] = False
) -> Result:
    """Start nothing new in a plan; with `now`, interrupt its agents too."""
    return result_of(await plans.decide_plan(home.at, caller, plan_id, "pause", now=now))


@router.post("/{plan_id}/resume")
async def resume(plan_id: str, home: Home, caller: Operator) -> Result:
    """Continue a paused or stopped plan."""
    return result_of(await plans.decide_plan(home.at, caller, plan_id, "resume"))


@router.post("/{plan_id}/stop")
async def stop(plan_id: str, home: Home, caller: Operator) -> Result:
    """Stop a plan: interrupt its agents and keep their work."""
    return result_of(await plans.decide_plan(home.at, caller, plan_id, "stop"))


@router.post("/{plan_id}/cancel")
async def cancel(plan_id: str, home: Home, caller: Operator) -> Result:
    """Give a plan up for good; what landed stays on its branch."""
    return result_of(await plans.decide_plan(home.at, caller, plan_id, "cancel"))


@router.post("/{plan_id}/reverify")
async def reverify(plan_id: str, home: Home, caller: Operator) -> Result:
    """Run the complete gate of a failed plan again."""
    return result_of(await plans.decide_plan(home.at, caller, plan_id, "reverify"))


@router.post("/{plan_id}/tasks/{task}/retry")
async def retry(plan_id: str, task: str, home: Home, caller: Operator, how: Retry | None = None) -> Result:
    """Give a task another attempt."""
    how = how or Retry()
    decided = await plans.decide_task(
        home.at, caller, plan_id, task, "retry", note=how.note, agent=how.agent, model=how.model
    )
    return result_of(decided)


@router.patch("/{plan_id}/tasks/{task}")
async def change(plan_id: str, task: str, wanted: ChangeTask, home: Home, caller: Operator) -> PlanDocument:
    """Change the priority of a task, or the agent and the model of its next attempt."""
    record = await plans.change_task(
        home.at, caller, plan_id, task, priority=wanted.priority, agent=wanted.agent, model=wanted.model
    )
    return plan_document(record)


@router.post("/{plan_id}/tasks", status_code=HTTPStatus.CREATED)
async def inject(plan_id: str, wanted: InjectTask, home: Home, caller: Operator) -> PlanDocument:
    """Add a task to a plan that is under way."""
    return plan_document(await plans.inject_task(home.at, caller, plan_id, wanted.item()))


@router.post("/{plan_id}/tasks/{task}/reset")
async def reset(plan_id: str, task: str, home: Home, caller: Operator) -> Result:
    """Let a task start over with no attempt used up; its history is kept."""
    decided = await plans.decide_task(home.at, caller, plan_id, task, "reset")
    return result_of(decided)


@router.post("/{plan_id}/tasks/{task}/skip")
async def skip(plan_id: str, task: str, home: Home, caller: Operator, why: Skip | None = None) -> Result:
    """Give a task up."""
    decided = await plans.decide_task(
        home.at, caller, plan_id, task, "skip", note=why.reason if why else None
    )
    return result_of(decided)


def result_of(decided: Decision) -> Result:
    """Return what a decision came to as a document."""
    return Result(command=decided.command.id, result=decided.command.result, notes=list(decided.notes))
