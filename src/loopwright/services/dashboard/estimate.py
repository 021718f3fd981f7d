"""The probable time and cost of a draft, from earlier tasks of its project."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from loopwright.core.policy.graph import critical_path
from loopwright.core.rows.model import AGENT_ROLES, Plan, Run, Task
from loopwright.core.values.states import TaskState
from loopwright.ports import Tx

_PLANS: Final = 20
"""How many earlier plans of the project count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The time and cost of one finished task."""

    seconds: float
    cost_micros: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The probable time and cost of a plan."""

    tasks: int
    slots: int
    """How many agents work at once."""
    known: int
    """How many finished tasks this is based on; without any, time and cost are unknown."""
    seconds: float | None
    cost_micros: int | None


def estimate(tx: Tx, plan: Plan) -> Estimate:
    """Return the probable time and cost of a plan."""
    tasks = tx.find(Task, plan_id=plan.id, order_by=("position",))
    needs = {one.id: one.depends_on for one in tasks}
    return expected(needs, _taken(tx, plan), max(1, plan.policy.parallel))


def expected(needs: Mapping[str, Sequence[str]], taken: Sequence[Taken], slots: int) -> Estimate:
    """Return the estimate if each task takes as much as most tasks took.

    The longest chain of dependencies, or the number of slots if it is small, decides the duration of the
    plan.
    """
    costs = [one.cost_micros for one in taken if one.cost_micros is not None]
    at_once = min(slots, max(1, len(needs)))
    steps = max(len(critical_path(needs)), -(-len(needs) // at_once))
    return Estimate(
        tasks=len(needs),
        slots=at_once,
        known=len(taken),
        seconds=median(one.seconds for one in taken) * steps if taken else None,
        cost_micros=round(median(costs) * len(needs)) if costs else None,
    )


def _taken(tx: Tx, plan: Plan) -> tuple[Taken, ...]:
    plans = tx.find(Plan, project_id=plan.project_id, made_for=None, order_by=("-created_at",), limit=_PLANS)
    earlier = [one.id for one in plans if one.id != plan.id]
    if not earlier:
        return ()
    done = {one.id for one in tx.find(Task, plan_id=earlier, status=TaskState.COMPLETE)}
    runs: dict[str, list[Run]] = {}
    for run in tx.find(Run, plan_id=earlier):
        if run.task_id in done and run.started_at is not None and run.ended_at is not None:
            runs.setdefault(run.task_id, []).append(run)
    return tuple(map(_took, runs.values()))


def _took(runs: Sequence[Run]) -> Taken:
    began = [one.started_at for one in runs if one.started_at is not None]
    ended = [one.ended_at for one in runs if one.ended_at is not None]
    costs = [one.cost_micros for one in runs if one.role in AGENT_ROLES]
    known = [one for one in costs if one is not None]
    return Taken(
        seconds=sum((end - begin).total_seconds() for begin, end in zip(began, ended, strict=True)),
        cost_micros=sum(known) if len(known) == len(costs) else None,
    )
