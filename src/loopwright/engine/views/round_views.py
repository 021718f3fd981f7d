"""The state of a prompt loop, from its rows."""

from datetime import datetime

from loopwright.core.policy.rounds import ROUND, Last, following, loops
from loopwright.core.rows.model import Attempt, Plan, Task, VerdictRecord
from loopwright.core.values.findings import VerdictStatus
from loopwright.core.values.states import PlanState, TaskState
from loopwright.ports import Tx


def last(tx: Tx, plan: Plan) -> Last | None:
    """Return the newest round of a loop that has nothing left to run; None if that round is not final."""
    task = _newest(tx, plan)
    if task is None or task.status is not TaskState.COMPLETE or task.completed_at is None:
        return None
    attempt = tx.get(Attempt, task.attempt_id) if task.attempt_id else None
    record = tx.get(VerdictRecord, attempt.verdict_id) if attempt and attempt.verdict_id else None
    verdict = record.verdict if record else None
    return Last(
        at=task.completed_at,
        left=left(task),
        green=verdict is not None and verdict.status is VerdictStatus.PASSED and not verdict.is_excused,
        settled=task.landed_sha is None,
        has_goal=bool(task.acceptance),
    )


def _newest(tx: Tx, plan: Plan) -> Task | None:
    tasks = tx.find(Task, plan_id=plan.id, origin=("", ROUND), order_by=("-position",), limit=1)
    return tasks[0] if tasks else None


def left(task: Task) -> int:
    """Return how many more rounds may follow those of a task; a landed round counts too."""
    return task.max_attempts - task.attempts - 1


def sleeps_until(tx: Tx, plan: Plan) -> datetime | None:
    """Return when the next round begins, if a loop sleeps after a landed round."""
    if not plan.policy.rounds.on or plan.status is not PlanState.RUNNING or plan.open_tasks:
        return None
    newest = last(tx, plan)
    then = following(plan, newest) if newest is not None else None
    return then if isinstance(then, datetime) and then > tx.now() else None


def which_round(plan: Plan, task: Task) -> tuple[int, int]:
    """Return which round of a loop a task is in, and of how many; interrupted rounds do not count."""
    if not loops(plan, task):
        return 0, 0
    most = max(plan.policy.rounds.max, task.max_attempts)
    return min(most - task.max_attempts + task.attempts + 1, most), most


def how_it_stopped(tx: Tx, plan: Plan) -> str:
    """Return what stopped a loop, as its name and in words; empty for any other plan, or while it continues."""
    if not plan.policy.rounds.on or plan.completed_at is None:
        return ""
    told = tx.events(plan=plan.id, types=("rounds_ended",))
    return f"{told[-1].payload['stopped']}: {told[-1].payload['reason']}" if told else ""
