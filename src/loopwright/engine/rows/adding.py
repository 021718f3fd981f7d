"""Giving a plan that is under way one more task."""

from collections.abc import Sequence
from dataclasses import replace

from loopwright.core.plans.evaluating import Finding
from loopwright.core.rows.model import Plan, Task
from loopwright.core.values.ids import Kind
from loopwright.core.values.states import PlanState, TaskState
from loopwright.engine.intake.submit import task_row
from loopwright.engine.rows.moves import move_task, need
from loopwright.engine.rows.queued import new_attempt
from loopwright.ports import Ids, Mark, PlannedTask, Tx


def add_task(
    tx: Tx,
    ids: Ids,
    plan: Plan,
    item: PlannedTask,
    *,
    position: int,
    origin: str = "",
    against: Sequence[Finding] = (),
) -> Task:
    """Add a task, and let it run where the plan does.

    One that is marked as blocked waits for a person, and so does one that would have been refused with a whole plan:
    `against` is what speaks against it.
    """
    held = item.mark is Mark.BLOCKED or bool(against)
    # Only what the plan started with can permit something: an agent may have written what was added since.
    item = replace(item, may_change=())
    row = task_row(ids(Kind.TASK), plan, item, position=position, now=tx.now())
    task = replace(row, origin=origin)
    if against:
        task = replace(task, status=TaskState.ERROR, reason="; ".join(one.text for one in against))
    tx.insert(task)
    current = need(tx.get(Plan, plan.id), "the plan")
    counts = {
        "open_tasks": current.open_tasks + (not held),
        "failed_tasks": current.failed_tasks + held,
        "completed_at": None,
    }
    known = current.evaluation
    found = [{"check": one.check, "weight": one.weight.value, "text": one.text} for one in against]
    evaluation = {
        **known,
        "tasks": int(known.get("tasks", 0)) + 1,
        "findings": [*known.get("findings", ()), *found],
    }
    plan = tx.update(Plan, plan.id, **counts, evaluation=evaluation)
    if held or plan.status is not PlanState.RUNNING:
        return task
    attempt = new_attempt(tx, ids, plan, task, n=1)
    return move_task(tx, task, TaskState.QUEUED, "task_queued", attempt_id=attempt.id)
