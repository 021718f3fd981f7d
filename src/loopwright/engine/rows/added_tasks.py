"""Add tasks to a running plan."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from loopwright.core.healing.steps import SPLIT_ORIGIN
from loopwright.core.plans.evaluating import Finding
from loopwright.core.policy.complexity import complexity_of
from loopwright.core.policy.order import is_met
from loopwright.core.rows.model import Plan, Task
from loopwright.core.values.ids import Kind
from loopwright.core.values.states import PlanState, TaskState
from loopwright.engine.rows.moves import move_task, need
from loopwright.engine.rows.plan_states_text import held_because
from loopwright.engine.rows.queue import new_attempt
from loopwright.engine.rows.source_marks import marks_of
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

    A task that is marked as blocked waits for the user, and so does one that would have been refused with a
    whole plan: `against` has the objections.
    """
    held = item.mark is Mark.BLOCKED or bool(against)
    # Only what the plan started with can permit something: an agent may have written later additions.
    item = replace(item, may_change=())
    row = task_row(ids(Kind.TASK), plan, item, position=position, now=tx.now())
    task = replace(row, origin=origin)
    if against:
        task = replace(task, status=TaskState.ERROR, reason="; ".join(one.text for one in against))
    tx.insert(task)
    current = need(tx.get(Plan, plan.id), "the plan")
    known = current.evaluation
    found = [{"check": one.check, "weight": one.weight.value, "text": one.text} for one in against]
    evaluation = {
        **known,
        "tasks": int(known.get("tasks", 0)) + 1,
        "findings": [*known.get("findings", ()), *found],
    }
    plan = tx.update(
        Plan,
        plan.id,
        open_tasks=current.open_tasks + (not held),
        failed_tasks=current.failed_tasks + held,
        completed_at=None,
        evaluation=evaluation,
    )
    if held or plan.status is not PlanState.RUNNING:
        return task
    if task.manual:
        return move_task(tx, task, TaskState.QUEUED, "task_queued")
    attempt = new_attempt(tx, ids, plan, task, n=1)
    return move_task(tx, task, TaskState.QUEUED, "task_queued", attempt_id=attempt.id)


def add_parts(
    tx: Tx, ids: Ids, plan: Plan, task: Task, parts: Sequence[tuple[str, str]]
) -> tuple[list[Task], dict[str, Any]]:
    """Add smaller tasks, each a title and a description, before a task; return them, and what changes on the task."""
    tasks = tx.find(Task, plan_id=plan.id)
    taken = {*marks_of(tx, plan.id), *(one.key for one in tasks)}
    position = max((one.position for one in tasks), default=-1) + 1
    made: list[Task] = []
    for n, (title, description) in enumerate(parts):
        names = (f"{task.key}-part-{n + 1 + more}" for more in range(len(taken) + 1))
        key = next(name for name in names if name not in taken)
        taken.add(key)
        item = PlannedTask(
            key=key, title=title, description=description, scope=task.scope, priority=task.priority
        )
        made.append(add_task(tx, ids, plan, item, position=position + n, origin=SPLIT_ORIGIN))
    for n, row in enumerate(made):
        before, after = made[max(0, n - 1) : n], made[n + 1 : n + 2]
        tx.update(
            Task,
            row.id,
            depends_on=tuple(one.id for one in before),
            unmet=len(before),
            dependents=(*(one.id for one in after), task.id),
        )
    needs = (*task.depends_on, *(one.id for one in made))
    rows = {one.id: one for one in tx.find(Task, plan_id=plan.id)}
    return made, {"depends_on": needs, "unmet": sum(not is_met(rows[one]) for one in needs)}


FIRST = -1
"""The priority of an item that its source marks as in progress, or next, when a plan is made: it goes first."""


def task_row(id: str, plan: Plan, task: PlannedTask, *, position: int, now: datetime) -> Task:
    """Return the row of a planned task, without its dependencies; a task marked as blocked waits for the user."""
    held = task.mark is Mark.BLOCKED
    most = task.max_attempts or plan.policy.max_attempts
    before = min(task.attempts, most)
    return Task(
        id=id,
        plan_id=plan.id,
        key=task.key,
        title=task.title,
        description=task.description,
        criteria=task.criteria,
        # A manual step leaves nothing in the tree: no command checks it.
        acceptance=() if task.manual else task.acceptance,
        held_out=() if task.manual else task.held_out,
        approved=task.may_change,
        scope=task.scope,
        priority=FIRST if task.mark is Mark.RUNNING else task.priority,
        position=position,
        phase=task.phase,
        type=task.type,
        complexity=complexity_of(
            title=task.title,
            description=task.description,
            kind=task.type,
            dependencies=len(task.depends_on),
            checks=len(task.acceptance) + len(task.criteria),
            said=task.complexity,
        ).level,
        prove=task.prove,
        manual=task.manual,
        section=task.section,
        status=TaskState.ERROR if held else TaskState.CREATED,
        reason=held_because(task.reason) if held else "",
        attempts=before,
        # A new request restarts the attempts, however often it was tried before.
        max_attempts=max(most, before + 1),
        agent=task.agent,
        model=task.model,
        created_at=now,
        updated_at=now,
    )
