"""How a loop over a prompt is shown."""

from loopwright.core.model import Plan
from loopwright.ports import Tx


def how_it_stopped(tx: Tx, plan: Plan) -> str:
    """Return what stopped a loop, in words; nothing for any other plan, or while it goes on."""
    if not plan.policy.rounds.on or plan.completed_at is None:
        return ""
    told = tx.events(plan=plan.id, types=("rounds_ended",))
    return str(told[-1].payload["reason"]) if told else ""
