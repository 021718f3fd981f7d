"""The user's decisions about the end of a plan: verify it, verify what landed, or fail it."""

from collections.abc import Callable
from typing import Any

from loopwright.core.policy.order import is_met
from loopwright.core.rows.model import Attempt, Command, Loop, Outcome, Plan, Role, Run, Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.errors import Refused
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import ENDED_PLAN, LIVE_ATTEMPT, LoopState, PlanState, RunState, TaskState
from loopwright.engine.people.steering import current, waits_for_verify
from loopwright.engine.rows import questions
from loopwright.engine.rows.moves import begin_verify, move_loop, move_plan, move_run, need
from loopwright.ports import Tx

Cancel = Callable[[Tx, Command, Task], str]
"""Cancels a task."""


def reverify(tx: Tx, command: Command, cancel: Cancel) -> str:
    """Run gate:all of a plan that waits for that, or of a failed plan again: only at the user's request."""
    plan, loop = current(tx, command)
    if command.arguments.get("partial"):
        plan = _without_failed(tx, command, plan, cancel)
    if waits_for_verify(plan):
        tx.update(Plan, plan.id, verify_asked_at=tx.now())
        if loop.state is not LoopState.RUNNING:
            move_loop(tx, loop, LoopState.RUNNING, "loop_started", command.actor)
        return "gate:all will run"
    if given_up := left_out(tx, plan, loop):
        return _verify_without(tx, plan, loop, given_up, command.actor)
    if plan.status is PlanState.VERIFIED:
        raise Refused(
            "the plan is VERIFIED: its complete gate has passed on what landed",
            code="plan_verified",
            hint=f"`loopwright receipt replay {short_id(plan.id)}` runs it again on that commit; "
            f"`loopwright status {short_id(plan.id)}` says how to merge the result",
        )
    if plan.status is not PlanState.FAILED or plan.open_tasks or plan.failed_tasks:
        _refuse_failed_tasks(tx, plan)
        stuck = held_up(tx, plan.id)
        names = ", ".join(task.key for task in stuck[:3]) + (" …" if len(stuck) > 3 else "")
        raise Refused(
            "only a plan that FAILED its verification, with every task landed or cancelled, can be verified again",
            code="plan_not_reverifiable",
            hint=f"cancel what can never start without a cancelled task, then reverify: {names}"
            if stuck
            else f"`loopwright status {short_id(plan.id)}` says what it waits for",
        )
    for one in questions.of_plan(tx, plan.id):
        tx.update(Question, one.id, key="")  # a new verification needs a new decision
    changes: dict[str, Any] = {"outcome": None, "reason": "", "verdict": None, "verified_at": None}
    changes["verify_asked_at"] = tx.now()
    move_plan(tx, plan, PlanState.RUNNING, "plan_reopened", command.actor, call_failures=0, **changes)
    if loop.state is not LoopState.RUNNING:
        move_loop(tx, loop, LoopState.RUNNING, "loop_started", command.actor)
    return "gate:all will run once more"


def _refuse_failed_tasks(tx: Tx, plan: Plan) -> None:
    failed = tx.find(Task, plan_id=plan.id, status=TaskState.ERROR, order_by=("position",))
    if not failed or plan.open_tasks > len(failed) + tx.count(Task, plan_id=plan.id, status=TaskState.QUEUED):
        return
    names = ", ".join(task.key for task in failed[:3]) + (" …" if len(failed) > 3 else "")
    raise Refused(
        f"{len(failed)} of the plan's tasks failed: {names}",
        code="tasks_failed",
        hint="retry them, verify the plan without them (partial), or fail the plan",
    )


def _without_failed(tx: Tx, command: Command, plan: Plan, cancel: Cancel) -> Plan:
    """Cancel the tasks that failed, and those that can never start without them."""
    for task in tx.find(Task, plan_id=plan.id, status=TaskState.ERROR):
        cancel(tx, command, task)
    for task in held_up(tx, plan.id):
        cancel(tx, command, task)
    plan = need(tx.get(Plan, plan.id), "the plan")
    if not left_out(tx, plan, need(tx.get(Loop, plan.loop_id), "the loop")):
        raise Refused(
            "there is no partial result to verify: nothing landed, no task failed, or a task can still continue",
            code="nothing_partial",
            hint="wait until every task is settled",
        )
    return plan


