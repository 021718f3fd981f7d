"""Taking work in: a repository becomes a project, a source becomes a loop, its content becomes a plan."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopwright.core import graph
from loopwright.core.errors import BadPlan, Refused
from loopwright.core.events import happened
from loopwright.core.ids import Kind
from loopwright.core.model import Loop, Plan, Project, Task
from loopwright.core.policy import GateCommand, Policy
from loopwright.core.states import ENDED_PLAN, LoopState, PlanState, TaskState
from loopwright.engine.moves import move_loop
from loopwright.engine.naming import plan_branch
from loopwright.ports import Base, Ids, PlannedTask, PlannedWork, Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A plan that someone wants to have done."""

    root: Path
    """Top of the user's checkout."""
    subfolder: str
    source_kind: str
    source_path: str
    work: PlannedWork
    base: Base
    policy: Policy
    gates: tuple[GateCommand, ...]
    actor: str
    new: bool = False
    """Start over even if the same plan was already done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """Where a submission ended up."""

    loop: Loop
    plan: Plan
    created: bool
    """False when the loop already had exactly this plan."""


def evaluate(work: PlannedWork, source: str) -> dict[str, Any]:
    """Judge a plan's structure; raise `BadPlan`, or return the facts worth showing before any money is spent."""
    edges = {task.key: task.depends_on for task in work.tasks}
    problems = [
        f'task "{node}" depends on unknown "{dep}"' for node, dep in graph.unknown_dependencies(edges)
    ]
    if len(edges) != len(work.tasks):
        problems.append("task ids are not unique")
    if not work.tasks:
        problems.append("the plan has no tasks")
    if not problems and (cycle := graph.find_cycle(edges)):
        problems.append("tasks wait for each other: " + " -> ".join(cycle))
    if problems:
        raise BadPlan(source, tuple(problems))
    path = graph.critical_path(edges)
    return {
        "tasks": len(work.tasks),
        "critical_path": len(path),
        "without_acceptance": sum(not task.acceptance for task in work.tasks),
        "passed": True,
    }


def register_project(tx: Tx, ids: Ids, root: Path, subfolder: str, actor: str) -> Project:
    """Return the project at this path, creating it on first sight."""
    known = tx.find(Project, path=str(root), subfolder=subfolder, limit=1)
    if known:
        return known[0]
    project = Project(
        id=ids(Kind.PROJECT), name=root.name, path=str(root), subfolder=subfolder, created_at=tx.now()
    )
    tx.insert(project)
    tx.append(happened("project_registered", actor, project_id=project.id, name=project.name))
    return project


def submit(tx: Tx, ids: Ids, asked: Submission) -> Submitted:
    """Give the loop of this source its plan and let it run; the same plan twice is one plan."""
    project = register_project(tx, ids, asked.root, asked.subfolder, asked.actor)
    loop = _loop(tx, ids, project, asked)
    current = tx.get(Plan, loop.plan_id) if loop.plan_id else None
    if current is not None and not asked.new:
        if current.source_sha256 == asked.work.sha256:
            return Submitted(loop=loop, plan=current, created=False)
        if current.status not in ENDED_PLAN:
            raise Refused(
                f"{asked.source_path} changed while its plan {current.id} is unfinished",
                hint=f"finish it, or `loopwright cancel {current.id}` and run it again",
            )
    if current is not None and current.status not in ENDED_PLAN:
        raise Refused(
            f"plan {current.id} of {asked.source_path} is unfinished",
            hint=f"`loopwright cancel {current.id}` first, then start over",
        )
    plan = _plan(tx, ids, project, loop, asked)
    loop = tx.update(Loop, loop.id, plan_id=plan.id, updated_at=tx.now())
    if loop.state is not LoopState.RUNNING:
        loop = move_loop(tx, loop, LoopState.RUNNING, "loop_started", asked.actor)
    return Submitted(loop=loop, plan=plan, created=True)


def _loop(tx: Tx, ids: Ids, project: Project, asked: Submission) -> Loop:
    known = tx.find(Loop, project_id=project.id, source_path=asked.source_path, limit=1)
    if known:
        return known[0]
    now = tx.now()
    loop = Loop(
        id=ids(Kind.LOOP),
        project_id=project.id,
        name=f"{project.name}/{Path(asked.source_path).stem}",
        source_kind=asked.source_kind,
        source_path=asked.source_path,
        state=LoopState.IDLE,
        created_at=now,
        updated_at=now,
    )
    tx.insert(loop)
    tx.append(happened("loop_created", asked.actor, loop=loop, source=asked.source_path))
    return loop


def _plan(tx: Tx, ids: Ids, project: Project, loop: Loop, asked: Submission) -> Plan:
    now = tx.now()
    plan_id = ids(Kind.PLAN)
    evaluation = evaluate(asked.work, asked.source_path)
    plan = Plan(
        id=plan_id,
        project_id=project.id,
        loop_id=loop.id,
        title=asked.work.title,
        status=PlanState.DRAFT,
        source_sha256=asked.work.sha256,
        base_ref=asked.base.ref,
        base_sha=asked.base.sha,
        branch=plan_branch(plan_id),
        policy=asked.policy,
        gates=asked.gates,
        evaluation=evaluation,
        open_tasks=len(asked.work.tasks),
        created_at=now,
        updated_at=now,
    )
    tx.insert(plan)
    _tasks(tx, ids, plan, asked.work.tasks)
    tx.append(happened("plan_created", asked.actor, plan=plan, title=plan.title, **evaluation))
    return plan


def _tasks(tx: Tx, ids: Ids, plan: Plan, planned: tuple[PlannedTask, ...]) -> None:
    now = tx.now()
    id_of = {task.key: ids(Kind.TASK) for task in planned}
    followers = graph.dependents({task.key: tuple(dict.fromkeys(task.depends_on)) for task in planned})
    for position, task in enumerate(planned):
        waits_for = tuple(id_of[key] for key in dict.fromkeys(task.depends_on))
        tx.insert(
            Task(
                id=id_of[task.key],
                plan_id=plan.id,
                key=task.key,
                title=task.title,
                description=task.description,
                criteria=task.criteria,
                acceptance=task.acceptance,
                held_out=task.held_out,
                depends_on=waits_for,
                dependents=tuple(id_of[key] for key in followers[task.key]),
                scope=task.scope,
                priority=task.priority,
                position=position,
                status=TaskState.CREATED,
                unmet=len(waits_for),
                max_attempts=task.max_attempts or plan.policy.max_attempts,
                agent=task.agent,
                model=task.model,
                created_at=now,
                updated_at=now,
            )
        )
