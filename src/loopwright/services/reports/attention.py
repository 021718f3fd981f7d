"""Progress of loops: reports, budgets and workers."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from loopwright.core.policy.budget import CAPS, spent_today
from loopwright.core.rows.model import Plan, Worker
from loopwright.core.values.access import Caller, Scope
from loopwright.core.values.errors import NotAllowed, NotFound
from loopwright.core.values.states import ENDED_PLAN, PlanState
from loopwright.engine.rows.world import HomePaths
from loopwright.engine.views.limit_views import CapView, cap_views
from loopwright.engine.views.loop_views import plan_of, stage_plans
from loopwright.engine.views.metrics import Figures, loop_figures, plan_figures
from loopwright.engine.views.views import PlanView, plan_view
from loopwright.engine.views.worker_views import live_workers
from loopwright.ports import Tx
from loopwright.services.control import decisions
from loopwright.services.control.decisions import Decision
from loopwright.services.homes.session import Session
from loopwright.services.remote.loops import LoopView, loop_view
from loopwright.services.remote.seen import (
    acting,
    plan_and_project,
    seen_loop,
    seen_project,
)
from loopwright.services.reports.alerts import Alert, alerts

_MOST: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopReport:
    """The progress of a loop."""

    loop: LoopView
    plan: PlanView | None
    """The plan that it drives, with its tasks; None before the first."""
    plans: int
    verified: int
    figures: Figures | None
    """The totals of all its plans."""
    alerts: tuple[Alert, ...]
    generated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectBudget:
    """What a project has spent, and the limits of its running plans."""

    project_id: str
    day: str
    spent_micros: int
    unknown_costs: int
    """Runs of today whose cost is unknown."""
    plans: Mapping[str, tuple[CapView, ...]]


async def loop_report(at: Session, caller: Caller, loop_id: str) -> LoopReport:
    """Return the progress of a loop."""
    paths = HomePaths(root=at.home.root)

    def load(tx: Tx) -> tuple[LoopView, PlanView | None, Figures | None, int, int, datetime, str]:
        loop = seen_loop(tx, caller, loop_id)
        rows = stage_plans(tx, loop, _MOST) or tx.find(
            Plan, loop_id=loop.id, order_by=("-created_at",), limit=_MOST
        )
        driven = plan_of(tx, loop)
        plan = plan_view(tx, driven, paths) if driven else None
        took = loop_figures([plan_figures(tx, one) for one in rows])
        verified = sum(one.status is PlanState.VERIFIED for one in rows)
        figures = took[0].figures if took else None
        return loop_view(tx, at, loop), plan, figures, len(rows), verified, tx.now(), loop.project_id

    loop, plan, figures, count, verified, now, project_id = await at.home.store.read(load)
    mine = tuple(one for one in await alerts(at, caller, project_id) if one.loop_id == loop.id)
    return LoopReport(
        loop=loop, plan=plan, plans=count, verified=verified, figures=figures, alerts=mine, generated_at=now
    )


async def budget(at: Session, caller: Caller, project_id: str) -> ProjectBudget:
    """Return what a project has spent today, and the limits of its running plans."""

    def load(tx: Tx) -> ProjectBudget:
        project = seen_project(tx, caller, project_id)
        spent, unknown = spent_today(project, tx.now())
        open_plans = [one for one in PlanState if one not in ENDED_PLAN]
        return ProjectBudget(
            project_id=project.id,
            day=tx.now().date().isoformat(),
            spent_micros=spent,
            unknown_costs=unknown,
            plans={
                plan.id: cap_views(tx, plan)
                for plan in tx.find(Plan, project_id=project.id, status=open_plans, made_for=None)
            },
        )

    return await at.home.store.read(load)


async def set_limits(at: Session, caller: Caller, plan_id: str, limits: Mapping[str, int | None]) -> Decision:
    """Change cost limits of a plan, in millionths of a dollar; None removes one."""
    plan, project = await at.home.store.read(lambda tx: plan_and_project(tx, caller, plan_id))
    wider = [name for name, now in limits.items() if _is_wider(getattr(plan.policy, name), now)]
    if wider and not caller.may(Scope.ADMIN):
        raise NotAllowed(
            f"a token with the scope `admin` is needed to raise {', '.join(wider)}", code="budget_needs_admin"
        )
    with acting(at, caller, project):
        return await decisions.set_limits(
            at, plan.id, {name: limits[name] for name in CAPS if name in limits}
        )


def _is_wider(before: int | None, now: int | None) -> bool:
    return before is not None and (now is None or now > before)


async def workers(at: Session, caller: Caller) -> tuple[Worker, ...]:
    """Return the workers of the home; they do not exist for a caller that sees some projects only."""
    if not caller.sees(None):
        raise NotFound("this token sees no workers", code="worker_unknown_here")
    return tuple(await at.home.store.read(lambda tx: live_workers(tx, at.home.membership)))