def fail(tx: Tx, command: Command, cancel: Cancel) -> str:
    """End a plan as failed because the user says so."""
    plan, loop = current(tx, command)
    if plan.status is PlanState.FAILED:
        return "already failed"
    if plan.status is PlanState.DRAFT:
        raise Refused("the plan is a draft", code="plan_is_a_draft", hint="cancel it instead")
    if plan.status in ENDED_PLAN:
        raise Refused(
            f"the plan is {plan.status.value}", code="plan_ended", hint="there is nothing left to do"
        )
    settled = (TaskState.COMPLETE, TaskState.CANCELLED, TaskState.ERROR)
    for task in tx.find(Task, plan_id=plan.id):
        if task.status not in settled:
            cancel(tx, command, task)
    for run in tx.find(Run, plan_id=plan.id, role=(Role.VERIFY, Role.EVALUATION), state=RunState.RUNNING):
        move_run(tx, run, RunState.CANCELLED, ended_by="asked", summary="the plan was failed by a person")
    reason = str(command.arguments.get("reason") or "failed by a person")
    plan = need(tx.get(Plan, plan.id), "the plan")
    move_plan(
        tx,
        plan,
        PlanState.FAILED,
        "plan_failed",
        command.actor,
        about={"reason": reason},
        outcome=Outcome.NOT_VERIFIED,
        reason=reason,
        verify_fence=plan.verify_fence + 1,
    )
    if loop.state is LoopState.RUNNING:
        move_loop(tx, loop, LoopState.FAILED, "loop_failed", command.actor, reason)
    elif loop.state is LoopState.PAUSED:
        move_loop(tx, loop, LoopState.STOPPED, "loop_stopped", command.actor, reason)
    return "failed; what landed stays on the plan branch"


def left_out(tx: Tx, plan: Plan, loop: Loop) -> list[Task]:
    """Return the cancelled tasks that block a plan, if all others have landed; else nothing."""
    held = plan.status is PlanState.RUNNING and loop.state is not LoopState.RUNNING
    if plan.open_tasks or not (held or plan.status is PlanState.FAILED):
        return []
    tasks = tx.find(Task, plan_id=plan.id, order_by=("position",))
    tasks = [task for task in tasks if not (task.manual and is_met(task))]
    given_up = [task for task in tasks if task.status is TaskState.CANCELLED]
    landed = [task for task in tasks if task.status is TaskState.COMPLETE]
    whole = landed and len(given_up) + len(landed) == len(tasks)
    return given_up if whole and not tx.count(Attempt, plan_id=plan.id, state=LIVE_ATTEMPT) else []


def held_up(tx: Tx, plan_id: str) -> list[Task]:
    """Return the tasks that wait for a cancelled one, if only these keep a plan from its end; else nothing."""
    tasks = {task.id: task for task in tx.find(Task, plan_id=plan_id, order_by=("position",))}
    stuck = {task.id for task in tasks.values() if task.status is TaskState.CANCELLED and not is_met(task)}
    if not stuck or not any(task.status is TaskState.COMPLETE for task in tasks.values()):
        return []
    before = 0
    while before != len(stuck):
        before = len(stuck)
        stuck |= {task.id for task in tasks.values() if stuck.intersection(task.depends_on)}
    left = [task for task in tasks.values() if task.status not in (TaskState.COMPLETE, TaskState.CANCELLED)]
    return left if all(task.id in stuck and task.status is TaskState.QUEUED for task in left) else []


def _verify_without(tx: Tx, plan: Plan, loop: Loop, given_up: list[Task], actor: str) -> str:
    """Treat what landed as the whole: the user wants the plan judged without cancelled tasks."""
    changes: dict[str, Any] = {"outcome": None, "reason": "", "verdict": None, "verified_at": None}
    begin_verify(tx, tx.update(Plan, plan.id, completed_at=tx.now(), call_failures=0, **changes), actor)
    if loop.state is not LoopState.RUNNING:
        move_loop(tx, loop, LoopState.RUNNING, "loop_started", actor)
    names = ", ".join(task.key for task in given_up[:5]) + (" …" if len(given_up) > 5 else "")
    return f"gate:all will run on what landed, without {names}"
