"""Plans, tasks and runs: list, show and steer them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from loopwright.core.rows.events import RecordedEvent
from loopwright.core.rows.model import Attempt, Plan, Run, Task
from loopwright.core.values.access import Caller, Scope
from loopwright.core.values.documents import document
from loopwright.core.values.errors import NotAllowed
from loopwright.core.values.states import PlanState
from loopwright.engine.rows.drafts import is_written
from loopwright.engine.rows.versions import plan_version
from loopwright.ports import Tx
from loopwright.services.control import decisions
from loopwright.services.control.decisions import Decision
from loopwright.services.homes.session import Session
from loopwright.services.remote.pages import Asked, Page, find_page
from loopwright.services.remote.seen import (
    acting,
    plan_and_project,
    seen_plan,
    seen_where,
    task_and_project,
)

ACTIVITY: Final = (
    "plan_created",
    "plan_drafted",
    "plan_dispatched",
    "plan_completed",
    "plan_evaluating",
    "plan_evaluated",
    "plan_verifying",
    "plan_verified",
    "plan_failed",
    "plan_reopened",
    "plan_cancelled",
)
"""The events that explain the status of a plan."""

TaskAction = Literal["retry", "reset", "skip"]
PlanAction = Literal["pause", "resume", "stop", "cancel", "reverify"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """A task with its newest run."""

    task: Task
    run_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRecord:
    """A plan with its tasks."""

    plan: Plan
    tasks: tuple[TaskRecord, ...]
    version: str
    """Changes whenever the plan or one of its tasks does; empty in lists."""
    is_written: bool
    """Whether it has its tasks, or an agent still has to write them."""
    planner_plan_id: str | None
    """The plan whose agent writes the tasks."""
    history: tuple[RecordedEvent, ...] = ()
    """Every change of its status, the oldest first; empty in lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """A task to add to a plan."""

    key: str
    title: str
    description: str = ""
    criteria: tuple[str, ...] = ()
    acceptance: tuple[str, ...] = ()
    """Commands that must pass."""
    priority: int = 50


async def list_plans(
    at: Session,
    caller: Caller,
    page: Asked,
    *,
    project_id: str | None = None,
    statuses: Sequence[PlanState] = (),
) -> Page[PlanRecord]:
    """Return plans, the newest first; those that only ask an agent something are left out."""

    def load(tx: Tx) -> Page[PlanRecord]:
        where = seen_where(tx, caller, project_id)
        if statuses:
            where["status"] = list(statuses)
        rows = find_page(tx, Plan, page, order_by=("-created_at",), made_for=None, **where)
        tasks = _tasks_of(tx, rows.items)
        return rows.map(lambda one: _record(tx, one, tasks[one.id]))

    return await at.home.store.read(load)


async def get_plan(at: Session, caller: Caller, plan_id: str) -> PlanRecord:
    """Return one plan."""

    def load(tx: Tx) -> PlanRecord:
        plan = seen_plan(tx, caller, plan_id)
        return _record(tx, plan, _tasks_of(tx, [plan])[plan.id], versioned=True)

    return await at.home.store.read(load)


async def plan_runs(at: Session, caller: Caller, plan_id: str, page: Asked) -> Page[Run]:
    """Return the runs of a plan, the oldest first."""

    def load(tx: Tx) -> Page[Run]:
        plan = seen_plan(tx, caller, plan_id)
        return find_page(tx, Run, page, order_by=("created_at",), plan_id=plan.id)

    return await at.home.store.read(load)


async def decide_plan(
    at: Session, caller: Caller, plan_id: str, action: PlanAction, *, now: bool = False
) -> Decision:
    """Pause, resume, stop or cancel a plan, or verify it again."""
    plan, project = await at.home.store.read(lambda tx: plan_and_project(tx, caller, plan_id))
    with acting(at, caller, project):
        if action == "pause":
            return await decisions.pause(at, plan.id, now=now)
        if action == "resume":
            return await decisions.resume(at, plan.id)
        if action == "stop":
            return await decisions.stop(at, plan.id)
        if action == "cancel":
            return await decisions.cancel(at, plan.id, once=True)
        return await decisions.reverify(at, plan.id)


async def decide_task(
    at: Session,
    caller: Caller,
    plan_id: str,
    task: str,
    action: TaskAction,
    *,
    note: str | None = None,
    agent: str | None = None,
    model: str | None = None,
    chain: bool = False,
) -> Decision:
    """Give a task another attempt, let it start over, or cancel it."""
    row, project = await at.home.store.read(lambda tx: task_and_project(tx, caller, plan_id, task))
    with acting(at, caller, project):
        if action == "skip":
            return await decisions.cancel(at, row.id, reason=note or "skipped by a person", chain=chain)
        if action == "reset":
            return await decisions.reset(at, row.id)
        return await decisions.retry(at, row.id, note=note, agent=agent, model=model)


async def change_task(
    at: Session,
    caller: Caller,
    plan_id: str,
    task: str,
    *,
    priority: int | None = None,
    agent: str | None = None,
    model: str | None = None,
) -> PlanRecord:
    """Change the priority of a task, or the agent and the model of its next attempt."""
    row, project = await at.home.store.read(lambda tx: task_and_project(tx, caller, plan_id, task))
    with acting(at, caller, project):
        if priority is not None:
            await decisions.set_task_priority(at, row.id, priority)
        if agent is not None or model is not None:
            await decisions.set_agent(at, row.id, agent=agent, model=model)
    return await get_plan(at, caller, plan_id)


async def inject_task(at: Session, caller: Caller, plan_id: str, item: NewTask) -> PlanRecord:
    """Add a task to a running plan."""
    if item.acceptance and not caller.may(Scope.ADMIN):
        raise NotAllowed(
            "a task with commands needs a token with the scope `admin`",
            code="commands_need_admin",
            hint="describe the criteria in words, or use an admin token",
        )
    plan, project = await at.home.store.read(lambda tx: plan_and_project(tx, caller, plan_id))
    with acting(at, caller, project):
        await decisions.inject(at, plan.id, document(item))
    return await get_plan(at, caller, plan_id)


def _tasks_of(tx: Tx, plans: Sequence[Plan]) -> dict[str, list[TaskRecord]]:
    """Return the tasks of plans in the order of their sources, read at once for all of them."""
    found: dict[str, list[TaskRecord]] = {plan.id: [] for plan in plans}
    tasks = tx.find(Task, plan_id=list(found), order_by=("position",)) if found else []
    newest = [task.attempt_id for task in tasks if task.attempt_id is not None]
    runs = {one.id: one.run_id for one in tx.find(Attempt, id=newest)} if newest else {}
    for task in tasks:
        found[task.plan_id].append(TaskRecord(task=task, run_id=runs.get(task.attempt_id or "")))
    return found


def _record(tx: Tx, plan: Plan, tasks: Sequence[TaskRecord], *, versioned: bool = False) -> PlanRecord:
    by = tx.find(Plan, made_for=plan.id, order_by=("-created_at",), limit=1) if plan.wish is not None else []
    return PlanRecord(
        plan=plan,
        version=plan_version(tx, plan) if versioned else "",
        is_written=is_written(plan),
        planner_plan_id=by[0].id if by else None,
        history=tuple(tx.events(plan=plan.id, types=ACTIVITY)) if versioned else (),
        tasks=tuple(tasks),
    )
