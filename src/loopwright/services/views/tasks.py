"""Find what a user names, and show one task with everything that is known about it and the possible actions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from loopwright.core.gates.verdicts import command_id, is_bad, is_of
from loopwright.core.healing.diagnosis import Diagnosis
from loopwright.core.replies.reviews import Finding, Severity, place
from loopwright.core.rows.model import Loop, Plan, Run, Task
from loopwright.core.values.errors import UserError
from loopwright.core.values.states import LoopState, TaskState
from loopwright.engine.people.commands import check_retry
from loopwright.engine.people.verifying import held_up, left_out
from loopwright.engine.views.activity import StrayView
from loopwright.engine.views.next_steps import Known, Names, Step, diff_command, next_steps, what_stays
from loopwright.engine.views.overview import RunView, run_view
from loopwright.engine.views.targets import handle
from loopwright.engine.views.views import AttemptView, TaskDetail, task_detail
from loopwright.ports import Tx
from loopwright.services.homes.read_only_home import Look, find_target, glancing, project_here, wanted
from loopwright.services.views.plans import Overview, overview

__all__ = [
    "AttemptView",
    "Diagnosis",
    "Finding",
    "Known",
    "Names",
    "RunView",
    "Severity",
    "Step",
    "StrayView",
    "TaskDetail",
    "TaskSeen",
    "diff_command",
    "is_bad",
    "look_up",
    "look_up_obvious",
    "next_steps",
    "objecting_commands",
    "place",
    "task_seen",
    "what_stays",
]

_AT_REST: Final = (LoopState.PAUSED, LoopState.STOPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSeen:
    """A task, and what to type for it and for the tasks that hold it up."""

    detail: TaskDetail
    names: Names


def task_seen(tx: Tx, look: Look[Any], row: Task) -> TaskSeen:
    """Return a task as it is now."""
    project = project_here()
    try:
        check_retry(tx, row)
        refused = ""
    except UserError as why:
        refused = str(why)
    names = Names(
        handle=handle(tx, row, project_path=project),
        blockers=tuple(handle(tx, one, project_path=project) for one in _blockers(tx, row)[:2]),
        retry_refused=refused,
        may_leave_out=_may_leave_out(tx, row),
        stuck=tuple(handle(tx, one, project_path=project) for one in held_up(tx, row.plan_id)),
        resting=_rests(tx, row),
    )
    return TaskSeen(detail=task_detail(tx, row.id, look.paths), names=names)


def objecting_commands(attempt: AttemptView) -> frozenset[str]:
    """Return the commands with a check against the work, whatever their exit code."""
    return frozenset(
        one.command
        for n, one in enumerate(attempt.commands, 1)
        if any(is_of(check, command_id(n, one.name)) for check in attempt.failing_checks)
    )


def _blockers(tx: Tx, row: Task) -> list[Task]:
    """Return the failed or cancelled tasks that hold this one up, directly or not."""
    tasks = {task.id: task for task in tx.find(Task, plan_id=row.plan_id, order_by=("position",))}
    ahead, seen = list(row.depends_on), set[str]()
    while ahead:
        one = ahead.pop()
        if one not in seen and tasks[one].status is not TaskState.COMPLETE:
            seen.add(one)
            ahead += tasks[one].depends_on
    stuck = (TaskState.ERROR, TaskState.CANCELLED)
    return [task for task in tasks.values() if task.id in seen and task.status in stuck]


def _may_leave_out(tx: Tx, row: Task) -> bool:
    plan = tx.get(Plan, row.plan_id)
    loop = tx.get(Loop, plan.loop_id) if plan else None
    return plan is not None and loop is not None and bool(left_out(tx, plan, loop))


def _rests(tx: Tx, row: Task) -> bool:
    plan = tx.get(Plan, row.plan_id)
    loop = tx.get(Loop, plan.loop_id) if plan else None
    return loop is not None and loop.plan_id == row.plan_id and loop.state in _AT_REST


# Find what a user names, and return it as a view: an overview for a plan, else a task or a run.


def look_up(target: str | None = None, *, everywhere: bool = False) -> "Overview | TaskSeen | RunView":
    """Return the plan, task or run that `target` names; without a name, an overview.

    `everywhere` lists the plans of every repository in an overview.
    """
    with glancing() as look:
        row = None if target is None else look.store.read_sync(lambda tx: find_target(tx, target))
        return _seen(look, row, everywhere=everywhere)


def look_up_obvious(target: str | None, *, tell: Callable[[str], None]) -> "Overview | TaskSeen | RunView":
    """Return what `target` names; without a name, the default target, and `tell` what that is."""
    with glancing() as look:
        return _seen(look, look.store.read_sync(lambda tx: wanted(tx, target, tell=tell)))


def _seen(
    look: Look[Any], row: Plan | Task | Run | None, *, everywhere: bool = False
) -> "Overview | TaskSeen | RunView":
    if isinstance(row, Run):
        view: RunView = look.store.read_sync(lambda tx: run_view(tx, row, look.paths))
        return view
    if isinstance(row, Task):
        # An overview is needed at once, without the data of a task's details.

        seen: TaskSeen = look.store.read_sync(lambda tx: task_seen(tx, look, row))
        return seen
    return overview(look, row, everywhere=everywhere)
