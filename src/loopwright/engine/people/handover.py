"""The user does a task by hand: takes it over, and hands the work back to the same checks."""

from typing import Any, Final

from loopwright.core.replies.qa import ORIGIN, TYPE
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Command, Loop, Outcome, Plan, Run, Task
from loopwright.core.values.errors import NotFound, Refused
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import (
    LIVE_ATTEMPT,
    AttemptState,
    LoopState,
    PlanState,
    RunState,
    TaskState,
)
from loopwright.core.values.wording import to_type
from loopwright.engine.people.retries import evidence_of, refuse_superseded, reopen_plan, starts_over
from loopwright.engine.rows.moves import (
    begin_anew,
    cancel_attempt,
    complete_task,
    move_attempt,
    move_run,
    move_task,
    need,
)
from loopwright.engine.rows.order import follow_order
from loopwright.engine.rows.plan_states_text import plan_word
from loopwright.engine.rows.questions import open_of
from loopwright.engine.rows.queue import new_attempt
from loopwright.ports import Ids, Tx

HUMAN: Final = "human"
"""The agent name of an attempt that the user made."""
_PARKED: Final = frozenset({AttemptState.QUEUED, AttemptState.WAITING})
_CLOSED: Final = {
    PlanState.VERIFIED: "`loopwright reject TASK` opens it again",
    PlanState.VERIFYING: "`stop` the plan first, or wait",
}


def _task(tx: Tx, command: Command) -> tuple[Task, Plan]:
    task = tx.get(Task, command.target)
    if task is None:
        raise NotFound(f"there is no task {command.target}", code="task_not_found")
    plan = need(tx.get(Plan, task.plan_id), "the plan")
    loop = need(tx.get(Loop, plan.loop_id), "the loop")
    refuse_superseded(plan, loop)
    if plan.status is PlanState.CANCELLED:
        raise Refused("the plan is CANCELLED", code="plan_cancelled", hint=starts_over(loop))
    if plan.status in _CLOSED:
        raise Refused(f"the plan is {plan_word(tx, plan)}", code="plan_ended", hint=_CLOSED[plan.status])
    return task, plan


def take_over(tx: Tx, ids: Ids, command: Command) -> str:
    """Give a task to the user: nothing starts for it until it comes back."""
    task, plan = _task(tx, command)
    where = str(command.arguments.get("directory") or "")
    if task.taken_by:
        if where and where != task.taken_dir:
            raise Refused(f"{task.taken_by} has it already, in {task.taken_dir}", code="task_taken_over")
        return f"with {task.taken_by} in {task.taken_dir}"
    if task.status is TaskState.COMPLETE:
        raise Refused(
            f"{task.key} has landed already",
            code="task_landed",
            hint=f"`{to_type('rollback', task.key)}` takes that back first",
        )
    if task.manual:
        raise Refused(
            f"{task.key} is a manual step, which no agent gets",
            code="task_manual",
            hint="`loopwright answer` lists the steps that wait for you",
        )
    if task.unmet or task.status is TaskState.CREATED:
        raise Refused(
            f"{task.key} waits for other tasks: what it builds on is not there yet", code="task_waits"
        )
    _end_attempt(tx, ids, command, plan, task)
    before = need(tx.get(Task, task.id), "the task")
    task = tx.update(
        Task, task.id, taken_by=command.actor, taken_dir=where, not_before=None, updated_at=tx.now()
    )
    follow_order(tx, before, task)
    told: dict[str, Any] = {"key": task.key, "directory": where, "command": command.id}
    tx.append(happened("task_taken_over", command.actor, plan=plan, task=task, **told))
    return f"{task.key} is yours; the machine leaves it alone until you hand it back"


