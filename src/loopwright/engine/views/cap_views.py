"""Caps as people see them: what each one allows, and what was spent of it."""

from dataclasses import dataclass

from loopwright.core.policy import budget
from loopwright.core.rows.model import Plan
from loopwright.core.values.states import ENDED_PLAN
from loopwright.engine.money import spending
from loopwright.engine.money.cap_warnings import in_force
from loopwright.ports import Tx

_EACH = frozenset({"max_cost_per_run", "max_cost_per_task"})
"""Caps that each run or task has to itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapView:
    """One limit of a plan."""

    setting: str
    limit_micros: int
    spent_micros: int | None
    """By runs that have ended; None where each run or task has the limit to itself."""
    warning: str = ""
    """That it is nearly used up, in words; empty while it is not, and when it is used up."""


def cap_views(tx: Tx, plan: Plan) -> tuple[CapView, ...]:
    """Return the limits of a plan."""
    if not budget.has_caps(plan.policy):
        return ()
    found = budget.caps(plan.policy, spending.spent_before(tx, plan))
    warnings = {} if plan.status in ENDED_PLAN else in_force(tx, plan, found)
    return tuple(
        CapView(
            setting=one.setting,
            limit_micros=one.limit,
            spent_micros=None if one.setting in _EACH else one.spent,
            warning=warnings.get(one.setting, ""),
        )
        for one in found
    )
