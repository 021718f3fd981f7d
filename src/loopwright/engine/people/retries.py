"""What all retries need: whether one is allowed, its note, and a plan that runs."""

from typing import Any

from loopwright.core.gates.held_out import held_commands, not_passed
from loopwright.core.gates.verdicts import evidence
from loopwright.core.rows.model import Attempt, Loop, Plan, Role, Run, Task
from loopwright.core.values.errors import Refused
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Verdict, VerdictStatus
from loopwright.core.values.states import AttemptState, LoopState, PlanState
from loopwright.core.values.wording import to_type
from loopwright.engine.rows.moves import move_loop, move_plan, need
from loopwright.ports import Tx


def refuse_superseded(plan: Plan, loop: Loop) -> None:
    """Refuse a request for an older plan of a loop: it would change nothing, or the wrong plan."""
    if loop.plan_id != plan.id:
        raise Refused(
            f"{plan.id} is not the current plan of its loop",
            code="plan_superseded",
            hint=f"the current one is {loop.plan_id}",
        )


def starts_over(loop: Loop) -> str:
    """Return the command that starts a plan's work from the beginning."""
    return f"`{to_type('run', loop.source_path, new=True)}` starts the plan over"


def evidence_of(tx: Tx, last: Attempt | None) -> str:
    """Return why the last attempt failed; if it was never judged, why the one before it failed."""
    if last is None:
        return ""
    if last.state is not AttemptState.REJECTED:
        return last.evidence or last.detail
    if last.failure in (Failure.GATE, Failure.TOGETHER):
        gates = tx.find(Run, attempt_id=last.id, role=Role.GATE, order_by=("-created_at",))
        # The last verdict may be on the attempt alone, to see whether other landed work is to blame.
        found = [one.verdict for one in gates if one.verdict is not None]
        failed = [one for one in found if one.status is VerdictStatus.FAILED]
        if failed or found:
            return _told(need(tx.get(Task, last.task_id), "the task"), (failed or found)[0])
    return last.detail


def _told(task: Task, verdict: Verdict) -> str:
    """Return a gate's findings; of held-out checks only the parts that the agent may see."""
    held = {(one.name, one.command) for one in held_commands(task.held_out)}
    if held and held <= {(one.name, one.command) for one in verdict.commands}:
        return not_passed(task.held_out, verdict)[1]
    return evidence(verdict)


def reopen_plan(tx: Tx, plan_id: str, actor: str) -> None:
    """Let an ended plan, and its loop, continue because the user gave it more to do."""
    plan = need(tx.get(Plan, plan_id), "the plan")
    changes: dict[str, Any] = {"outcome": None, "reason": "", "completed_at": None, "verify_asked_at": None}
    if plan.status is PlanState.FAILED:
        move_plan(
            tx, plan, PlanState.RUNNING, "plan_reopened", actor, verdict=None, verified_at=None, **changes
        )
    else:
        tx.update(Plan, plan.id, **changes)
    loop = need(tx.get(Loop, plan.loop_id), "the loop")
    if loop.state in (LoopState.FAILED, LoopState.COMPLETED):
        move_loop(tx, loop, LoopState.RUNNING, "loop_started", actor)