def _end_attempt(tx: Tx, ids: Ids, command: Command, plan: Plan, task: Task) -> None:
    """End Loopwright's work on the task; its next attempt waits for the user, or for Loopwright again."""
    last = tx.get(Attempt, task.attempt_id) if task.attempt_id else None
    if task.status is TaskState.QUEUED:
        return  # that attempt has not begun
    if last is not None and last.state is AttemptState.LANDING:
        raise Refused(f"{task.key} is landing right now", code="task_landing", hint="look again in a moment")
    told = evidence_of(tx, last)
    if last is not None and last.state in _PARKED:
        cancel_attempt(tx, last, fence=None, actor=command.actor)
    elif last is not None and last.state in LIVE_ATTEMPT:
        # It is queued again after its agent has ended properly: see `moves.begin_anew`.
        tx.update(Attempt, last.id, interrupt="cancel")
        return
    numbers = [attempt.n for attempt in tx.find(Attempt, task_id=task.id)]
    following = new_attempt(tx, ids, plan, task, n=max(numbers, default=0) + 1, evidence=told)
    move_task(
        tx,
        task,
        TaskState.QUEUED,
        "task_reopened",
        command.actor,
        about={"why": command.verb, "command": command.id, "n": following.n},
        attempt_id=following.id,
        failure=None,
        failure_mark="",
        reason="",
        outcome=None,
    )


def hand_back(tx: Tx, ids: Ids, command: Command) -> str:
    """Take the user's work as an attempt that is about to be checked, or the task back without any work."""
    task, plan = _task(tx, command)
    if not task.taken_by:
        raise Refused(
            f"{task.key} is not taken over",
            code="task_not_taken_over",
            hint=f"`{to_type('take-over', task.key)}` does",
        )
    task = begin_anew(tx, ids, task, command.actor)
    if task.status is not TaskState.QUEUED:
        last = need(tx.get(Attempt, task.attempt_id or ""), "the attempt")
        if asked := open_of(tx, last):
            question = short_id(asked[0].id)
            raise Refused(
                f"{task.key} waits for your answer to {question}",
                code="task_asks_you",
                hint=f"`{to_type('answer', question)}` shows the question and takes your answer",
            )
        why = "is being checked" if last.agent == HUMAN else "is being taken from its agent"
        raise Refused(f"{task.key} {why} right now", code="attempt_ending", hint="try again in a moment")
    if command.arguments.get("drop"):
        return _given_back(tx, command, plan, task)
    if task.unmet:
        raise Refused(
            f"{task.key} waits for tasks that were taken back since then",
            code="task_waits",
            hint="hand it back after them",
        )
    attempt = need(tx.get(Attempt, task.attempt_id or ""), "the queued attempt")
    run = need(tx.get(Run, attempt.run_id or ""), "its run")
    base, tip = str(command.arguments["base_sha"]), str(command.arguments["tip_sha"])
    tx.update(Run, run.id, agent=None, model=None, permission_mode=None)
    begun = move_run(tx, need(tx.get(Run, run.id), "its run"), RunState.RUNNING)
    move_run(tx, begun, RunState.COMPLETE, cost_micros=0, summary=f"handed back by {command.actor}")
    attempt = tx.update(Attempt, attempt.id, agent=HUMAN, model=None, stands_in="", base_sha=base)
    for state in (AttemptState.PREPARING, AttemptState.WORKING):
        attempt = move_attempt(tx, attempt, state, command.actor)
    move_attempt(tx, attempt, AttemptState.CHECKING, command.actor, tip_sha=tip)
    first = {} if task.first_base_sha else {"first_base_sha": base}
    about: dict[str, Any] = {"n": attempt.n, "agent": HUMAN}
    task = move_task(tx, task, TaskState.RUNNING, "task_started", command.actor, about=about, **first)
    told: dict[str, Any] = {"key": task.key, "commit": tip, "n": attempt.n, "command": command.id}
    tx.append(happened("task_handed_back", command.actor, plan=plan, task=task, **told))
    reopen_plan(tx, plan.id, command.actor)
    return f"attempt {attempt.n} of {task.key}, by your hand, is checked now{_resting(tx, plan)}"


def _given_back(tx: Tx, command: Command, plan: Plan, task: Task) -> str:
    # A task without attempts left gets one more: without it, it could not continue.
    most = max(task.max_attempts, task.attempts + 1)
    before = task
    task = tx.update(
        Task,
        task.id,
        taken_by="",
        taken_dir="",
        failure=None,
        reason="",
        max_attempts=most,
        updated_at=tx.now(),
    )
    follow_order(tx, before, task)
    told: dict[str, Any] = {"key": task.key, "command": command.id}
    tx.append(happened("task_given_back", command.actor, plan=plan, task=task, **told))
    reopen_plan(tx, plan.id, command.actor)
    return f"Loopwright continues {task.key}; what you did stays where it is{_resting(tx, plan)}"


