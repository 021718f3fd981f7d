"""The page of costs: each day, the cost by project, agent and so on, and the current limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from loopwright.core.rows.model import Plan
from loopwright.core.values.access import Caller
from loopwright.core.values.states import ENDED_PLAN, PlanState
from loopwright.engine.views.limit_views import CapView, cap_views
from loopwright.ports import Tx
from loopwright.services.homes.session import Session
from loopwright.services.remote.seen import seen_where
from loopwright.services.reports.costs import Cost, CostedRun, Dimension, cost_of, costed_runs, grouped

DIMENSIONS: Final = (Dimension.PROJECT, Dimension.AGENT, Dimension.MODEL, Dimension.ROLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLine:
    """The cost of one project, agent, model or role, in total and per day."""

    cost: Cost
    series: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCaps:
    """The limits of a running plan."""

    plan_id: str
    title: str
    caps: tuple[CapView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CostsPage:
    """Everything on the page of costs."""

    total: Cost
    today: Cost
    days: tuple[Cost, ...]
    """Each day of the period, the oldest first, including days without cost."""
    lines: Mapping[Dimension, tuple[CostLine, ...]]
    """The most expensive first."""
    caps: tuple[PlanCaps, ...]


async def costs_page(
    at: Session, caller: Caller, *, project_id: str | None = None, days: int = 30
) -> CostsPage:
    """Return the page of costs."""

    def load(tx: Tx) -> CostsPage:
        where = seen_where(tx, caller, project_id)
        names = _days(tx.now(), days)
        # Whole days: the first one begins at midnight by UTC.
        since = tx.now().replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days - 1)
        runs = costed_runs(tx, where, since)
        by_day = grouped(runs, Dimension.DAY)
        each = tuple(cost_of(day, by_day.get(day, [])) for day in names)
        open_plans = [one for one in PlanState if one not in ENDED_PLAN]
        plans = tx.find(
            Plan, status=open_plans, made_for=None, order_by=("-created_at", "-id"), limit=50, **where
        )
        return CostsPage(
            total=cost_of("", runs),
            today=each[-1],
            days=each,
            lines={by: _lines(runs, by, names) for by in DIMENSIONS},
            caps=tuple(
                PlanCaps(plan_id=one.id, title=one.title, caps=found)
                for one in plans
                if (found := cap_views(tx, one))
            ),
        )

    return await at.home.store.read(load)


def _days(now: datetime, count: int) -> tuple[str, ...]:
    last: date = now.date()
    return tuple((last - timedelta(days=back)).isoformat() for back in reversed(range(count)))


def _lines(runs: Sequence[CostedRun], by: Dimension, days: Sequence[str]) -> tuple[CostLine, ...]:
    found = []
    for name, mine in grouped(runs, by).items():
        series = dict.fromkeys(days, 0)
        for one in mine:
            # A clock that was set back: the day may be one that is still to come.
            if (day := one.names[Dimension.DAY]) in series:
                series[day] += one.cost_micros or 0
        found.append(CostLine(cost=cost_of(name, mine), series=tuple(series.values())))
    return tuple(sorted(found, key=lambda one: (-one.cost.cost_micros, one.cost.name)))
