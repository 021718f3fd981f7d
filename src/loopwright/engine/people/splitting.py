"""Split a task on request, and take that back."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from loopwright.core.healing.steps import SPLIT_ORIGIN, after_parts, may_split
from loopwright.core.policy.order import is_met
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Command, Plan, Task
from loopwright.core.values.errors import NotFound, Refused
from loopwright.core.values.states import ENDED_PLAN, AttemptState, TaskState
from loopwright.engine.rows.added_tasks import add_parts
from loopwright.engine.rows.moves import need
from loopwright.ports import Ids, Tx

LEAST: Final = 2
MOST: Final = 8
_BEFORE: Final = frozenset({TaskState.CREATED, TaskState.QUEUED})


def split(tx: Tx, ids: Ids, command: Command, retry: Callable[[Tx, Ids, Command], str]) -> str:
    """Put smaller tasks before a task that no agent works on; the task is then checked as a whole."""
    task, plan = _task(tx, command)
    parts = [
        (str(one["title"]), str(one.get("description") or "")) for one in command.arguments.get("parts", ())
    ]
    if not LEAST <= len(parts) <= MOST:
        raise _refused(f"a task is split into {LEAST} to {MOST} parts, not {len(parts)}")
    if not may_split(plan, task):
        raise _refused(
            f"{task.key} is itself a part, or it or its plan has no checks for the parts",
            hint="add gates to the plan, and acceptance commands to the task",
        )
    if task.status is TaskState.ERROR:
        retry(tx, ids, replace(command, arguments={}))
        task, plan = _task(tx, command)
    attempt = tx.get(Attempt, task.attempt_id) if task.attempt_id else None
    is_idle = attempt is None or attempt.state is AttemptState.QUEUED
    if task.status not in _BEFORE or not is_idle or plan.status in ENDED_PLAN:
        raise _refused(f"{task.key} is {task.status.value}", hint="interrupt it first, or wait until it ends")
    made, changes = add_parts(tx, ids, plan, task, parts)
    keys = [one.key for one in made]
    task = tx.update(Task, task.id, updated_at=tx.now(), **changes)
    if attempt is not None:
        tx.update(Attempt, attempt.id, advice=after_parts(keys))
    told: dict[str, Any] = {"parts": keys}
    tx.append(happened("parts_added", command.actor, plan=plan, task=task, **told))
    return f"{task.key} comes after {', '.join(keys)} now"


def unsplit(tx: Tx, command: Command, cancel: Callable[[Tx, Command, Task], str]) -> str:
    """Cancel the open parts of a split task, so that it waits for them no more; parts that landed stay."""
    task, plan = _task(tx, command)
    attempt = tx.get(Attempt, task.attempt_id) if task.attempt_id else None
    if task.status not in _BEFORE or (attempt is not None and attempt.state is not AttemptState.QUEUED):
        raise Refused(
            f"{task.key} is {task.status.value}, so its parts have been used",
            code="action_not_undoable",
            hint="roll its work back instead",
        )
    parts = [one for one in tx.find(Task, id=task.depends_on) if one.origin == SPLIT_ORIGIN]
    gone = [one for one in parts if one.status is not TaskState.COMPLETE]
    if not gone:
        raise Refused(f"{task.key} has no open parts", code="action_not_undoable")
    for one in gone:
        cancel(tx, command, one)
        tx.update(Task, one.id, dependents=tuple(each for each in one.dependents if each != task.id))
    left = tuple(one for one in task.depends_on if one not in {each.id for each in gone})
    unmet = sum(not is_met(one) for one in tx.find(Task, id=left)) if left else 0
    kept = [one.key for one in parts if one not in gone]
    if attempt is not None:
        tx.update(Attempt, attempt.id, advice=after_parts(kept) if kept else "")
    task = tx.update(Task, task.id, depends_on=left, unmet=unmet, updated_at=tx.now())
    told: dict[str, Any] = {"parts": [one.key for one in gone]}
    tx.append(happened("split_undone", command.actor, plan=plan, task=task, **told))
    return f"{task.key} no longer waits for {', '.join(one.key for one in gone)}"


def _task(tx: Tx, command: Command) -> tuple[Task, Plan]:
    task = tx.get(Task, command.target)
    if task is None:
        raise NotFound(f"there is no task {command.target}", code="task_not_found")
    return task, need(tx.get(Plan, task.plan_id), "the plan")


def _refused(why: str, hint: str | None = None) -> Refused:
    return Refused(why, code="task_not_splittable", hint=hint)
