"""Loops: list, look at and steer them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from loopwright.adapters.home.membership import LockedMembership
from loopwright.core.rows.model import Attempt, Loop, Plan, Project, Task
from loopwright.core.values.access import Caller
from loopwright.core.values.states import LIVE_ATTEMPT, LoopState, PlanState, TaskState
from loopwright.engine.views.views import live_workers
from loopwright.ports import Tx
from loopwright.services.control import decisions
from loopwright.services.control.decisions import Decision
from loopwright.services.homes.session import Session
from loopwright.services.remote.seen import acting, current_plan, seen_loop, seen_project

Action = Literal["stop", "pause", "resume"]
_ALREADY: Final[Mapping[str, frozenset[LoopState]]] = {
    "pause": frozenset({LoopState.PAUSED}),
    "stop": frozenset({LoopState.STOPPED}),
    "resume": frozenset({LoopState.RUNNING}),
}
"""The states in which an action has nothing left to do: asking twice is the same as asking once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopProgress:
    """How many tasks of a loop's plan passed."""

    passed: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopResources:
    """What a loop works with."""

    agent: str | None
    model: str | None
    max_concurrent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopBudget:
    """What a loop may spend, in millionths of a dollar; None means unlimited."""

    max_cost: int | None
    spent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopView:
    """A loop as it is now."""

    id: str
    name: str
    project_id: str
    project: str
    source_kind: str
    source_path: str
    status: LoopState
    starting: bool
    """A start was asked for, and no plan was made of the source yet."""
    reason: str
    plan_id: str | None
    plan_status: PlanState | None
    pid: int | None
    """The process that drives it; None if none does."""
    started_at: datetime | None
    last_heartbeat: datetime | None
    current_test: str | None
    """The task that is worked on; the first of them if several are."""
    current_tasks: tuple[str, ...]
    progress: LoopProgress
    priority: int
    resources: LoopResources | None
    budget: LoopBudget | None
    resume_at: datetime | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopHealth:
    """Whether a loop's driver is alive, and whether it could start work now."""

    loop_id: str
    status: LoopState
    live: bool
    """A process drives it."""
    ready: bool
    """Work could start now."""
    why_not: str
    """Why it is not ready; empty if it is."""
    pid: int | None
    last_heartbeat: datetime | None
    progress: LoopProgress
    current_test: str | None


async def list_loops(
    at: Session, caller: Caller, *, project_id: str | None = None, after: str = "", limit: int = 50
) -> tuple[LoopView, ...]:
    """Return loops in the order of their ids, from the one after `after` on."""

    def load(tx: Tx) -> tuple[LoopView, ...]:
        where: dict[str, Any] = {}
        if project_id is not None:
            where["project_id"] = seen_project(tx, caller, project_id).id
        elif caller.projects is not None:
            where["project_id"] = sorted(caller.projects)
        rows = [one for one in tx.find(Loop, order_by=("id",), **where) if one.id > after][:limit]
        return tuple(loop_view(tx, at, one) for one in rows)

    return await at.home.store.read(load)


async def get_loop(at: Session, caller: Caller, loop_id: str) -> LoopView:
    """Return one loop."""
    return await at.home.store.read(lambda tx: loop_view(tx, at, seen_loop(tx, caller, loop_id)))


async def loop_health(at: Session, caller: Caller, loop_id: str) -> LoopHealth:
    """Return whether a loop is live and ready."""

    def load(tx: Tx) -> LoopHealth:
        loop = seen_loop(tx, caller, loop_id)
        view = loop_view(tx, at, loop)
        why_not = _why_not(tx, loop, view)
        return LoopHealth(
            loop_id=loop.id,
            status=loop.state,
            live=view.pid is not None,
            ready=not why_not,
            why_not=why_not,
            pid=view.pid,
            last_heartbeat=view.last_heartbeat,
            progress=view.progress,
            current_test=view.current_test,
        )

    return await at.home.store.read(load)


async def steer_loop(
    at: Session, caller: Caller, loop_id: str, action: Action, *, now: bool = False
) -> LoopView:
    """Stop, pause or resume a loop; one that is there already stays as it is."""

    def load(tx: Tx) -> tuple[Loop, Project, Plan | None]:
        loop = seen_loop(tx, caller, loop_id)
        project = seen_project(tx, caller, loop.project_id)
        plan = None if loop.state in _ALREADY[action] else current_plan(tx, loop)
        return loop, project, plan

    _, project, plan = await at.home.store.read(load)
    if plan is not None:
        with acting(at, caller, project):
            await _decide(at, action, plan, now=now)
    return await get_loop(at, caller, loop_id)


