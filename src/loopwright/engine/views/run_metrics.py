"""What each run took, and what a loop's plans took together: the same rows as in `metrics`, cut in other ways."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from loopwright.core.rows.model import AGENT_ROLES, Attempt, Plan, Role, Run, Task, Usage
from loopwright.core.values.failures import Failure
from loopwright.core.values.states import PlanState, RunState
from loopwright.engine.views.metrics import Figures, PlanFigures, together
from loopwright.ports import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopFigures:
    """What all plans of a loop took that were looked at."""

    loop_id: str
    loop: str
    plans: int
    verified: int
    started_at: datetime | None
    ended_at: datetime | None
    """Of the newest plan; None while it goes on."""
    wall_seconds: float
    """Of those plans that have ended, waits included; not what lies between them."""
    figures: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """What one process took: an agent's, or a gate's."""

    run_id: str
    plan_id: str
    loop_id: str
    task: str
    """Its key; empty for what concerns the whole plan."""
    attempt: int | None
    role: Role
    agent: str | None
    model: str | None
    state: RunState
    failure: Failure | None
    started_at: datetime
    ended_at: datetime | None
    wall_seconds: float | None
    """None while it goes on."""
    cost_micros: int | None
    """None is unknown, or a gate, which costs nothing."""
    cost_estimated: bool
    usage: Usage | None


def loop_figures(plans: Sequence[PlanFigures]) -> list[LoopFigures]:
    """Return what each loop took, given its plans from the newest on."""
    mine: dict[str, list[PlanFigures]] = {}
    for plan in plans:
        mine.setdefault(plan.loop_id, []).append(plan)
    return [
        LoopFigures(
            loop_id=loop_id,
            loop=found[0].loop,
            plans=len(found),
            verified=sum(one.status is PlanState.VERIFIED for one in found),
            started_at=min((one.started_at for one in found if one.started_at), default=None),
            ended_at=found[0].ended_at,
            wall_seconds=sum(one.wall_seconds or 0.0 for one in found),
            figures=together(found),
        )
        for loop_id, found in mine.items()
    ]


def run_figures(tx: Tx, plan: Plan) -> list[RunFigures]:
    """Return what each run of a plan took that has begun, in the order in which they began."""
    keys = {one.id: one.key for one in tx.find(Task, plan_id=plan.id)}
    numbers = {one.id: one.n for one in tx.find(Attempt, plan_id=plan.id)}
    begun = [
        (one.started_at, one)
        for one in tx.find(Run, plan_id=plan.id, order_by=("created_at",))
        if one.started_at is not None
    ]
    return [
        RunFigures(
            run_id=run.id,
            plan_id=plan.id,
            loop_id=plan.loop_id,
            task=keys.get(run.task_id or "", ""),
            attempt=numbers.get(run.attempt_id or ""),
            role=run.role,
            agent=run.agent,
            model=run.model,
            state=run.state,
            failure=run.failure,
            started_at=started,
            ended_at=run.ended_at,
            wall_seconds=(run.ended_at - started).total_seconds() if run.ended_at else None,
            cost_micros=run.cost_micros if run.role in AGENT_ROLES else None,
            cost_estimated=run.cost_estimated,
            usage=run.usage,
        )
        for started, run in sorted(begun, key=lambda pair: (pair[0], pair[1].id))
    ]
