"""A loop as it is now, for the API and for programs that read files."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from loopwright.core.rows.model import Attempt, Loop, Plan, Project, Task
from loopwright.core.values.round_states import FOLDER_KIND, STAGE_KIND
from loopwright.core.values.states import ENDED_PLAN, LIVE_ATTEMPT, LoopState, PlanState, TaskState
from loopwright.ports import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopProgress:
    """How many tasks of a loop's plan passed."""

    passed: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopResources:
    """The agents and slots of a loop."""

    agent: str | None
    model: str | None
    max_concurrent: int | None
    """How many agents it may have at once; None before it has a plan, if the project's settings decide."""


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
    """Whether a start was requested, and the source has no plan yet."""
    reason: str
    plan_id: str | None
    plan_status: PlanState | None
    pid: int | None
    """The process that drives it; None if none does."""
    started_at: datetime | None
    last_heartbeat: datetime | None
    current_test: str | None
    """The task in progress; the first if there are several."""
    current_tasks: tuple[str, ...]
    progress: LoopProgress
    priority: int
    resources: LoopResources | None
    budget: LoopBudget | None
    resume_at: datetime | None
    created_at: datetime
    updated_at: datetime
    version: str = ""
    """Changes whenever the loop does; empty in lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPlans:
    """The plans that some loops drive, with their progress, by plan id."""

    of: Mapping[str, str]
    """The plan of each loop, by loop id."""
    plans: Mapping[str, Plan]
    progress: Mapping[str, LoopProgress]
    working: Mapping[str, tuple[str, ...]]
    """The keys of the tasks in progress."""


def stage_plans(tx: Tx, loop: Loop, limit: int) -> list[Plan]:
    """Return the plans of the stages of a folder with rounds, the newest first; else nothing."""
    if loop.source_kind != FOLDER_KIND or loop.plan_id is not None:
        return []
    stages = [one.id for one in tx.find(Loop, project_id=loop.project_id, source_kind=STAGE_KIND)]
    return tx.find(Plan, loop_id=stages, order_by=("-created_at", "-id"), limit=limit) if stages else []


def plan_of(tx: Tx, loop: Loop) -> str | None:
    """Return the plan that a loop drives, or drove last; for rounds, that of the newest stage."""
    return loop.plan_id or next((one.id for one in stage_plans(tx, loop, 1)), None)


def plans_of(tx: Tx, loops: Iterable[Loop]) -> LoopPlans:
    """Read the plans of many loops at once: a list would need a query for each."""
    of = {one.id: found for one in loops if (found := plan_of(tx, one))}
    ids = list(of.values())
    plans = {one.id: one for one in tx.find(Plan, id=ids)} if ids else {}
    total = tx.tally(Task, "plan_id", plan_id=ids) if ids else {}
    passed = tx.tally(Task, "plan_id", plan_id=ids, status=TaskState.COMPLETE) if ids else {}
    progress = {one: LoopProgress(passed=passed.get(one, 0), total=total.get(one, 0)) for one in plans}
    return LoopPlans(of=of, plans=plans, progress=progress, working=at_work(tx, plans.values()))


def view_of(tx: Tx, loop: Loop, known: LoopPlans, *, pid: int | None, heartbeat: datetime | None) -> LoopView:
    """Return the view of a loop, with data of its plan and its project."""
    project = tx.get(Project, loop.project_id)
    plan = known.plans.get(known.of.get(loop.id, ""))
    tasks = known.working.get(plan.id, ()) if plan else ()
    return LoopView(
        id=loop.id,
        name=loop.name,
        project_id=loop.project_id,
        project=project.name if project else "",
        source_kind=loop.source_kind,
        source_path=loop.source_path,
        status=loop.state,
        starting=is_starting(loop),
        reason=loop.reason,
        plan_id=plan.id if plan else None,
        plan_status=plan.status if plan else None,
        pid=pid,
        started_at=plan.executed_at if plan else None,
        last_heartbeat=heartbeat,
        current_test=tasks[0] if tasks else None,
        current_tasks=tasks,
        progress=known.progress[plan.id] if plan else LoopProgress(passed=0, total=0),
        priority=loop.priority,
        resources=_resources(loop, plan),
        budget=LoopBudget(max_cost=plan.policy.max_cost, spent=plan.spent_micros) if plan else None,
        resume_at=loop.resume_at,
        created_at=loop.created_at,
        updated_at=loop.updated_at,
    )


def is_starting(loop: Loop) -> bool:
    """Return whether a start was requested and has not happened; rounds keep the requester while they run."""
    return loop.start is not None and loop.state is not LoopState.RUNNING


def registry_entry(view: LoopView) -> dict[str, Any]:
    """Return the entry of a loop in `loop_registry.json`."""
    resources, budget = view.resources, view.budget
    return {
        "name": view.name,
        "project_id": view.project_id,
        "source": view.source_path,
        "status": status_word(view),
        "pid": view.pid,
        "started_at": _moment(view.started_at),
        "last_heartbeat": _moment(view.last_heartbeat),
        "current_test": view.current_test,
        "progress": {"passed": view.progress.passed, "total": view.progress.total},
        "priority": view.priority,
        "resources": {
            "agent": resources.agent if resources else None,
            "model": resources.model if resources else None,
            "max_concurrent": resources.max_concurrent if resources else None,
        },
        "budget": {
            "max_cost": budget.max_cost if budget else None,
            "spent": budget.spent if budget else 0,
        },
    }


def status_word(view: LoopView) -> str:
    """Return the status of a loop in one word."""
    return "starting" if view.starting else view.status.value.lower()


def at_work(tx: Tx, plans: Iterable[Plan]) -> dict[str, tuple[str, ...]]:
    """Return the keys of the tasks in progress, in the order of the source, by plan id."""
    going = [one.id for one in plans if one.status not in ENDED_PLAN]
    live = tx.find(Attempt, plan_id=going, state=LIVE_ATTEMPT) if going else []
    tasks = tx.find(Task, id=[one.task_id for one in live], order_by=("position",)) if live else []
    found: dict[str, tuple[str, ...]] = {}
    for task in tasks:
        if task.status is not TaskState.QUEUED:
            found[task.plan_id] = (*found.get(task.plan_id, ()), task.key)
    return found


def _resources(loop: Loop, plan: Plan | None) -> LoopResources | None:
    if plan is not None:
        policy = plan.policy
        return LoopResources(agent=policy.agent, model=policy.model, max_concurrent=policy.parallel)
    wanted: Mapping[str, Any] = loop.settings or {}
    if not wanted.keys() & {"agent", "model", "parallel"}:
        return None
    return LoopResources(
        agent=wanted.get("agent"), model=wanted.get("model"), max_concurrent=wanted.get("parallel")
    )


def _moment(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")
