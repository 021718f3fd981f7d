"""The page of a plan: its tasks as a graph and on a time line, its cost, its record and the possible actions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from loopwright.core.policy.graph import critical_path, topological
from loopwright.core.rows.model import AGENT_ROLES, Attempt, Loop, Plan, Role, Run, Task
from loopwright.core.values.access import Caller, Scope
from loopwright.core.values.findings import Verdict
from loopwright.core.values.states import (
    ENDED_PLAN,
    AttemptState,
    LoopState,
    PlanState,
    RunState,
    TaskState,
)
from loopwright.engine.rows.drafts import is_written
from loopwright.engine.rows.world import HomePaths
from loopwright.engine.views.views import PlanView, plan_view
from loopwright.ports import Tx
from loopwright.services.dashboard.estimate import Estimate, estimate
from loopwright.services.dashboard.gate import GateProgress, gate_progress
from loopwright.services.dashboard.trail import Trail, TrailWish, plan_trail
from loopwright.services.homes.session import Session
from loopwright.services.remote.seen import seen_plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One run on the time line."""

    run_id: str
    role: Role
    state: RunState
    began_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSpan:
    """One attempt on the time line, with its runs."""

    attempt_id: str
    n: int
    state: AttemptState
    began_at: datetime
    ended_at: datetime | None
    runs: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpans:
    """A task's row on the time line."""

    task_id: str
    key: str
    title: str
    attempts: tuple[AttemptSpan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleCost:
    """The cost of agents in one role."""

    role: Role
    runs: int
    cost_micros: int
    unknown: int
    """How many of these runs have an unknown cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Actions:
    """What the caller can do to a plan now."""

    dispatch: bool
    pause: bool
    resume: bool
    stop: bool
    verify: bool
    reverify: bool
    cancel: bool
    accept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPage:
    """Everything on the page of a plan."""

    view: PlanView
    project_id: str
    spans: tuple[TaskSpans, ...]
    now: datetime
    roles: tuple[RoleCost, ...]
    trail: Trail | None
    """Its events, if requested."""
    verdict: Verdict | None
    verify_run_id: str | None
    actions: Actions
    critical: frozenset[str]
    """The ids of the tasks on the longest chain of dependencies."""
    gate: GateProgress | None
    """The complete gate, while it runs."""
    estimate: Estimate | None
    """The probable time and cost, while it is a draft."""
    acceptance: Mapping[str, tuple[str, ...]]
    """The commands that must pass, by the ids of the tasks."""
    evidence: Mapping[str, str]
    """The newest run of each task's checks, by the ids of the tasks."""
    edits: bool
    """Whether the caller may change its tasks."""
    commands: bool
    """Whether the caller may change commands too."""
    planner: str | None
    """The plan in which an agent writes its tasks, while it does."""


def ranks(needs: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return the length of the longest chain before each task."""
    known = {one: {before for before in needed if before in needs} for one, needed in needs.items()}
    found = dict.fromkeys(needs, 0)
    for one in topological(known):
        found[one] = max((found[before] + 1 for before in known[one]), default=0)
    return found


async def plan_page(
    at: Session, caller: Caller, plan_id: str, *, events: TrailWish | None = None
) -> PlanPage:
    """Return the page of a plan."""
    paths = HomePaths(root=at.home.root)

    def load(tx: Tx) -> PlanPage:
        plan = seen_plan(tx, caller, plan_id)
        view = plan_view(tx, plan.id, paths)
        tasks = tx.find(Task, plan_id=plan.id, order_by=("position",))
        runs = tx.find(Run, plan_id=plan.id, order_by=("created_at",))
        attempts = tx.find(Attempt, plan_id=plan.id, order_by=("created_at",))
        return PlanPage(
            view=view,
            project_id=plan.project_id,
            spans=_spans(tasks, attempts, runs),
            now=tx.now(),
            roles=_roles(runs),
            trail=plan_trail(tx, plan.id, {one.id: one.key for one in tasks}, events) if events else None,
            verdict=plan.verdict,
            verify_run_id=plan.verify_run_id,
            actions=_actions(plan, tx.get(Loop, plan.loop_id), view, caller),
            critical=_critical(tasks),
            gate=gate_progress(tx, plan, paths),
            estimate=estimate(tx, plan) if plan.status is PlanState.DRAFT and tasks else None,
            acceptance={one.id: tuple(each.command for each in one.acceptance) for one in tasks},
            evidence={run.task_id: run.id for run in runs if run.role is Role.GATE and run.task_id},
            edits=caller.may(Scope.OPERATE) and is_editable(tx, plan),
            commands=caller.may(Scope.ADMIN),
            planner=planner_of(tx, plan),
        )

    return await at.home.store.read(load)


def planner_of(tx: Tx, plan: Plan) -> str | None:
    """Return the plan in which an agent writes the tasks of a draft; None once they are written."""
    if plan.status is not PlanState.DRAFT or is_written(plan):
        return None
    found = tx.find(Plan, made_for=plan.id, order_by=("-created_at",), limit=1)
    return found[0].id if found else None


def is_editable(tx: Tx, plan: Plan) -> bool:
    """Return whether the tasks of a plan can be changed here: a written draft that comes from a plan file."""
    loop = tx.get(Loop, plan.loop_id)
    is_draft = plan.status is PlanState.DRAFT and is_written(plan)
    return (
        is_draft and loop is not None and loop.state is not LoopState.RUNNING and loop.source_kind == "yaml"
    )


def _critical(tasks: Sequence[Task]) -> frozenset[str]:
    """Return the tasks on the longest chain of dependencies; empty if no task depends on another."""
    chain = critical_path({task.id: task.depends_on for task in tasks})
    return frozenset(chain) if len(chain) > 1 else frozenset()


def _spans(tasks: Sequence[Task], attempts: Sequence[Attempt], runs: Sequence[Run]) -> tuple[TaskSpans, ...]:
    by_attempt: dict[str | None, list[Run]] = {}
    for run in runs:
        if run.started_at is not None:
            by_attempt.setdefault(run.attempt_id, []).append(run)
    by_task: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        by_task.setdefault(attempt.task_id, []).append(attempt)
    return tuple(
        TaskSpans(
            task_id=task.id,
            key=task.key,
            title=task.title,
            attempts=tuple(
                AttemptSpan(
                    attempt_id=one.id,
                    n=one.n,
                    state=one.state,
                    began_at=_began(one, by_attempt.get(one.id, [])),
                    ended_at=one.ended_at,
                    runs=tuple(
                        Span(
                            run_id=run.id,
                            role=run.role,
                            state=run.state,
                            began_at=run.started_at or run.created_at,
                            ended_at=run.ended_at,
                        )
                        for run in by_attempt.get(one.id, [])
                    ),
                )
                for one in by_task.get(task.id, [])
                if one.state is not AttemptState.QUEUED
            ),
        )
        for task in tasks
    )


def _began(attempt: Attempt, runs: Sequence[Run]) -> datetime:
    """Return when work on an attempt began: its row is created when the plan is dispatched."""
    return min((run.started_at for run in runs if run.started_at), default=attempt.updated_at)


def _roles(runs: Sequence[Run]) -> tuple[RoleCost, ...]:
    found = []
    for role in sorted(AGENT_ROLES):
        mine = [one for one in runs if one.role is role and one.started_at]
        if mine:
            known = [one.cost_micros for one in mine if one.cost_micros is not None]
            found.append(
                RoleCost(role=role, runs=len(mine), cost_micros=sum(known), unknown=len(mine) - len(known))
            )
    return tuple(found)


def _actions(plan: Plan, loop: Loop | None, view: PlanView, caller: Caller) -> Actions:
    driven = loop is not None and loop.plan_id == plan.id
    state = loop.state if loop is not None and driven else None
    may = caller.may(Scope.OPERATE)
    ended = plan.status in ENDED_PLAN
    settled = all(task.status is TaskState.COMPLETE for task in view.tasks)
    waits_for_verify = plan.status is PlanState.RUNNING and settled and bool(view.tasks)
    return Actions(
        dispatch=may and plan.status is PlanState.DRAFT and is_written(plan),
        pause=may and not ended and state is LoopState.RUNNING,
        resume=may and not ended and state in (LoopState.PAUSED, LoopState.STOPPED) and not waits_for_verify,
        stop=may and not ended and state in (LoopState.RUNNING, LoopState.PAUSED),
        verify=may and waits_for_verify,
        reverify=may and plan.status is PlanState.FAILED and driven,
        cancel=may and not ended,
        accept=may and plan.status is PlanState.VERIFIED and not view.taken,
    )
