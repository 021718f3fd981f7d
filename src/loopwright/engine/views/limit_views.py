"""The use of an account: its runs, and their total cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from loopwright.core.policy.quotas import concerns
from loopwright.core.rows.model import AGENT_ROLES, Plan, Role, Run, Task
from loopwright.core.rows.waiting_rows import Envelope
from loopwright.core.values.failures import Failure
from loopwright.core.values.states import ENDED_PLAN, PROCESS_OVER, RunState
from loopwright.engine.money import spending
from loopwright.engine.money.spending import in_force
from loopwright.ports import Tx

LISTED: Final = 20
"""The most runs that are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drew:
    """One run that used an account."""

    id: str
    plan_id: str
    task: str
    """Its key; empty for the whole plan."""
    role: Role
    model: str | None
    state: RunState
    failure: Failure | None
    started_at: datetime | None
    cost_micros: int | None
    cost_estimated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """An account, and the runs that used it."""

    envelope: Envelope
    cost_micros: int | None
    """The total of all known costs; None if no cost is known."""
    cost_estimated: bool
    cost_complete: bool
    """Whether the cost of each run that has ended is known."""
    today_micros: int | None
    """The cost of runs that began on this day, in UTC."""
    runs: tuple[Drew, ...]
    """The last runs, the newest first."""


def drawn_from(tx: Tx, envelope: Envelope, *, most: int = LISTED) -> Drawn:
    """Return the use of an account."""
    found = tx.find(
        Run,
        agent=envelope.agent,
        account=envelope.account,
        role=AGENT_ROLES,
        order_by=("-started_at", "-created_at"),
    )
    found = [one for one in found if concerns(envelope, one.model)]
    today = [one for one in found if one.started_at and one.started_at.date() == tx.now().date()]
    last = found[:most]
    keys = {one.id: one.key for one in tx.find(Task, id={run.task_id for run in last if run.task_id})}
    return Drawn(
        envelope=envelope,
        cost_micros=_cost(found),
        cost_estimated=any(one.cost_estimated for one in found),
        cost_complete=all(one.cost_micros is not None for one in found if one.state in PROCESS_OVER),
        today_micros=_cost(today),
        runs=tuple(_drew(one, keys) for one in last),
    )


def _cost(runs: Sequence[Run]) -> int | None:
    known = [one.cost_micros for one in runs if one.cost_micros is not None]
    return sum(known) if known or not runs else None


def _drew(run: Run, keys: dict[str, str]) -> Drew:
    return Drew(
        id=run.id,
        plan_id=run.plan_id,
        task=keys.get(run.task_id or "", ""),
        role=run.role,
        model=run.model,
        state=run.state,
        failure=run.failure,
        started_at=run.started_at,
        cost_micros=run.cost_micros,
        cost_estimated=run.cost_estimated,
    )


# Caps for people: the limit of each, and what was spent.

_EACH = frozenset({"max_cost_per_run", "max_cost_per_task"})
"""Caps that apply to each run or task separately."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapView:
    """One limit of a plan."""

    setting: str
    limit_micros: int
    spent_micros: int | None
    """The cost of ended runs; None if the limit applies to each run or task separately."""
    warning: str = ""
    """The warning that it is nearly used up; empty if it is not, and if it is used up."""


def cap_views(tx: Tx, plan: Plan) -> tuple[CapView, ...]:
    """Return the limits of a plan."""
    found = spending.ended_caps(tx, plan)
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