def _resting(tx: Tx, plan: Plan) -> str:
    loop = need(tx.get(Loop, plan.loop_id), "the loop")
    resting = loop.state in (LoopState.STOPPED, LoopState.PAUSED)
    return f", once `loopwright resume {short_id(plan.id)}` continues" if resting else ""


def reviewed(tx: Tx, ids: Ids, command: Command) -> str:  # noqa: ARG001 - every command has the same shape
    """Record that the user reviewed what a task, or every task of a plan, landed; pass a QA review."""
    task = tx.get(Task, command.target)
    plan = tx.get(Plan, task.plan_id if task else command.target)
    if plan is None:
        raise NotFound(f"there is no plan {command.target}", code="plan_not_found")
    if task is not None and is_undecided(task):
        return passed_by(tx, plan, task, command.actor)
    if task is not None and task.status is not TaskState.COMPLETE:
        raise Refused(f"{task.key} has not landed: there is nothing to look at yet", code="task_not_landed")
    done: dict[str, Any] = {"plan_id": plan.id, "status": TaskState.COMPLETE}
    landed = [task] if task else tx.find(Task, order_by=("position",), **done)
    new = [one for one in landed if not one.reviewed_by]
    for one in new:
        tx.update(Task, one.id, reviewed_by=command.actor)
    keys = [one.key for one in new]
    if keys:
        tx.append(
            happened("results_reviewed", command.actor, plan=plan, task=task, keys=keys, note=", ".join(keys))
        )
    return f"reviewed: {', '.join(keys[:10])}{' …' if len(keys) > 10 else ''}" if keys else "reviewed already"


# The user's decisions about a QA review: that it passes, or that a fix is not wanted.


def declined(tx: Tx, fix: Task) -> None:
    """Let a QA review continue without a fix that the user does not want."""
    if fix.origin != ORIGIN:
        return
    for one in fix.dependents:
        look = need(tx.get(Task, one), "the look")
        needs = tuple(each for each in look.depends_on if each != fix.id)
        tx.update(Task, look.id, depends_on=needs, unmet=max(0, look.unmet - 1))
    tx.update(Task, fix.id, dependents=())


def is_undecided(task: Task) -> bool:
    """Return whether a task is a QA review that the user may pass."""
    return task.type == TYPE and task.status is not TaskState.COMPLETE


def passed_by(tx: Tx, plan: Plan, task: Task, actor: str) -> str:
    """Complete a QA review because the user says that it passes: nothing was checked, and the record says so."""
    if plan.status is not PlanState.RUNNING or task.status not in (TaskState.QUEUED, TaskState.ERROR):
        raise Refused(
            f"{task.key} is {task.status.value} in a plan that is {plan_word(tx, plan)}",
            code="task_not_in_qa",
            hint="a look that waits, or that was given up, can be passed by you",
        )
    attempt = tx.get(Attempt, task.attempt_id) if task.attempt_id else None
    if attempt is not None and attempt.state in LIVE_ATTEMPT:
        if attempt.state is not AttemptState.QUEUED:
            raise Refused(
                f"{task.key} is still being ended", code="attempt_ending", hint="try again in a moment"
            )
        cancel_attempt(tx, attempt, fence=None, actor=actor)
    reopen_plan(tx, plan.id, actor)
    reason = f"passed by {actor}: nothing was checked"
    complete_task(tx, task, outcome=Outcome.UNVERIFIED, landed_sha=None, actor=actor, reason=reason)
    done = tx.update(Task, task.id, reviewed_by=actor)
    told: dict[str, Any] = {"keys": [task.key], "note": f"{task.key}: the whole was passed"}
    tx.append(happened("results_reviewed", actor, plan=plan, task=done, **told))
    return f"{task.key} is passed by your word: nothing was checked"
