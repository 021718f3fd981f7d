"""Find what the user means by a name: an id or its beginning, a task's name, a plan's name, or PLAN/TASK."""

import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loopwright.core.rows.model import Loop, Plan, Run, Task
from loopwright.core.values.errors import Ambiguous, Choice, NotFound
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import ENDED_PLAN, LoopState, TaskState
from loopwright.core.values.wording import to_type
from loopwright.engine.rows.projects import Checkouts, recent_plans
from loopwright.ports import Tx

Target = Plan | Task | Run

_SHORTEST = 4
"""Fewer characters of an id are ambiguous."""


def resolve_target(
    tx: Tx, text: str, *, project_path: Checkouts | None = None, fits: Callable[[Task], bool] | None = None
) -> Target:
    """Find what the user means, or raise with the candidates; of several tasks, the only one that `fits` is meant."""
    kinds: tuple[type[Plan] | type[Task] | type[Run], ...] = (Plan, Task, Run)
    for kind in kinds:
        if (row := tx.get(kind, text)) is not None:
            return row
    if (loop := tx.get(Loop, text)) is not None:
        return _driven(tx, loop)
    plans = recent_plans(tx, project_path=project_path)
    ids = [plan.id for plan in plans]
    named = tx.find(Task, plan_id=ids, key=text) or _in_named_plan(tx, text, plans)
    if named:
        return _of_one_plan(tx, text, named, plans, fits)
    rows: list[Target] = [*plans, *tx.find(Task, plan_id=ids), *tx.find(Run, plan_id=ids)]
    found = [row for row in rows if _begins(row.id, text)] or [*_called(tx, plans, text)]
    if len(found) == 1:
        return found[0]
    if found:
        raise Ambiguous(text, tuple(_choice(tx, row) for row in found))
    raise NotFound(
        f"nothing here is called {text!r}",
        code="target_not_found",
        hint="`loopwright status` lists what there is",
    )


def handle(tx: Tx, task: Task, *, project_path: Checkouts | None = None) -> str:
    """Return what to type for a task: its name if that means exactly this task, else PLAN/TASK."""
    try:
        meant = resolve_target(tx, task.key, project_path=project_path)
    except NotFound:
        meant = None
    return task.key if meant is not None and meant.id == task.id else f"{short_id(task.plan_id)}/{task.key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Obvious:
    """The default target without a name, and the reason for it."""

    row: Plan | Task
    why: str


def obvious_target(tx: Tx, *, project_path: Checkouts | None = None, with_output: bool = False) -> Obvious:
    """Return the default target: a task that needs the user, else a running one, else the newest plan.

    With `with_output` the target must have printed something: then the newest plan's latest run counts.
    """
    plans = recent_plans(tx, project_path=project_path) or recent_plans(tx)
    if not plans:
        raise NotFound("there is no plan yet", code="no_plan", hint="`loopwright run plan.yaml`")
    unfinished = [plan for plan in plans if _is_current(tx, plan) and plan.status not in ENDED_PLAN]
    held = [plan for plan in unfinished if _state(tx, plan) is LoopState.FAILED]
    for why, among, states in (
        ("it needs you", plans[:1] + unfinished, (TaskState.ERROR, TaskState.AWAITING_RESPONSE)),
        ("it was cancelled, and its plan waits for you", held, (TaskState.CANCELLED,)),
        ("it is running", unfinished, (TaskState.RUNNING,)),
    ):
        for plan in among:
            tasks = tx.find(Task, plan_id=plan.id, status=states, order_by=("position",), limit=1)
            if tasks:
                return Obvious(row=tasks[0], why=why)
    newest = plans[0]
    if with_output:
        runs = [(run.started_at, run) for run in tx.find(Run, plan_id=newest.id) if run.started_at]
        last = max(runs, key=lambda pair: pair[0])[1] if runs else None
        task = tx.get(Task, last.task_id) if last is not None and last.task_id else None
        if task is not None:
            return Obvious(row=task, why="it ran last")
    return Obvious(row=newest, why="it is the newest plan")


