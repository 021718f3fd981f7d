"""Plans and their tasks: look at them, and decide about them."""

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Literal

from fastapi import APIRouter, Body, Header, Query, Response
from pydantic import BaseModel, Field

from loopwright.core.plans.draft_edits import DraftEdit, DraftTask
from loopwright.core.values.access import Caller
from loopwright.core.values.states import PlanState
from loopwright.server.context import Home, Operator, Reader, Served, Writer
from loopwright.server.problems import NotModified
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
from loopwright.services.homes.caller import expected_version
from loopwright.services.remote import drafting, planning, plans
from loopwright.services.remote.plans import PlanRecord

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


@router.get("/{plan_id}", responses={304: {"description": "It is as you saw it."}})
async def get_plan(
    plan_id: str,
    home: Home,
    caller: Reader,
    response: Response,
    if_none_match: Annotated[str | None, Header(max_length=200)] = None,
) -> PlanDocument:
    """Return a plan with its tasks."""
    record = await plans.get_plan(home.at, caller, plan_id)
    tag = f'"{record.version}"'
    if if_none_match == tag:
        raise NotModified(tag)
    response.headers["ETag"] = tag
    return plan_document(record)


@router.get("/{plan_id}/runs")
async def list_runs(plan_id: str, home: Home, caller: Reader) -> list[RunDocument]:
    """List the runs of a plan, the oldest first."""
    return [run_document(one) for one in await plans.plan_runs(home.at, caller, plan_id)]


class DispatchPlan(BaseModel):
    """How to dispatch a draft."""

    parallel: bool = Field(default=True, description="Run tasks at the same time.")
    despite: str = Field(default="", max_length=2000, description="Why to run it against its evaluation.")


class VerifyPlan(BaseModel):
    """How to verify a plan."""

    partial: bool = Field(default=False, description="Give up the tasks that failed, and judge what landed.")


class Fail(BaseModel):
    """Why a plan failed."""

    reason: str = Field(min_length=1, max_length=2000)


class Replan(BaseModel):
    """How to plan again."""

    goal: str = Field(default="", max_length=20_000, description="Empty for the goal of the plan.")
    model: str | None = Field(default=None, max_length=200)
    autonomy: Literal["manual", "supervised", "auto"] | None = None


class EditTask(Camel):
    """A task of a draft as it should be; a part that is left out stays as it is."""

    task_id: str = Field(
        min_length=1, max_length=128, description="Its id or its key; a new key adds a task."
    )
    title: str | None = Field(default=None, min_length=1, max_length=500)
    description: str | None = Field(default=None, max_length=20_000)
    priority: int | None = Field(default=None, ge=0, le=1000)
    dependencies: list[str] | None = Field(default=None, max_length=200, description="Ids or keys.")
    criteria: list[str] | None = Field(default=None, max_length=100)
    acceptance: list[str] | None = Field(
        default=None, max_length=100, description="Commands that must pass; they need the scope `admin`."
    )


class EditDraft(Camel):
    """A draft as it should be."""

    title: str | None = Field(default=None, min_length=1, max_length=500)
    tasks: list[EditTask] | None = Field(
        default=None, min_length=1, max_length=1000, description="All tasks in their order."
    )

    def edit(self) -> DraftEdit:
        """Return it as a value."""
        return DraftEdit(
            title=self.title, tasks=None if self.tasks is None else tuple(map(_edited, self.tasks))
        )


def _edited(task: EditTask) -> DraftTask:
    def many(values: list[str] | None) -> tuple[str, ...] | None:
        return None if values is None else tuple(values)

    return DraftTask(
        key=task.task_id,
        title=task.title,
        description=task.description,
        priority=task.priority,
        depends_on=many(task.dependencies),
        criteria=many(task.criteria),
        acceptance=many(task.acceptance),
    )


class DispatchedRun(Camel):
    """The run of a task."""

    task_id: str
    run_id: str | None


class DispatchedPlan(Camel):
    """A plan that was dispatched."""

    plan_id: str
    status: PlanState
    runs: list[DispatchedRun]
    executed_at: datetime | None


class VerifiedPlan(Camel):
    """A plan that was judged."""

    plan_id: str
    status: PlanState
    verify_run_id: str | None
    gate_result: GateResult | None
    verified_at: datetime | None


Wait = Annotated[float, Query(ge=0, le=60, description="Seconds to wait for the result.")]


async def awaited_plan(
    home: Served, caller: Caller, made: PlanRecord, response: Response, wait: float
) -> PlanDocument:
    """Return a draft, after waiting for its tasks; the status says whether they are there."""
    if wait:
        made = await planning.until(home.at, caller, made.plan.id, planning.is_planned, seconds=wait)
    if planning.is_planned(made.plan):
        response.status_code = HTTPStatus.OK
    response.headers["ETag"] = f'"{made.version}"'
    return plan_document(made)


@router.patch("/{plan_id}")
async def edit(
    plan_id: str, wanted: EditDraft, home: Home, caller: Writer, response: Response
) -> PlanDocument:
    """Change the title or the tasks of a draft; it is evaluated again."""
    record = await drafting.edit_draft(home.at, caller, plan_id, wanted.edit(), version=expected_version())
    response.headers["ETag"] = f'"{record.version}"'
    return plan_document(record)


@router.post("/{plan_id}/dispatch")
async def dispatch(
    plan_id: str, home: Home, caller: Writer, how: DispatchPlan | None = None
) -> DispatchedPlan:
    """Dispatch a draft: create the run of every task."""
    how = how or DispatchPlan()
    record = await planning.dispatch_plan(
        home.at, caller, plan_id, parallel=how.parallel, despite=how.despite
    )
    return DispatchedPlan(
        plan_id=record.plan.id,
        status=record.plan.status,
        runs=[DispatchedRun(task_id=one.task.id, run_id=one.run_id) for one in record.tasks],
        executed_at=record.plan.executed_at,
    )


