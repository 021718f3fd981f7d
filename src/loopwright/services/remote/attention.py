"""What needs a person, and how things are going: alerts, reports, budgets and workers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from loopwright.core.policy.budget import CAPS, spent_today
from loopwright.core.rows.model import Loop, Plan, Task, Worker
from loopwright.core.rows.monitor_rows import Trouble
from loopwright.core.rows.source_rows import SourceDebt
from loopwright.core.rows.waiting_rows import Envelope, Question
from loopwright.core.rows.webhook_rows import DeadLetter, Webhook
from loopwright.core.values.access import Caller, Scope
from loopwright.core.values.alerts import Severity
from loopwright.core.values.errors import NotAllowed, NotFound
from loopwright.core.values.ids import short_id
from loopwright.core.values.round_states import FOLDER_KIND
from loopwright.core.values.states import (
    ENDED_PLAN,
    EnvelopeState,
    LoopState,
    PlanState,
    QuestionState,
    TaskState,
)
from loopwright.engine.rows.world import HomePaths
from loopwright.engine.views.limit_views import CapView, cap_views
from loopwright.engine.views.loop_views import plan_of, stage_plans
from loopwright.engine.views.metrics import Figures, loop_figures, plan_figures
from loopwright.engine.views.views import PlanView, live_workers, plan_view
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
    seen_where,
)

_RECENT: Final = timedelta(days=7)
"""How long a plan that failed is an alert."""
_MOST: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """Something that a person should know. It goes away when its cause does."""

    id: str
    """The same as long as its cause is the same."""
    severity: Severity
    kind: str
    message: str
    hint: str
    project_id: str | None = None
    loop_id: str | None = None
    plan_id: str | None = None
    task_id: str | None = None
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopReport:
    """How a loop is going."""

    loop: LoopView
    plan: PlanView | None
    """The plan that it drives, with its tasks; None before the first."""
    plans: int
    verified: int
    figures: Figures | None
    """What all its plans took together."""
    alerts: tuple[Alert, ...]
    generated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectBudget:
    """What a project has spent, and the limits of its plans that are under way."""

    project_id: str
    day: str
    spent_micros: int
    unknown_costs: int
    """Runs of today whose cost is unknown."""
    plans: Mapping[str, tuple[CapView, ...]]


async def alerts(at: Session, caller: Caller, project_id: str | None = None) -> tuple[Alert, ...]:
    """Return what needs a person, the most urgent first."""

    def load(tx: Tx) -> tuple[Alert, ...]:
        where = seen_where(tx, caller, project_id)
        found = [
            *_of_loops(tx, where),
            *_of_plans(tx, where),
            *_of_questions(tx, where),
            *_of_sources(tx, where),
            *_of_the_monitor(tx, where),
        ]
        if project_id is None and caller.sees(None):
            found += [*_of_accounts(tx), *_of_workers(tx), *_of_webhooks(tx)]
        ranks = list(Severity)
        found.sort(key=lambda one: (-ranks.index(one.severity), one.since))
        return tuple(found[:_MOST])

    return await at.home.store.read(load)


def _of_loops(tx: Tx, where: Mapping[str, Any]) -> Iterator[Alert]:
    for loop in tx.find(Loop, state=(LoopState.FAILED, LoopState.PAUSED), **where):
        plan = tx.get(Plan, loop.plan_id) if loop.plan_id else None
        is_failed = loop.state is LoopState.FAILED
        rounds = plan is None and loop.source_kind == FOLDER_KIND and bool(loop.reason)
        if not rounds and (plan is None or plan.status in ENDED_PLAN):
            continue
        hint = "look at its failed tasks: retry or skip them" if is_failed else "resume it when you like"
        if rounds and is_failed:
            hint = "fix that, then start the loop again"
        yield Alert(
            id=f"loop:{loop.id}:{loop.state.value.lower()}",
            severity=Severity.ERROR if is_failed else Severity.INFO,
            kind="loop_needs_you" if is_failed else "loop_paused",
            message=f"{loop.name}: {loop.reason or loop.state.value.lower()}",
            hint=hint,
            project_id=loop.project_id,
            loop_id=loop.id,
            plan_id=plan.id if plan else None,
            since=loop.updated_at,
        )


def _of_plans(tx: Tx, where: Mapping[str, Any]) -> Iterator[Alert]:
    since = tx.now() - _RECENT
    failed = tx.find(
        Plan, status=PlanState.FAILED, made_for=None, order_by=("-created_at",), limit=_MOST, **where
    )
    for plan in failed:
        loop = tx.get(Loop, plan.loop_id)
        if plan.updated_at < since or loop is None or loop.plan_id != plan.id:
            continue
        yield Alert(
            id=f"plan:{plan.id}:failed",
            severity=Severity.ERROR,
            kind="plan_failed",
            message=f"{plan.title}: {plan.reason or 'its verification failed'}",
            hint="verify it again, retry a task, or plan again",
            project_id=plan.project_id,
            loop_id=plan.loop_id,
            plan_id=plan.id,
            since=plan.verified_at or plan.updated_at,
        )
    for plan in tx.find(Plan, status=PlanState.RUNNING, **where):
        for cap in cap_views(tx, plan):
            if cap.warning:
                yield Alert(
                    id=f"plan:{plan.id}:{cap.setting}",
                    severity=Severity.WARNING,
                    kind="budget_nearly_used_up",
                    message=f"{plan.title}: {cap.warning}",
                    hint="raise the limit, or let it stop there",
                    project_id=plan.project_id,
                    loop_id=plan.loop_id,
                    plan_id=plan.id,
                    since=plan.updated_at,
                )
        for task in tx.find(Task, plan_id=plan.id, status=TaskState.ERROR):
            yield Alert(
                id=f"task:{task.id}:failed",
                severity=Severity.ERROR,
                kind="task_failed",
                message=f"{task.key}: {task.reason or 'it failed'}",
                hint="retry it, skip it, or take it over",
                project_id=plan.project_id,
                loop_id=plan.loop_id,
                plan_id=plan.id,
                task_id=task.id,
                since=task.updated_at,
            )


def _of_questions(tx: Tx, where: Mapping[str, Any]) -> Iterator[Alert]:
    for one in tx.find(Question, state=QuestionState.OPEN, order_by=("created_at",), limit=_MOST, **where):
        yield Alert(
            id=f"question:{one.id}",
            severity=Severity.WARNING,
            kind="needs_response",
            message=one.text[:500],
            hint=f"answer it: POST /api/questions/{one.id}/answer",
            project_id=one.project_id,
            loop_id=one.loop_id,
            plan_id=one.plan_id,
            task_id=one.task_id or None,
            since=one.created_at,
        )


def _of_sources(tx: Tx, where: Mapping[str, Any]) -> Iterator[Alert]:
    for debt in tx.find(SourceDebt):
        plan = tx.get(Plan, debt.id)
        if plan is None or ("project_id" in where and plan.project_id not in _named(where)):
            continue
        yield Alert(
            id=f"source:{plan.id}",
            severity=Severity.WARNING,
            kind="source_not_told",
            message=f"status could not be written back: {debt.reason}",
            hint="fix the source; Loopwright tries again",
            project_id=plan.project_id,
            loop_id=plan.loop_id,
            plan_id=plan.id,
            since=debt.created_at,
        )


def _of_the_monitor(tx: Tx, where: Mapping[str, Any]) -> Iterator[Alert]:
    for one in tx.find(Trouble, order_by=("since",), limit=_MOST, **where):
        yield Alert(
            id=one.id,
            severity=one.severity,
            kind=one.kind,
            message=one.message,
            hint=one.hint,
            project_id=one.project_id,
            loop_id=one.loop_id,
            plan_id=one.plan_id,
            task_id=one.task_id,
            since=one.since,
        )


def _named(where: Mapping[str, Any]) -> tuple[str, ...]:
    wanted = where["project_id"]
    return (wanted,) if isinstance(wanted, str) else tuple(wanted)


def _of_accounts(tx: Tx) -> Iterator[Alert]:
    for one in tx.find(Envelope, state=EnvelopeState.CLOSED):
        until = f" until {one.until.isoformat()}" if one.until else ""
        yield Alert(
            id=f"account:{one.id}",
            severity=Severity.WARNING,
            kind="account_closed",
            message=f"{one.id} is closed{until}: {one.reason}",
            hint="wait, or open it again",
            since=one.closed_at or one.updated_at,
        )


def _of_workers(tx: Tx) -> Iterator[Alert]:
    waits = tx.count(Loop, state=LoopState.RUNNING)
    known = tx.find(Worker)
    if waits and known and not live_workers(tx):
        yield Alert(
            id="workers:none",
            severity=Severity.CRITICAL,
            kind="no_worker",
            message=f"{waits} loops should run, and no worker does",
            hint="`loopwright up` starts one",
            since=max(one.lease_until for one in known),
        )


def _of_webhooks(tx: Tx) -> Iterator[Alert]:
    dead = tx.tally(DeadLetter, "webhook_id")
    for one in tx.find(Webhook):
        # Its path may hold a password of the receiver, so only the host is named.
        host = urlsplit(one.url).hostname
        if one.off_at is not None:
            said, since = f"sends nothing to {host} any more: {one.error}", one.off_at
        elif letters := dead.get(one.id, 0):
            said, since = f"has {letters} events that {host} refused: {one.error}", one.created_at
        else:
            continue
        yield Alert(
            id=f"webhook:{one.id}:{'off' if one.off_at else 'dead'}",
            severity=Severity.WARNING,
            kind="webhook_stuck",
            message=f"the webhook {short_id(one.id)} {said}",
            hint=f"fix the receiver, then `loopwright webhooks replay {one.id}`",
            since=since,
        )


async def loop_report(at: Session, caller: Caller, loop_id: str) -> LoopReport:
    """Return how a loop is going."""
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
    """Return what a project has spent today, and the limits of its plans that are under way."""

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
    return tuple(await at.home.store.read(live_workers))
