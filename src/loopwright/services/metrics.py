"""How well plans and agents did: attempts, time, cost, first-pass rate, and flaky checks.

Not here: how the figures are computed (`engine.views`, `engine.gates`).
"""

from dataclasses import dataclass
from typing import Final

from loopwright.core.policy.price_table import AS_OF as PRICES_AS_OF
from loopwright.core.rows.model import Plan
from loopwright.core.values.errors import NotFound, UserError
from loopwright.engine.rows.projects import recent_plans
from loopwright.engine.views.agent_record import AgentRecord, agent_records
from loopwright.engine.views.metrics import (
    Figures,
    FlakyView,
    LoopFigures,
    PlanFigures,
    RunFigures,
    flaky_checks,
    loop_figures,
    plan_figures,
    run_figures,
    together,
)
from loopwright.ports import Tx
from loopwright.services.homes.read_only_home import find_target, glancing, project_here

__all__ = [
    "PRICES_AS_OF",
    "AgentRecord",
    "Figures",
    "FlakyView",
    "LoopFigures",
    "Metrics",
    "PlanFigures",
    "RunFigures",
    "agents",
    "flaky",
    "metrics",
]

MOST_PLANS: Final = 1000
"""The most plans that are evaluated, from the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """Figures about some plans."""

    plans: tuple[PlanFigures, ...]
    loops: tuple[LoopFigures, ...]
    runs: tuple[RunFigures, ...]
    """Empty unless requested."""
    together: Figures


def metrics(plan: str | None = None, *, last: int = MOST_PLANS, with_runs: bool = False) -> Metrics:
    """Return the figures of one plan, or of the newest plans of this repository; outside of one, of all."""
    if last < 1:
        raise UserError(
            f"--last needs a number from 1 on, not {last}",
            code="flag_value_wrong",
            hint="it is how many plans to look at",
        )

    def load(tx: Tx) -> tuple[list[PlanFigures], list[RunFigures]]:
        plans = _plans(tx, plan, last)
        runs = [run for one in plans for run in run_figures(tx, one)] if with_runs else []
        return [plan_figures(tx, one) for one in plans], runs

    with glancing() as look:
        plans, runs = look.store.read_sync(load)
    return Metrics(
        plans=tuple(plans), loops=tuple(loop_figures(plans)), runs=tuple(runs), together=together(plans)
    )


def flaky() -> tuple[FlakyView, ...]:
    """Return the checks of this repository that both passed and failed on the same tree; outside of one, of all."""
    project = project_here()
    with glancing() as look:
        return tuple(
            look.store.read_sync(
                lambda tx: flaky_checks(tx, recent_plans(tx, project_path=project, limit=MOST_PLANS))
            )
        )


def agents() -> tuple[AgentRecord, ...]:
    """Return the record of each agent and model in this repository; outside of one, in all."""
    project = project_here()
    with glancing() as look:
        return look.store.read_sync(
            lambda tx: agent_records(
                tx, {one.id: one.policy for one in recent_plans(tx, project_path=project, limit=None)}
            )
        )


def _plans(tx: Tx, name: str | None, last: int) -> list[Plan]:
    if name is None:
        return list(recent_plans(tx, project_path=project_here(), limit=last))
    found = find_target(tx, name)
    plan = found if isinstance(found, Plan) else tx.get(Plan, found.plan_id)
    if plan is None:
        raise NotFound(f"there is no plan {name}", code="plan_not_found")
    return [plan]