@router.post(
    "/{plan_id}/verify",
    status_code=HTTPStatus.ACCEPTED,
    responses={200: {"model": VerifiedPlan, "description": "With `wait`: the complete gate has finished."}},
)
async def verify(
    plan_id: str,
    home: Home,
    caller: Writer,
    response: Response,
    how: VerifyPlan | None = None,
    wait: Wait = 0,
) -> VerifiedPlan:
    """Run the complete gate of a plan whose tasks are settled, or of a failed one again.

    The answer comes at once, with the plan VERIFYING. With a failed task it is 409: retry the task, verify with
    `partial`, or fail the plan.
    """
    record = await planning.verify_plan(home.at, caller, plan_id, partial=(how or VerifyPlan()).partial)
    if wait:
        record = await planning.until(home.at, caller, plan_id, planning.is_judged, seconds=wait)
    plan = record.plan
    if planning.is_judged(plan):
        response.status_code = HTTPStatus.OK
    return VerifiedPlan(
        plan_id=plan.id,
        status=plan.status,
        verify_run_id=plan.verify_run_id,
        gate_result=gate_result(record),
        verified_at=plan.verified_at,
    )


@router.post("/{plan_id}/fail")
async def fail(plan_id: str, why: Fail, home: Home, caller: Writer) -> Result:
    """End a plan as FAILED; what landed stays on its branch."""
    return result_of(await planning.fail_plan(home.at, caller, plan_id, why.reason))


@router.post("/{plan_id}/replan", status_code=HTTPStatus.ACCEPTED)
async def replan(
    plan_id: str,
    home: Home,
    caller: Operator,
    response: Response,
    how: Replan | None = None,
    wait: Wait = 0,
) -> PlanDocument:
    """Have a new plan made in place of a draft, or of one that FAILED or was cancelled."""
    how = how or Replan()
    made = await drafting.plan_again(
        home.at, caller, plan_id, goal=how.goal, model=how.model, autonomy=how.autonomy
    )
    return await awaited_plan(home, caller, made, response, wait)


@router.post("/{plan_id}/pause")
async def pause(
    plan_id: str, home: Home, caller: Writer, now: Annotated[bool, Body(embed=True)] = False
) -> Result:
    """Start nothing new in a plan; with `now`, interrupt its agents too."""
    return result_of(await plans.decide_plan(home.at, caller, plan_id, "pause", now=now))


@router.post("/{plan_id}/resume")
async def resume(plan_id: str, home: Home, caller: Writer) -> Result:
    """Continue a paused or stopped plan."""
    return result_of(await plans.decide_plan(home.at, caller, plan_id, "resume"))


@router.post("/{plan_id}/stop")
async def stop(plan_id: str, home: Home, caller: Writer) -> Result:
    """Stop a plan: interrupt its agents and keep their work."""
    return result_of(await plans.decide_plan(home.at, caller, plan_id, "stop"))


@router.post("/{plan_id}/cancel")
async def cancel(plan_id: str, home: Home, caller: Writer) -> Result:
    """Give a plan up for good; what landed stays on its branch."""
    return result_of(await plans.decide_plan(home.at, caller, plan_id, "cancel"))


@router.post("/{plan_id}/reverify")
async def reverify(plan_id: str, home: Home, caller: Writer) -> Result:
    """Run the complete gate of a failed plan again."""
    return result_of(await plans.decide_plan(home.at, caller, plan_id, "reverify"))


@router.post("/{plan_id}/tasks/{task}/retry")
async def retry(plan_id: str, task: str, home: Home, caller: Writer, how: Retry | None = None) -> Result:
    """Give a task another attempt."""
    how = how or Retry()
    decided = await plans.decide_task(
        home.at, caller, plan_id, task, "retry", note=how.note, agent=how.agent, model=how.model
    )
    return result_of(decided)


@router.patch("/{plan_id}/tasks/{task}")
async def change(plan_id: str, task: str, wanted: ChangeTask, home: Home, caller: Writer) -> PlanDocument:
    """Change the priority of a task, or the agent and the model of its next attempt."""
    record = await plans.change_task(
        home.at, caller, plan_id, task, priority=wanted.priority, agent=wanted.agent, model=wanted.model
    )
    return plan_document(record)


@router.post("/{plan_id}/tasks", status_code=HTTPStatus.CREATED)
async def inject(plan_id: str, wanted: InjectTask, home: Home, caller: Writer) -> PlanDocument:
    """Add a task to a plan that is under way."""
    return plan_document(await plans.inject_task(home.at, caller, plan_id, wanted.item()))


@router.post("/{plan_id}/tasks/{task}/reset")
async def reset(plan_id: str, task: str, home: Home, caller: Writer) -> Result:
    """Let a task start over with no attempt used up; its history is kept."""
    decided = await plans.decide_task(home.at, caller, plan_id, task, "reset")
    return result_of(decided)


@router.post("/{plan_id}/tasks/{task}/skip")
async def skip(plan_id: str, task: str, home: Home, caller: Writer, why: Skip | None = None) -> Result:
    """Give a task up."""
    decided = await plans.decide_task(
        home.at, caller, plan_id, task, "skip", note=why.reason if why else None
    )
    return result_of(decided)


def result_of(decided: Decision) -> Result:
    """Return what a decision came to as a document."""
    return Result(command=decided.command.id, result=decided.command.result, notes=list(decided.notes))
