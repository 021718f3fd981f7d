"""Budget that is reserved for running agents, and who is woken when some of it becomes free.

A run reserves the most that it may cost, else its probable cost.
"""

from typing import Any

from loopwright.core.policy.budget import WAITS, expected
from loopwright.core.rows.model import Attempt, Plan, Run
from loopwright.core.values.states import PROCESS_OVER, AttemptState
from loopwright.ports import Tx

_RUNS = 20
_PLANS = 20
"""How many plans count: older ones say little about the current cost of a run, and reading all would take too long."""


class Reservations:
    """Computes the reservation of runs, and reads the cost of similar runs once for each kind."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._known: dict[tuple[object, ...], tuple[int, ...]] = {}

    def of(self, plan: Plan, run: Run) -> int:
        """Return the probable cost of a run about which nothing else is known, in millionths of a dollar."""
        return expected(self._costs(plan, run), least=plan.policy.reserve_per_run)

    def _costs(self, plan: Plan, run: Run) -> tuple[int, ...]:
        kind = (plan.project_id, run.agent, run.role, run.model)
        if kind not in self._known:
            self._known[kind] = self._look(plan, run)
        return self._known[kind]

    def _look(self, plan: Plan, run: Run) -> tuple[int, ...]:
        """Return the cost of the project's newest runs with the same agent and role."""
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
        # A run that failed at once, or reported nothing, does not show what a run costs.
        return tuple(one.cost_micros for one in same or self._tx.find(Run, **alike) if one.cost_micros)


def freed(tx: Tx, project_id: str) -> None:
    """Wake the attempts that wait until some of the project's budget becomes free."""
    for attempt in tx.find(Attempt, state=AttemptState.WAITING, wait_reason=WAITS):
        plan = tx.get(Plan, attempt.plan_id)
        if plan is not None and plan.project_id == project_id:
            tx.update(Attempt, attempt.id, wake_at=tx.now(), updated_at=tx.now())
