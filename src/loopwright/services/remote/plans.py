"""Plans, tasks and runs: list and look at them, and decide about them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from loopwright.adapters.processes.keeper_files import OutputReader
from loopwright.core.rows.model import Attempt, Plan, Run, Task
from loopwright.core.values.access import Caller, Scope
from loopwright.core.values.documents import document
from loopwright.core.values.errors import NotAllowed
from loopwright.core.values.states import PlanState, RunState
from loopwright.engine.rows.drafts import is_written
from loopwright.engine.rows.versions import plan_version
from loopwright.engine.rows.world import HomePaths
from loopwright.engine.views.overview import RunView, run_view
from loopwright.ports import OutputLine, Tx
from loopwright.services.control import decisions
from loopwright.services.control.decisions import Decision
from loopwright.services.homes.session import Session
from loopwright.services.remote.seen import (
    acting,
    plan_and_project,
    seen_plan,
    seen_project,
    seen_run,
    task_and_project,
)

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
    """Whether its tasks are there, or are still to be written by an agent."""
    planner_plan_id: str | None
    """The plan whose agent writes the tasks."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPage:
    """Some lines of what a run printed."""

    lines: tuple[OutputLine, ...]
    next_offset: int
    """Where to read on."""
    ended: bool
    """Whether the run has ended, so that nothing more comes after the last line."""


async def list_plans(
    at: Session,
    caller: Caller,
    *,
    project_id: str | None = None,
    statuses: Sequence[PlanState] = (),
    after: str = "",
    limit: int = 50,
) -> tuple[PlanRecord, ...]:
    """Return plans, the newest first, from the one after the plan `after` on."""

    def load(tx: Tx) -> tuple[PlanRecord, ...]:
        where: dict[str, Any] = {"made_for": None}
        if statuses:
            where["status"] = list(statuses)
        if project_id is not None:
            where["project_id"] = seen_project(tx, caller, project_id).id
        elif caller.projects is not None:
            where["project_id"] = sorted(caller.projects)
        rows = tx.find(Plan, order_by=("-created_at", "-id"), **where)
        begin = next((n + 1 for n, one in enumerate(rows) if one.id == after), 0) if after else 0
        return tuple(_record(tx, one) for one in rows[begin : begin + limit])

    return await at.home.store.read(load)


async def get_plan(at: Session, caller: Caller, plan_id: str) -> PlanRecord:
    """Return one plan."""
    return await at.home.store.read(lambda tx: _record(tx, seen_plan(tx, caller, plan_id), versioned=True))


async def plan_runs(at: Session, caller: Caller, plan_id: str) -> tuple[Run, ...]:
    """Return the runs of a plan, the oldest first."""

    def load(tx: Tx) -> tuple[Run, ...]:
        plan = seen_plan(tx, caller, plan_id)
        return tuple(tx.find(Run, plan_id=plan.id, order_by=("created_at",)))

    return await at.home.store.read(load)


async def get_run(at: Session, caller: Caller, run_id: str) -> RunView:
    """Return one run."""
    paths = HomePaths(root=at.home.root)
    return await at.home.store.read(lambda tx: run_view(tx, seen_run(tx, caller, run_id), paths))


async def run_log(at: Session, caller: Caller, run_id: str, *, offset: int = 0, limit: int = 500) -> LogPage:
    """Return what a run printed from a position on, at most `limit` lines."""
    run = await at.home.store.read(lambda tx: seen_run(tx, caller, run_id))
    lines: list[OutputLine] = []
    for line in OutputReader(HomePaths(root=at.home.root).run(run.id), offset).all():
        lines.append(line)
        if len(lines) >= limit:
            break
    ended = run.state not in (RunState.QUEUED, RunState.RUNNING)
    return LogPage(lines=tuple(lines), next_offset=lines[-1].offset if lines else offset, ended=ended)


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
            return await decisions.cancel(at, plan.id)
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
) -> Decision:
    """Give a task another attempt, let it start over, or give it up."""
    row, project = await at.home.store.read(lambda tx: task_and_project(tx, caller, plan_id, task))
    with acting(at, caller, project):
        if action == "skip":
            return await decisions.cancel(at, row.id, reason=note or "skipped by a person")
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
    """Add a task to a plan that is under way."""
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


def _record(tx: Tx, plan: Plan, *, versioned: bool = False) -> PlanRecord:
    tasks = tx.find(Task, plan_id=plan.id, order_by=("position",))
    attempts = {one.id: one for one in tx.find(Attempt, plan_id=plan.id)}
    by = tx.find(Plan, made_for=plan.id, order_by=("-created_at",), limit=1) if plan.wish is not None else []
    return PlanRecord(
        plan=plan,
        version=plan_version(tx, plan) if versioned else "",
        is_written=is_written(plan),
        planner_plan_id=by[0].id if by else None,
        tasks=tuple(
            TaskRecord(
                task=task,
                run_id=attempts[task.attempt_id].run_id if task.attempt_id in attempts else None,
            )
            for task in tasks
        ),
    )
