"""The cost of agents in the last days, grouped by a property of their runs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from loopwright.core.policy.price_table import AS_OF as PRICES_AS_OF
from loopwright.core.rows.model import AGENT_ROLES, Plan, Project, Run
from loopwright.core.values.access import Caller
from loopwright.ports import Tx
from loopwright.services.homes.session import Session
from loopwright.services.remote.seen import seen_where

__all__ = ["PRICES_AS_OF", "Cost", "CostedRun", "Dimension", "cost_of", "costed_runs", "costs", "grouped"]
_COLUMNS: Final = (
    "plan_id",
    "agent",
    "model",
    "role",
    "cost_micros",
    "cost_estimated",
    "started_at",
    "ended_at",
)


class Dimension(StrEnum):
    """The property to group by."""

    DAY = "day"
    PROJECT = "project"
    AGENT = "agent"
    MODEL = "model"
    ROLE = "role"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of one group of runs."""

    name: str
    runs: int
    cost_micros: int
    unknown_costs: int
    estimated_costs: int
    """How many runs reported only tokens, whose cost comes from the table of prices."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CostedRun:
    """What one run of an agent cost, and what it can be grouped by."""

    names: Mapping[Dimension, str]
    cost_micros: int | None
    cost_estimated: bool
    seconds: float


async def costs(
    at: Session, caller: Caller, *, by: Dimension, project_id: str | None = None, days: int = 30
) -> tuple[Cost, ...]:
    """Return what agents cost in the last days, by day, project, agent, model or role."""

    def load(tx: Tx) -> tuple[Cost, ...]:
        where = seen_where(tx, caller, project_id)
        found = grouped(costed_runs(tx, where, tx.now() - timedelta(days=days)), by)
        return tuple(cost_of(name, runs) for name, runs in sorted(found.items()))

    return await at.home.store.read(load)


def costed_runs(tx: Tx, where: Mapping[str, Any], since: datetime) -> list[CostedRun]:
    """Return the runs of agents that began since a moment."""
    projects = dict(tx.columns(Project, ("id", "name")))
    plans = {
        plan_id: projects.get(project_id, "")
        for plan_id, project_id, updated_at in tx.columns(Plan, ("id", "project_id", "updated_at"), **where)
        if updated_at >= since
    }
    if not plans:
        return []
    return [
        CostedRun(
            names={
                Dimension.DAY: began.date().isoformat(),
                Dimension.PROJECT: plans[plan_id],
                Dimension.AGENT: agent or "",
                Dimension.MODEL: model or "",
                Dimension.ROLE: role.value,
            },
            cost_micros=cost,
            cost_estimated=is_estimated,
            seconds=(ended - began).total_seconds() if ended else 0.0,
        )
        for plan_id, agent, model, role, cost, is_estimated, began, ended in tx.columns(
            Run, _COLUMNS, plan_id=list(plans), role=AGENT_ROLES
        )
        if began is not None and began >= since
    ]


def grouped(runs: Iterable[CostedRun], by: Dimension) -> dict[str, list[CostedRun]]:
    """Return runs by what they have in common."""
    found: dict[str, list[CostedRun]] = {}
    for one in runs:
        found.setdefault(one.names[by], []).append(one)
    return found


def cost_of(name: str, runs: Sequence[CostedRun]) -> Cost:
    """Return the total cost of some runs."""
    return Cost(
        name=name,
        runs=len(runs),
        cost_micros=sum(one.cost_micros or 0 for one in runs),
        unknown_costs=sum(one.cost_micros is None for one in runs),
        estimated_costs=sum(one.cost_estimated for one in runs),
        seconds=sum(one.seconds for one in runs),
    )
