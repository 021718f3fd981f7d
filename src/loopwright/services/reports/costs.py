"""The cost of agents in the last days, grouped by a property of their runs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from loopwright.core.policy.price_table import AS_OF as PRICES_AS_OF
from loopwright.core.rows.model import AGENT_ROLES, Plan, Project, Run
from loopwright.core.values.access import Caller
from loopwright.ports import Tx
from loopwright.services.homes.session import Session
from loopwright.services.remote.seen import seen_where

__all__ = ["PRICES_AS_OF", "Cost", "CostedRun", "Dimension", "cost_of", "costed_runs", "costs", "grouped"]


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
    """One run of an agent, with the project that it worked for."""

    run: Run
    project: str
    began_at: datetime

    def name(self, by: Dimension) -> str:
        """Return the name of the group."""
        if by is Dimension.DAY:
            return self.began_at.date().isoformat()
        if by is Dimension.PROJECT:
            return self.project
        if by is Dimension.ROLE:
            return self.run.role.value
        return (self.run.agent if by is Dimension.AGENT else self.run.model) or ""


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
    plans = {one.id: one for one in tx.find(Plan, **where) if one.updated_at >= since}
    names = {one.id: one.name for one in tx.find(Project)}
    return [
        CostedRun(run=run, project=names.get(plans[run.plan_id].project_id, ""), began_at=run.started_at)
        for run in (tx.find(Run, plan_id=list(plans), role=AGENT_ROLES) if plans else ())
        if run.started_at is not None and run.started_at >= since
    ]


def grouped(runs: Iterable[CostedRun], by: Dimension) -> dict[str, list[CostedRun]]:
    """Return runs by what they have in common."""
    found: dict[str, list[CostedRun]] = {}
    for one in runs:
        found.setdefault(one.name(by), []).append(one)
    return found


def cost_of(name: str, runs: Sequence[CostedRun]) -> Cost:
    """Return the total cost of some runs."""
    rows = [one.run for one in runs]
    return Cost(
        name=name,
        runs=len(rows),
        cost_micros=sum(one.cost_micros or 0 for one in rows),
        unknown_costs=sum(one.cost_micros is None for one in rows),
        estimated_costs=sum(one.cost_estimated for one in rows),
        seconds=sum(
            (one.ended_at - one.started_at).total_seconds() for one in rows if one.ended_at and one.started_at
        ),
    )
