"""The user's changes of running work: priorities, agents, and more tasks."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from loopwright.core.policy import fallback
from loopwright.core.policy.budget import CAPS
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Command, Loop, Plan, Run, Task
from loopwright.core.values.errors import NotFound, Refused
from loopwright.core.values.policy import GateCommand
from loopwright.core.values.states import (
    ENDED_PLAN,
    SETTLED_TASK,
    AttemptState,
    LoopState,
    PlanState,
    RunState,
    TaskState,
)
from loopwright.core.values.wording import to_type
from loopwright.engine.money import pauses
from loopwright.engine.people.retries import refuse_superseded, reopen_plan
from loopwright.engine.rows.added_tasks import add_task
from loopwright.engine.rows.drafts import refuse_unwritten
from loopwright.engine.rows.moves import move_loop, need
from loopwright.ports import Ids, PlannedTask, Tx

INJECTED = "injected"
"""The origin of a task that the user added to a plan."""


def set_priority(tx: Tx, _ids: Ids, command: Command) -> str:
    """Change which loop, or which task of a plan, goes first."""
    loop, task = tx.get(Loop, command.target), tx.get(Task, command.target)
    priority = int(command.arguments.get("priority", 0))
    if loop is not None:
        before = loop.priority
        kept = {**(loop.settings or {}), "priority": priority}
        loop = tx.update(Loop, loop.id, priority=priority, settings=kept, updated_at=tx.now())
        tx.append(happened("priority_set", command.actor, loop=loop, before=before, now=priority))
    elif task is not None:
        plan = _open_plan(tx, task)
        before = task.priority
        task = tx.update(Task, task.id, priority=priority, updated_at=tx.now())
        tx.append(happened("priority_set", command.actor, plan=plan, task=task, before=before, now=priority))
    else:
        raise NotFound(f"there is no loop or task {command.target}", code="target_not_found")
    return f"the priority is {priority} now"


def set_agent(tx: Tx, _ids: Ids, command: Command) -> str:
    """Give a task, or everything that a loop has not begun yet, to another agent or model."""
    loop = tx.get(Loop, command.target)
    changes = {
        name: command.arguments[name]
        for name in ("agent", "model", "parallel")
        if command.arguments.get(name) is not None
    }
    if "agent" in changes:
        changes.setdefault("model", None)  # another agent does not know the model of this one
    shown = ", ".join(f"{name} {value}" for name, value in changes.items() if value is not None)
    if loop is not None:
        _set_loop(tx, loop, changes, command.actor)
        return f"what starts next in the loop uses {shown}"
    task = tx.get(Task, command.target)
    if task is None:
        raise NotFound(f"there is no loop or task {command.target}", code="target_not_found")
    plan = _open_plan(tx, task)
    task = tx.update(Task, task.id, updated_at=tx.now(), **changes)
    tx.append(happened("agent_set", command.actor, plan=plan, task=task, **changes))
    give_queued(tx, plan, task)
    return f"its next attempt uses {shown}"


def _set_loop(tx: Tx, loop: Loop, changes: dict[str, Any], actor: str) -> None:
    kept = {key: value for key, value in {**(loop.settings or {}), **changes}.items() if value is not None}
    loop = tx.update(Loop, loop.id, settings=kept, updated_at=tx.now())
    tx.append(happened("agent_set", actor, loop=loop, **changes))
    plan = tx.get(Plan, loop.plan_id) if loop.plan_id else None
    if plan is None or plan.status in ENDED_PLAN:
        return
    plan = tx.update(Plan, plan.id, policy=replace(plan.policy, **changes))
    for task in tx.find(Task, plan_id=plan.id, status=TaskState.QUEUED):
        give_queued(tx, plan, task)


def give_queued(tx: Tx, plan: Plan, task: Task) -> None:
    """Give an attempt that has not begun to the current agent and model."""
    attempt = tx.get(Attempt, task.attempt_id) if task.attempt_id else None
    if attempt is None or attempt.state is not AttemptState.QUEUED:
        return
    agent, model = fallback.meant(task, plan.policy)
    tx.update(Attempt, attempt.id, agent=agent, model=model, updated_at=tx.now())
    run = tx.get(Run, attempt.run_id) if attempt.run_id else None
    if run is not None and run.state is RunState.QUEUED:
        tx.update(Run, run.id, agent=agent, model=model)


def inject(tx: Tx, ids: Ids, command: Command) -> str:
    """Add a task to a running plan."""
    plan, loop = current(tx, command)
    if plan.status in ENDED_PLAN:
        raise Refused(
            f"the plan is {plan.status.value}",
            code="plan_ended",
            hint="add the task to its source and start it",
        )
    wanted: dict[str, Any] = dict(command.arguments)
    key = str(wanted["key"])
    tasks = tx.find(Task, plan_id=plan.id)
    if any(task.key == key for task in tasks):
        raise Refused(f"the plan has a task {key} already", code="task_exists", hint="choose another key")
    position = max((task.position for task in tasks), default=0) + 1
    item = PlannedTask(
        key=key,
        title=str(wanted["title"]),
        description=str(wanted.get("description") or ""),
        criteria=tuple(wanted.get("criteria") or ()),
        acceptance=tuple(
            GateCommand(name=f"{key} {n}", command=one)
            for n, one in enumerate(wanted.get("acceptance") or (), 1)
        ),
        priority=int(wanted.get("priority") or 50),
    )
    waited = waits_for_verify(plan)
    task = add_task(tx, ids, plan, item, position=position, origin=INJECTED)
    tx.append(happened("task_injected", command.actor, plan=plan, task=task, key=key, title=task.title))
    reopen_plan(tx, plan.id, command.actor)
    if waited and loop.state is LoopState.PAUSED:
        move_loop(tx, loop, LoopState.RUNNING, "loop_started", command.actor)
    return f"the task {key} was added to the plan"


def interrupt(tx: Tx, _ids: Ids, command: Command) -> str:
    """End the agent that works on a task: the task begins again with the note, and no attempt is used up."""
    task = tx.get(Task, command.target)
    if task is None:
        raise NotFound(f"there is no task {command.target}", code="task_not_found")
    plan = _open_plan(tx, task)
    attempt = tx.get(Attempt, task.attempt_id) if task.attempt_id else None
    run = str(command.arguments.get("run") or "")
    at_work = attempt is not None and attempt.state is AttemptState.WORKING and not attempt.interrupt
    if attempt is None or not at_work or (run and attempt.run_id != run):
        raise Refused(
            f"no agent works on {task.key} now",
            code="run_not_interruptible",
            hint="only a running agent can be interrupted",
        )
    begin_again(tx, plan, task, attempt, command.actor, str(command.arguments.get("note") or ""))
    return f"the agent of {task.key} ends, and the task begins again"


def begin_again(tx: Tx, plan: Plan, task: Task, attempt: Attempt, actor: str, note: str) -> None:
    """End the agent of an attempt; its task then begins again with the note."""
    if note:
        task = tx.update(Task, task.id, note=note, updated_at=tx.now())
    tx.update(Attempt, attempt.id, interrupt="cancel")
    tx.append(happened("task_interrupted", actor, plan=plan, task=task, note=note))


def set_limits(tx: Tx, _ids: Ids, command: Command) -> str:
    """Change cost limits of a plan."""
    plan, _ = current(tx, command)
    if plan.status in ENDED_PLAN:
        raise Refused(
            f"the plan is {plan.status.value}", code="plan_ended", hint="nothing more is spent in it"
        )
    limits = {name: command.arguments[name] for name in CAPS if name in command.arguments}
    pauses.set_limits(tx, plan, limits, command.actor)
    return "the limits are set"


def dispatch(tx: Tx, _ids: Ids, command: Command) -> str:
    """Start a draft."""
    plan, loop = current(tx, command)
    if plan.status is not PlanState.DRAFT or loop.state is LoopState.RUNNING:
        raise Refused(
            f"the plan is {plan.status.value}: only a draft can be dispatched", code="plan_not_a_draft"
        )
    refuse_unwritten(plan)
    despite = str(command.arguments.get("despite") or "")
    if not plan.evaluation.get("passed") and not plan.evaluation.get("despite"):
        if not despite:
            raise Refused(
                "the evaluation of this plan speaks against running it",
                code="plan_not_evaluated",
                hint="edit the plan, or dispatch it with a reason",
            )
        plan = tx.update(Plan, plan.id, evaluation={**plan.evaluation, "despite": despite})
        tx.append(happened("plan_forced", command.actor, plan=plan, reason=despite))
    if command.arguments.get("parallel") is False:
        tx.update(Plan, plan.id, policy=replace(plan.policy, parallel=1))
    move_loop(tx, loop, LoopState.RUNNING, "loop_started", command.actor)
    return "dispatched"


def reset(tx: Tx, ids: Ids, command: Command, retry: Callable[[Tx, Ids, Command], str]) -> str:
    """Let a task start over: pending, with no attempt used up. Earlier attempts stay in the record."""
    task = tx.get(Task, command.target)
    if task is None:
        raise NotFound(f"there is no task {command.target}", code="task_not_found")
    if task.status in (TaskState.ERROR, TaskState.CANCELLED):
        retry(tx, ids, replace(command, arguments={}))
    elif task.status not in (TaskState.QUEUED, TaskState.CREATED):
        raise Refused(
            f"the task {task.key} is {task.status.value}",
            code="task_not_resettable",
            hint=f"`{to_type('rollback', task.key)}` takes back what it landed"
            if task.status is TaskState.COMPLETE
            else f"`{to_type('cancel', task.key)}` first",
        )
    plan = need(tx.get(Plan, task.plan_id), "the plan")
    most = plan.policy.max_attempts
    task = tx.update(Task, task.id, attempts=0, max_attempts=most, updated_at=tx.now())
    tx.append(happened("task_reset", command.actor, plan=plan, task=task))
    return "it is pending, with no attempt used up"


def waits_for_verify(plan: Plan) -> bool:
    """Return whether a plan only waits for a verification that the user has to request."""
    settled = plan.status is PlanState.RUNNING and not plan.open_tasks and not plan.failed_tasks
    return settled and plan.policy.autonomy == "manual" and plan.verify_asked_at is None


def current(tx: Tx, command: Command) -> tuple[Plan, Loop]:
    plan = tx.get(Plan, command.target)
    if plan is None:
        raise NotFound(f"there is no plan {command.target}", code="plan_not_found")
    loop = need(tx.get(Loop, plan.loop_id), "the loop")
    refuse_superseded(plan, loop)
    return plan, loop


def _open_plan(tx: Tx, task: Task) -> Plan:
    plan = need(tx.get(Plan, task.plan_id), "the plan")
    refuse_superseded(plan, need(tx.get(Loop, plan.loop_id), "the loop"))
    if task.status in SETTLED_TASK:
        raise Refused(
            f"the task {task.key} is {task.status.value}: nothing starts in it by itself",
            code="task_settled",
            hint="retry or reset it first",
        )
    return plan
