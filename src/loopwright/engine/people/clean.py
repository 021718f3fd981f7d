"""Letting go of what an ended plan has in the user's repository: only what a person asked for, and on the record."""

from collections.abc import Collection, Sequence

from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Loop, Plan, Task
from loopwright.core.values.errors import Refused
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import PlanState
from loopwright.engine.rows.finishes import is_open
from loopwright.engine.rows.plan_states_text import plan_word
from loopwright.engine.rows.projects import Checkouts, recent_plans
from loopwright.ports import Tx

_MANY = 1000


def cleanable(tx: Tx, *, project_path: Checkouts | None) -> list[Plan]:
    """Return the plans that are over for good, newest first."""
    return [
        plan for plan in recent_plans(tx, project_path=project_path, limit=_MANY) if not why_not(tx, plan)
    ]


def check_clean(tx: Tx, plan: Plan) -> None:
    """Raise what speaks against cleaning up after a plan."""
    if why := why_not(tx, plan):
        raise Refused(
            f"{short_id(plan.id)} {why}",
            code="plan_still_needed",
            hint="only a plan that is over for good is cleaned up",
        )


def why_not(tx: Tx, plan: Plan) -> str:
    """Say why a plan is still needed; empty when it is over for good."""
    loop = tx.get(Loop, plan.loop_id)
    superseded = loop is not None and loop.plan_id != plan.id
    if plan.status not in (PlanState.VERIFIED, PlanState.CANCELLED) and not (
        plan.status is PlanState.FAILED and superseded
    ):
        # A failed plan can be retried and verified again, and both need its branch.
        return f"is {plan_word(tx, plan)}"
    if is_open(tx, plan.id):
        return "is being taken over (`loopwright resume` goes on with that)"
    if tx.find(Attempt, plan_id=plan.id, cleaned_at=None, limit=1):
        return "has workspaces that are not tidied yet (`loopwright worker --until-idle` does it)"
    return ""


def record_cleaned(
    tx: Tx,
    plan: Plan,
    actor: str,
    *,
    deleted: Sequence[str],
    unproven: Sequence[str],
    commits: Collection[str],
) -> None:
    """Write down which refs a person let go of, which of them were nowhere else, and what the plan's branch had.

    Of `commits` only the result and those with which tasks landed are kept: a receipt names these.
    """
    landed = [task.landed_sha for task in tx.find(Task, plan_id=plan.id, order_by=("position",))]
    named = [sha for sha in dict.fromkeys((plan.result_sha, *landed)) if sha in commits]
    tx.append(
        happened(
            "plan_cleaned",
            actor,
            plan=plan,
            deleted=list(deleted)[:500],
            unproven=list(unproven)[:500],
            commits=named,
        )
    )
