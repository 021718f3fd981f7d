"""Intake of work: a repository becomes a project, a source becomes a loop, its content becomes a plan."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from loopwright.core.policy import graph
from loopwright.core.policy.red_first import RED_ON_BASE
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Loop, Plan, Project, Task
from loopwright.core.values.access import Bounds
from loopwright.core.values.environments import PlanEnvironment
from loopwright.core.values.errors import Refused
from loopwright.core.values.ids import Kind, short_id
from loopwright.core.values.policy import GateCommand, Policy
from loopwright.core.values.state_folders import DEFAULT_FOLDER, StateFolder
from loopwright.core.values.states import ENDED_PLAN, LoopState, PlanState
from loopwright.core.values.wording import to_type
from loopwright.engine.gates.evaluated_base import KnownBase, take_over
from loopwright.engine.intake.evaluation import UNEVALUATED, Evaluation, edges_of, evaluate, order_of, to_do
from loopwright.engine.money.charges import charge, inherit_charges
from loopwright.engine.rows import drafts
from loopwright.engine.rows.added_tasks import FIRST, task_row
from loopwright.engine.rows.moves import move_loop, withdraw_escalations
from loopwright.engine.rows.order import count_order
from loopwright.engine.rows.ref_names import plan_branch
from loopwright.engine.rows.source_marks import keep_marks
from loopwright.engine.rows.writeback_debts import give_up
from loopwright.ports import Base, Ids, Mark, PlannedTask, PlannedWork, Tx

_PART: Final = "source_part"
"""The key under which a plan's evaluation stores the part of its source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A plan to submit."""

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
    books: tuple[str, ...] = ()
    """Files of the source that git tracks, relative to the repository, if its format has a place for a status."""
    follows: bool = False
    """Whether a running plan follows changes of its source; otherwise it has to end first."""
    evaluation: Evaluation | None = None
    """What is known about the plan; None if it is evaluated by itself at submission."""
    new: bool = False
    """Start over even if the same plan was already done."""
    rests: bool = False
    """Whether the plan stays a draft until the user dispatches it."""
    opened: tuple[str, ...] = ()
    """Items that are open again although the last plan reported them as done."""
    environment: PlanEnvironment | None = None
    """What it takes from the terminal that it is submitted from."""
    base_known: KnownBase | None = None
    """Gate results on the base commit that are already known."""
    fills: str | None = None
    """The draft that gets this content; None for a new plan."""
    made_for: str | None = None
    """See `Plan.made_for`."""
    bounds: Bounds | None = None
    """The bounds of the token that submits it."""
    state_folder: StateFolder | None = None
    """Where the project's state files are written from now on; None to keep their place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """The result of a submission."""

    loop: Loop
    plan: Plan
    created: bool
    """False if the loop already had exactly this plan."""


def register_project(
    tx: Tx, ids: Ids, root: Path, subfolder: str, actor: str, state_folder: StateFolder | None = None
) -> Project:
    """Return the project at this path, creating it if needed; its state files move to a folder that is named."""
    known = tx.find(Project, path=str(root), subfolder=subfolder, limit=1)
    if known:
        if state_folder in (None, known[0].state_folder):
            return known[0]
        return tx.update(Project, known[0].id, state_folder=state_folder)
    project = Project(
        id=ids(Kind.PROJECT),
        name=root.name,
        path=str(root),
        subfolder=subfolder,
        created_at=tx.now(),
        state_folder=state_folder or DEFAULT_FOLDER,
    )
    tx.insert(project)
    tx.append(happened("project_registered", actor, project_id=project.id, name=project.name))
    return project


def submit(tx: Tx, ids: Ids, asked: Submission) -> Submitted:
    """Give the loop of this source its plan and let it run; the same plan twice is one plan."""
    if asked.fills is not None:
        return _filled(tx, ids, asked.fills, asked)
    project = register_project(tx, ids, asked.root, asked.subfolder, asked.actor, asked.state_folder)
    loop = _loop(tx, ids, project, asked)
    current = tx.get(Plan, loop.plan_id) if loop.plan_id else None
    if loop.source_kind != asked.source_kind:
        if current is not None and current.status not in ENDED_PLAN:
            raise Refused(
                f"{asked.source_path} is worked on as {loop.source_kind}: plan {current.id} is unfinished",
                code="source_kind_changed",
                hint=f"`--source {loop.source_kind}` continues it; `loopwright cancel {short_id(current.id)}` "
                "ends it",
            )
        # The same file may have another format by now.
        loop = tx.update(Loop, loop.id, source_kind=asked.source_kind)
    if current is not None and current.status not in ENDED_PLAN:
        check_part(current, asked.source_path, asked.work)
    if current is not None and not asked.new:
        if _goes_on(current, asked):
            return Submitted(loop=loop, plan=current, created=False)
        if current.status not in ENDED_PLAN:
            raise Refused(
                f"{asked.source_path} changed while its plan {current.id} is unfinished",
                code="source_changed",
                hint=f"{taken_in_by(current, asked.source_path)}; or put the file back to finish what was begun",
            )
    if current is not None and current.status not in ENDED_PLAN:
        raise Refused(
            f"plan {current.id} of {asked.source_path} is unfinished",
            code="plan_unfinished",
            hint=f"`loopwright cancel {current.id}` first, then start over",
        )
    if current is not None:
        withdraw_escalations(tx, asked.actor, plan_id=current.id)
        give_up(tx, current, asked.actor, "another plan was made of it")
    plan = _plan(tx, ids, project, loop, asked)
    loop = tx.update(Loop, loop.id, plan_id=plan.id, updated_at=tx.now())
    if loop.state is not LoopState.RUNNING and not asked.rests:
        loop = move_loop(tx, loop, LoopState.RUNNING, "loop_started", asked.actor)
    return Submitted(loop=loop, plan=plan, created=True)


def check_part(plan: Plan, source_path: str, work: PlannedWork) -> None:
    """Refuse to continue an unfinished plan if its source now names another part: equal numbers are other items."""
    part = plan.evaluation.get(_PART, "")
    if part and work.part and part != work.part:
        raise Refused(
            f"{source_path} is at {work.part!r} now, and plan {plan.id} of {part!r} is unfinished",
            code="source_part_changed",
            hint=f"go back to {part!r} to finish it, or `loopwright cancel {short_id(plan.id)}` ends it first",
        )


def taken_in_by(plan: Plan, source_path: str) -> str:
    """Return how a change gets into an unfinished plan that does not follow its source."""
    return (
        f"`loopwright cancel {short_id(plan.id)}`, then `{to_type('run', source_path)}` takes the change in"
    )


def is_known(tx: Tx, asked: Submission) -> bool:
    """Return whether a submission only continues an existing plan, which was evaluated when it was submitted."""
    current = last_plan(tx, asked)
    return current is not None and not asked.new and asked.fills is None and _goes_on(current, asked)


def last_plan(tx: Tx, asked: Submission) -> Plan | None:
    """Return the last plan of what is submitted; None if there is none."""
    return plan_of_source(tx, asked.root, asked.subfolder, asked.source_path)


def plan_of_source(tx: Tx, root: Path, subfolder: str, source_path: str) -> Plan | None:
    """Return the last plan of a source; None if there is none."""
    found = tx.find(Project, path=str(root), subfolder=subfolder, limit=1)
    loops = tx.find(Loop, project_id=[one.id for one in found], source_path=source_path, limit=1)
    return tx.get(Plan, loops[0].plan_id) if loops and loops[0].plan_id else None


def _goes_on(current: Plan, asked: Submission) -> bool:
    if current.status in ENDED_PLAN:
        return current.source_sha256 == asked.work.sha256 and not asked.opened
    return current.source_sha256 == asked.work.sha256 or asked.follows


def _loop(tx: Tx, ids: Ids, project: Project, asked: Submission) -> Loop:
    known = tx.find(Loop, project_id=project.id, source_path=asked.source_path, limit=1)
    priority = asked.work.priority
    if known:
        loop = known[0]
        # The user's priority for the loop overrides that of its source.
        priority = (loop.settings or {}).get("priority", priority)
        is_same = loop.priority == priority and loop.deleted_at is None
        return loop if is_same else tx.update(Loop, loop.id, priority=priority, deleted_at=None)
    now = tx.now()
    loop = Loop(
        id=ids(Kind.LOOP),
        project_id=project.id,
        name=f"{project.name}/{Path(asked.source_path).stem}",
        source_kind=asked.source_kind,
        source_path=asked.source_path,
        state=LoopState.IDLE,
        priority=priority,
        created_at=now,
        updated_at=now,
    )
    tx.insert(loop)
    tx.append(happened("loop_created", asked.actor, loop=loop, source=asked.source_path))
    return loop


def _plan(tx: Tx, ids: Ids, project: Project, loop: Loop, asked: Submission) -> Plan:
    now = tx.now()
    plan_id = ids(Kind.PLAN)
    content = _content(asked)
    plan = Plan(
        id=plan_id,
        project_id=project.id,
        loop_id=loop.id,
        status=PlanState.DRAFT,
        branch=plan_branch(plan_id, [one.branch for one in tx.find(Plan, branch=plan_branch(plan_id))]),
        made_for=asked.made_for,
        created_at=now,
        updated_at=now,
        **content,
    )
    tx.insert(plan)
    charge(tx, asked.bounds, plan.id)
    inherit_charges(tx, plan)
    _fill_in(tx, ids, plan, asked, {})
    tx.append(happened("plan_created", asked.actor, plan=plan, title=plan.title, **plan.evaluation))
    if plan.evaluation["despite"]:
        tx.append(happened("plan_forced", asked.actor, plan=plan, reason=plan.evaluation["despite"]))
    if asked.base_known is not None:
        take_over(tx, ids, plan, asked.base_known)
    return plan


def draft(tx: Tx, ids: Ids, project: Project, asked: Submission, **more: Any) -> Submitted:
    """Create a draft whose tasks an agent still has to write; `more` has its other fields."""
    loop = _loop(tx, ids, project, asked)
    empty = replace(asked, evaluation=UNEVALUATED)
    plan = tx.update(Plan, _plan(tx, ids, project, loop, empty).id, **more)
    return Submitted(loop=tx.update(Loop, loop.id, plan_id=plan.id), plan=plan, created=True)


def _filled(tx: Tx, ids: Ids, plan_id: str, asked: Submission) -> Submitted:
    """Give a draft new content; a task with the same key keeps its id."""
    plan = tx.get(Plan, plan_id)
    loop = tx.get(Loop, plan.loop_id) if plan else None
    if plan is None or loop is None or plan.status is not PlanState.DRAFT or loop.state is LoopState.RUNNING:
        state = (
            "gone" if plan is None else "dispatched" if plan.status is PlanState.DRAFT else plan.status.value
        )
        raise Refused(
            f"the plan is {state}: only a draft can be changed", code="plan_not_a_draft", hint="plan again"
        )
    is_new = not drafts.is_written(plan)
    ids_of = {}
    for task in tx.find(Task, plan_id=plan.id):
        ids_of[task.key] = task.id
        tx.delete(Task, task.id)
    plan = tx.update(Plan, plan.id, updated_at=tx.now(), **drafts.written(plan), **_content(asked))
    _fill_in(tx, ids, plan, asked, ids_of)
    loop = tx.update(Loop, plan.loop_id, source_kind=asked.source_kind, priority=asked.work.priority)
    told = {"title": plan.title, **plan.evaluation}
    tx.append(happened("plan_drafted", asked.actor, plan=plan, **told))
    if asked.base_known is not None:
        take_over(tx, ids, plan, asked.base_known)
    if is_new:
        loop = drafts.run_by_itself(tx, plan, loop, asked.actor)
    return Submitted(loop=loop, plan=plan, created=True)


def _content(asked: Submission) -> dict[str, Any]:
    """Return what a plan takes from its source and from the settings."""
    evaluated = asked.evaluation or evaluate(asked.work, asked.source_path)
    red = asked.base_known.red if asked.base_known else ()
    evaluation = {**evaluated.record(), RED_ON_BASE: list(red)}
    if asked.work.part:
        evaluation[_PART] = asked.work.part
    wanted = to_do(asked.work)
    policy = asked.policy
    if asked.work.rounds:
        policy = replace(policy, rounds=replace(policy.rounds, on=True))
    return {
        "title": asked.work.title,
        "source_sha256": asked.work.sha256,
        "base_ref": asked.base.ref,
        "base_sha": asked.base.sha,
        "policy": policy,
        "gates": asked.gates,
        "books": asked.books,
        "context": asked.work.context,
        "documents": asked.work.documents,
        "doc_sync": (asked.work.doc_sync,) if asked.work.doc_sync is not None else (),
        "evaluation": evaluation,
        "environment": asked.environment,
        "open_tasks": sum(task.mark is not Mark.BLOCKED for task in wanted),
        "failed_tasks": sum(task.mark is Mark.BLOCKED for task in wanted),
    }


def _fill_in(tx: Tx, ids: Ids, plan: Plan, asked: Submission, ids_of: Mapping[str, str]) -> None:
    wanted = to_do(asked.work)
    if asked.work.rounds:
        # Its rounds are attempts, so they have this limit. Tasks that Loopwright adds have the usual one.
        wanted = tuple(replace(task, max_attempts=plan.policy.rounds.max) for task in wanted)
    keep_marks(tx, plan.id, {task.key: [task.mark.value, task.mark.value] for task in asked.work.tasks})
    _tasks(tx, ids, plan, wanted, asked.work.tasks, ids_of)


def _tasks(
    tx: Tx,
    ids: Ids,
    plan: Plan,
    planned: tuple[PlannedTask, ...],
    items: tuple[PlannedTask, ...],
    ids_of: Mapping[str, str],
) -> None:
    now = tx.now()
    id_of = {task.key: ids_of.get(task.key) or ids(Kind.TASK) for task in planned}
    edges = edges_of(planned)
    dependents = graph.dependents(edges)
    order = order_of(items, planned, edges)
    followers = graph.dependents(order)
    for position, task in enumerate(planned):
        waits_for = tuple(id_of[key] for key in edges[task.key])
        row = task_row(id_of[task.key], plan, task, position=position, now=now)
        tx.insert(
            replace(
                row,
                # Only now: what is added later comes after the task that was done last, too.
                priority=FIRST if task.first else row.priority,
                depends_on=waits_for,
                dependents=tuple(id_of[key] for key in dependents[task.key]),
                unmet=len(waits_for),
                after=tuple(id_of[key] for key in order[task.key]),
                followers=tuple(id_of[key] for key in followers[task.key]),
            )
        )
    if any(order.values()):
        count_order(tx, plan.id)
