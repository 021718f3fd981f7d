"""What a person decides about a look at the whole: that it is passed, or that a fix is not wanted."""

from typing import Any

from loopwright.core.replies.qa import ORIGIN, TYPE
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Outcome, Plan, Task
from loopwright.core.values.errors import Refused
from loopwright.core.values.states import LIVE_ATTEMPT, AttemptState, PlanState, TaskState
from loopwright.engine.rows.moves import cancel_attempt, complete_task, need
from loopwright.engine.rows.plan_states_text import plan_word
from loopwright.engine.rows.retries import reopen_plan
from loopwright.ports import Tx


def declined(tx: Tx, fix: Task) -> None:
    """Let a look go on without a fix that a person does not want."""
    if fix.origin != ORIGIN:
        return
    for one in fix.dependents:
        look = need(tx.get(Task, one), "the look")
        needs = tuple(each for each in look.depends_on if each != fix.id)
        tx.update(Task, look.id, depends_on=needs, unmet=max(0, look.unmet - 1))
    tx.update(Task, fix.id, dependents=())


def is_undecided(task: Task) -> bool:
    """Say whether a task is a look at the whole that a person may pass."""
    return task.type == TYPE and task.status is not TaskState.COMPLETE


def passed_by(tx: Tx, plan: Plan, task: Task, actor: str) -> str:
    """Take a person's word that the whole is as it should be: nothing was checked, and that is what is recorded."""
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