async def prioritise(at: Session, caller: Caller, loop_id: str, priority: int) -> LoopView:
    """Change which loop goes first; lower is earlier."""

    def load(tx: Tx) -> Project:
        return seen_project(tx, caller, seen_loop(tx, caller, loop_id).project_id)

    project = await at.home.store.read(load)
    with acting(at, caller, project):
        await decisions.set_loop_priority(at, loop_id, priority)
    return await get_loop(at, caller, loop_id)


async def driven_plan(at: Session, caller: Caller, loop_id: str) -> str:
    """Return the id of the plan that a loop drives, or drove last."""
    return await at.home.store.read(lambda tx: current_plan(tx, seen_loop(tx, caller, loop_id)).id)


async def _decide(at: Session, action: Action, plan: Plan, *, now: bool) -> Decision:
    if action == "pause":
        return await decisions.pause(at, plan.id, now=now)
    if action == "stop":
        return await decisions.stop(at, plan.id)
    return await decisions.resume(at, plan.id)


def loop_view(tx: Tx, at: Session, loop: Loop) -> LoopView:
    """Return a loop with what its plan and its project say."""
    project = tx.get(Project, loop.project_id)
    plan = tx.get(Plan, loop.plan_id) if loop.plan_id else None
    tasks = _at_work(tx, plan)
    return LoopView(
        id=loop.id,
        name=loop.name,
        project_id=loop.project_id,
        project=project.name if project else "",
        source_kind=loop.source_kind,
        source_path=loop.source_path,
        status=loop.state,
        starting=loop.start is not None,
        reason=loop.reason,
        plan_id=loop.plan_id,
        plan_status=plan.status if plan else None,
        pid=_driver(tx, at, loop),
        started_at=plan.executed_at if plan else None,
        last_heartbeat=_heartbeat(project, loop),
        current_test=tasks[0] if tasks else None,
        current_tasks=tasks,
        progress=_progress(tx, plan),
        priority=loop.priority,
        resources=_resources(plan),
        budget=LoopBudget(max_cost=plan.policy.max_cost, spent=plan.spent_micros) if plan else None,
        resume_at=loop.resume_at,
        created_at=loop.created_at,
        updated_at=loop.updated_at,
    )


def _at_work(tx: Tx, plan: Plan | None) -> tuple[str, ...]:
    live = tx.find(Attempt, plan_id=plan.id, state=LIVE_ATTEMPT) if plan else []
    tasks: Sequence[Task] = (
        tx.find(Task, id=[one.task_id for one in live], order_by=("position",)) if live else ()
    )
    return tuple(task.key for task in tasks if task.status is not TaskState.QUEUED)


def _progress(tx: Tx, plan: Plan | None) -> LoopProgress:
    if plan is None:
        return LoopProgress(passed=0, total=0)
    return LoopProgress(
        passed=tx.count(Task, plan_id=plan.id, status=TaskState.COMPLETE),
        total=tx.count(Task, plan_id=plan.id),
    )


def _resources(plan: Plan | None) -> LoopResources | None:
    if plan is None:
        return None
    return LoopResources(
        agent=plan.policy.agent, model=plan.policy.model, max_concurrent=plan.policy.parallel
    )


def _driver(tx: Tx, at: Session, loop: Loop) -> int | None:
    if loop.state is not LoopState.RUNNING:
        return None
    membership = at.home.membership
    if isinstance(membership, LockedMembership):
        holder = (membership.holder() or {}) if membership.serves(loop.project_id) else {}
        return pid if isinstance(pid := holder.get("pid"), int) else None
    workers = [one for one in live_workers(tx) if one.project_id in (None, loop.project_id)]
    return workers[0].pid if workers else None


def _heartbeat(project: Project | None, loop: Loop) -> datetime | None:
    if project is None:
        return None
    file = Path(project.path) / ".loopwright" / "health" / f"{loop.id}.json"
    try:
        return datetime.fromisoformat(json.loads(file.read_text())["last_heartbeat"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # it never ran here, or its folder is gone


def _why_not(tx: Tx, loop: Loop, view: LoopView) -> str:
    if loop.state is not LoopState.RUNNING:
        return f"the loop is {loop.state.value.lower()}" + (f": {loop.reason}" if loop.reason else "")
    if view.pid is None:
        return "no worker runs"
    plan = tx.get(Plan, loop.plan_id) if loop.plan_id else None
    if plan is not None and plan.not_before is not None and plan.not_before > tx.now():
        return f"it waits until {plan.not_before.isoformat()}"
    return ""
