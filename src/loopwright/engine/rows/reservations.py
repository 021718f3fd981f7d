"""What is kept free of a budget for agents that run, and who is told when some of it is free again.

It is what one may cost at most, else what it will probably cost.
"""

from typing import Any

from loopwright.core.policy.budget import WAITS, expected
from loopwright.core.rows.model import Attempt, Plan, Run
from loopwright.core.values.states import PROCESS_OVER, AttemptState
from loopwright.ports import Tx

_RUNS = 20
_PLANS = 20
"""What is older says little about what a run costs now, and looking at all of them would grow with the project."""


class Reservations:
    """Says what runs need to be kept free, looking up what runs like them have cost once for each kind."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._known: dict[tuple[object, ...], tuple[int, ...]] = {}

    def of(self, plan: Plan, run: Run) -> int:
        """Return what a run that nothing else is known of will probably cost, in millionths of a dollar."""
        return expected(self._costs(plan, run), least=plan.policy.reserve_per_run)

    def _costs(self, plan: Plan, run: Run) -> tuple[int, ...]:
        kind = (plan.project_id, run.agent, run.role, run.model)
        if kind not in self._known:
            self._known[kind] = self._look(plan, run)
        return self._known[kind]

    def _look(self, plan: Plan, run: Run) -> tuple[int, ...]:
        """Return what the newest runs of the project cost that had the same agent, for the same purpose."""
        plans = self._tx.find(Plan, project_id=plan.project_id, order_by=("-created_at",), limit=_PLANS)
        alike: dict[str, Any] = {
            "plan_id": [one.id for one in plans],
            "agent": run.agent,
            "role": run.role,
            "state": PROCESS_OVER,
            "order_by": ("-ended_at",),
            "limit": _RUNS,
        }
        same = self._tx.find(Run, **alike, model=run.model) if run.model else []
        # What failed before it did anything, or told nothing, does not say what a run costs.
        return tuple(one.cost_micros for one in same or self._tx.find(Run, **alike) if one.cost_micros)


def freed(tx: Tx, project_id: str) -> None:
    """Let those look again who wait until something of a budget of the project is free."""
    for attempt in tx.find(Attempt, state=AttemptState.WAITING, wait_reason=WAITS):
        plan = tx.get(Plan, attempt.plan_id)
        if plan is not None and plan.project_id == project_id:
            tx.update(Attempt, attempt.id, wake_at=tx.now(), updated_at=tx.now())
