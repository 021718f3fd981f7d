"""Drafts that an agent writes: find those that wait for it, and record the result."""

from typing import Any

from loopwright.core.rows.model import Loop, Outcome, Plan
from loopwright.core.values.errors import Refused
from loopwright.core.values.states import LoopState, PlanState
from loopwright.engine.rows.moves import move_loop, move_plan
from loopwright.ports import Tx


def is_written(plan: Plan) -> bool:
    """Return whether a plan has its tasks."""
    return plan.wish is None or bool(plan.wish.get("written"))


def unwritten(tx: Tx) -> list[Plan]:
    """Return the drafts that wait for an agent to write their tasks."""
    return [plan for plan in tx.find(Plan, status=PlanState.DRAFT) if not is_written(plan)]


def fail_generation(tx: Tx, plan_id: str, reason: str) -> None:
    """End a draft whose tasks could not be written; a draft that the user cancelled stays cancelled."""
    plan = tx.get(Plan, plan_id)
    if plan is None or plan.status is not PlanState.DRAFT or is_written(plan):
        return
    checks = [{"name": "plan_generation", "status": "failed"}]
    move_plan(
        tx,
        plan,
        PlanState.FAILED,
        "plan_failed",
        about={"reason": reason, "checks": checks},
        reason=reason,
        outcome=Outcome.NOT_VERIFIED,
    )


def run_by_itself(tx: Tx, plan: Plan, loop: Loop, actor: str) -> Loop:
    """Dispatch a draft that was just written, if the user need not and there is no objection."""
    ready = loop.state is LoopState.IDLE and plan.evaluation.get("passed")
    if plan.policy.autonomy == "auto" and ready:
        return move_loop(tx, loop, LoopState.RUNNING, "loop_started", actor)
    return loop


def refuse_unwritten(plan: Plan) -> None:
    """Refuse an action on a draft before its tasks exist."""
    if plan.status is PlanState.DRAFT and not is_written(plan):
        raise Refused(
            "an agent is still writing the tasks of this plan",
            code="plan_being_written",
            hint="wait until `planning` is false, or cancel the plan",
        )


def goal_again(plan: Plan) -> str:
    """Return the goal of a plan that is planned again, with the reason of its failure."""
    goal = str((plan.wish or {}).get("goal") or plan.title)
    if plan.status is PlanState.FAILED and plan.reason:
        return f"{goal}\n\nAn earlier plan for this goal failed: {plan.reason}"
    return goal


def written(plan: Plan) -> dict[str, Any]:
    """Return what changes in a draft when it gets its tasks."""
    return {} if plan.wish is None else {"wish": {**plan.wish, "written": True}}