def _driven(tx: Tx, loop: Loop) -> Plan:
    plan = tx.get(Plan, loop.plan_id) if loop.plan_id else None
    if plan is None:
        raise NotFound(
            f"the loop {loop.name} has no plan",
            code="no_plan",
            hint=f"`{to_type('run', loop.source_path)}` gives it one",
        )
    return plan


def _in_named_plan(tx: Tx, text: str, plans: Sequence[Plan]) -> list[Task]:
    """Read a text as PLAN/TASK; either name may contain a slash, so each one is tried."""
    known: list[Plan] = []
    for at in (place for place, char in enumerate(text) if char == "/"):
        name, key = text[:at], text[at + 1 :]
        owners = [plan for plan in plans if _begins(plan.id, name)] or _called(tx, plans, name)
        if found := tx.find(Task, plan_id=[plan.id for plan in owners], key=key):
            return found
        known = owners or known
    if known:
        keys = [task.key for task in tx.find(Task, plan_id=known[0].id, order_by=("position",), limit=8)]
        raise NotFound(
            f"the plan {known[0].title!r} has no task {text.rpartition('/')[2]!r}",
            code="task_not_found",
            hint=f"its tasks are: {', '.join(keys)}",
        )
    return []


def _called(tx: Tx, plans: Sequence[Plan], name: str) -> list[Plan]:
    """Return the plans with this name: a title, a loop, or the file with or without its ending; current ones if any."""
    wanted, found = {name.casefold(), posixpath.normpath(name).casefold()}, []
    for plan in plans:
        names = {plan.title}
        if (loop := tx.get(Loop, plan.loop_id)) is not None:
            names |= {loop.name, loop.name.rpartition("/")[2], loop.source_path}
            names.add(posixpath.basename(loop.source_path))
        if wanted & {one.casefold() for one in names}:
            found.append(plan)
    return [plan for plan in found if _is_current(tx, plan)] or found


def _of_one_plan(
    tx: Tx, text: str, tasks: list[Task], plans: Sequence[Plan], fits: Callable[[Task], bool] | None
) -> Task:
    """Choose among tasks with one name: the only fitting one, that of the only unfinished plan, or the current one."""
    by_id = {plan.id: plan for plan in plans}
    tasks.sort(key=lambda task: by_id[task.plan_id].created_at, reverse=True)
    current = [task for task in tasks if _is_current(tx, by_id[task.plan_id])] or tasks
    unfinished = [task for task in current if by_id[task.plan_id].status not in ENDED_PLAN]
    fitting = [task for task in current if fits is not None and fits(task)]
    for group in (fitting, unfinished, current):
        if len(group) == 1:
            return group[0]
    raise Ambiguous(text, tuple(_choice(tx, task) for task in current))


def _choice(tx: Tx, row: Target) -> Choice:
    plan = row if isinstance(row, Plan) else tx.get(Plan, row.plan_id)
    assert plan is not None, "a task and a run always have their plan"
    shown = f"{short_id(plan.id)}/{row.key}" if isinstance(row, Task) else short_id(row.id)
    changed_at = (row.ended_at or row.created_at) if isinstance(row, Run) else row.updated_at
    return Choice(
        handle=shown,
        state=(row.state if isinstance(row, Run) else row.status).value,
        title=plan.title,
        changed_s=(tx.now() - changed_at).total_seconds(),
    )


def _is_current(tx: Tx, plan: Plan) -> bool:
    """Return whether a loop still drives this plan; a newer run of the same source replaces it."""
    loop = tx.get(Loop, plan.loop_id)
    return loop is not None and loop.plan_id == plan.id


def _state(tx: Tx, plan: Plan) -> LoopState | None:
    loop = tx.get(Loop, plan.loop_id)
    return loop.state if loop else None


def _begins(id: str, text: str) -> bool:
    return len(text) >= _SHORTEST and (id.startswith(text) or id.partition("_")[2].startswith(text))
