"""Plans and their tasks: show them, and decide about them."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response

from loopwright.core.values.access import Caller
from loopwright.core.values.states import PlanState
from loopwright.server.context import Home, Operator, Paging, Reader, Served, Writer
from loopwright.server.plan_bodies import (
    ChangeTask,
    DispatchedPlan,
    DispatchedRun,
    DispatchPlan,
    EditDraft,
    Fail,
    InjectTask,
    Pause,
    Replan,
    Result,
    Retry,
    Skip,
    VerifiedPlan,
    VerifyPlan,
)
from loopwright.server.problems import NotModified
from loopwright.server.shapes import (
    PlanDetail,
    PlanDocument,
    PlanPage,
    RunPage,
    gate_result,
    plan_detail,
    plan_document,
    run_document,
)
from loopwright.services.control.decisions import Decision
from loopwright.services.remote import drafting, planning, plans
from loopwright.services.remote.plans import PlanRecord

router = APIRouter(prefix="/api/plans", tags=["plans"])


Statuses = Annotated[list[PlanState] | None, Query(description="Only plans with one of these statuses.")]


@router.get("")
async def list_plans(
    home: Home, caller: Reader, page: Paging, project: str | None = None, status: Statuses = None
) -> PlanPage:
    """List the plans of all projects, the newest first."""
    found = await plans.list_plans(home.at, caller, page, project_id=project, statuses=tuple(status or ()))
    return PlanPage(plans=list(map(plan_document, found.items)), next=found.next)


@router.get("/{plan_id}", responses={304: {"description": "It has not changed since you saw it."}})
async def get_plan(
    plan_id: str,
    home: Home,
    caller: Reader,
    response: Response,
    if_none_match: Annotated[str | None, Header(max_length=200)] = None,
) -> PlanDetail:
    """Return a plan with its tasks and its history."""
    record = await plans.get_plan(home.at, caller, plan_id)
    tag = f'"{record.version}"'
    if if_none_match == tag:
        raise NotModified(tag)
    response.headers["ETag"] = tag
    return plan_detail(record)


@router.get("/{plan_id}/runs")
async def list_runs(plan_id: str, home: Home, caller: Reader, page: Paging) -> RunPage:
    """List the runs of a plan, the oldest first."""
    found = await plans.plan_runs(home.at, caller, plan_id, page)
    return RunPage(runs=list(map(run_document, found.items)), next=found.next)


Wait = Annotated[float, Query(ge=0, le=60, description="Seconds to wait for the result.")]


async def awaited_plan(
    home: Served, caller: Caller, made: PlanRecord, response: Response, wait: float
) -> PlanDocument:
    """Return a draft, after waiting for its tasks; the status tells whether they exist yet."""
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
    record = await drafting.edit_draft(home.at, caller, plan_id, wanted.edit())
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
    """End a plan as FAILED; landed work stays on its branch."""
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
    """Plan again: replace a draft, or a plan that FAILED or was cancelled."""
    how = how or Replan()
    made = await drafting.plan_again(
        home.at, caller, plan_id, goal=how.goal, model=how.model, autonomy=how.autonomy
    )
    return await awaited_plan(home, caller, made, response, wait)


@router.post("/{plan_id}/pause")
async def pause(plan_id: str, home: Home, caller: Writer, how: Pause | None = None) -> Result:
    """Start nothing new in a plan; with `now`, interrupt its agents too."""
    now = how is not None and how.now
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
    """Give up a plan for good; landed work stays on its branch."""
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
    """Add a task to a running plan."""
    return plan_document(await plans.inject_task(home.at, caller, plan_id, wanted.item()))


@router.post("/{plan_id}/tasks/{task}/reset")
async def reset(plan_id: str, task: str, home: Home, caller: Writer) -> Result:
    """Let a task start over with no attempt used up; its history is kept."""
    decided = await plans.decide_task(home.at, caller, plan_id, task, "reset")
    return result_of(decided)


@router.post("/{plan_id}/tasks/{task}/skip")
async def skip(plan_id: str, task: str, home: Home, caller: Writer, why: Skip | None = None) -> Result:
    """Give up a task."""
    decided = await plans.decide_task(
        home.at,
        caller,
        plan_id,
        task,
        "skip",
        note=why.reason if why else None,
        chain=bool(why and why.chain),
    )
    return result_of(decided)


def result_of(decided: Decision) -> Result:
    """Return the result of a decision as a document."""
    return Result(command=decided.command.id, result=decided.command.result, notes=list(decided.notes))
