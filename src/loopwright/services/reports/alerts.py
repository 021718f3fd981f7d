"""Alerts: what needs the user, and the user's acknowledgements."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from loopwright.adapters.traces import otlp
from loopwright.core.policy.escalations import is_given_up
from loopwright.core.rows.alert_rows import Acknowledgement
from loopwright.core.rows.events import Event
from loopwright.core.rows.model import Attempt, Loop, Plan, Task, Worker
from loopwright.core.rows.monitor_rows import Trouble
from loopwright.core.rows.source_rows import SourceDebt
from loopwright.core.rows.waiting_rows import Envelope, Question
from loopwright.core.rows.webhook_rows import DeadLetter, Webhook
from loopwright.core.values.access import Caller
from loopwright.core.values.alerts import Severity
from loopwright.core.values.errors import NotFound
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
from loopwright.engine.rows.escalations import open_ones
from loopwright.engine.views.limit_views import cap_views
from loopwright.engine.views.worker_views import live_workers
from loopwright.ports import NOT_NULL, Tx
from loopwright.services.homes.session import Session
from loopwright.services.notifications.targets import name_of
from loopwright.services.remote.seen import seen_where

_RECENT: Final = timedelta(days=7)
"""How long a plan that failed is an alert."""
_REMEMBERED: Final = timedelta(days=90)
"""The longest time that an acknowledgement holds: an alert that still exists is then shown again."""
_MOST: Final = 200
_FAILED: Final = 3
"""How often in a row a target of `notify` or `otlp_endpoint` fails until that is an alert."""
OF_LOOPS: Final = frozenset({"loop_needs_you", "loop_not_started", "loop_paused"})
"""The kinds of alerts that give the reason of a loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """Something that the user should know. It disappears when its cause ends."""

    id: str
    """Stays the same as long as its cause is the same."""
    severity: Severity
    kind: str
    message: str
    hint: str
    project_id: str | None = None
    loop_id: str | None = None
    plan_id: str | None = None
    task_id: str | None = None
    since: datetime
    acknowledged_by: str = ""
    """The actor that acknowledged it; empty while it is open."""
    acknowledged_at: datetime | None = None


async def alerts(at: Session, caller: Caller, project_id: str | None = None) -> tuple[Alert, ...]:
    """Return what needs the user: open alerts first, by urgency."""
    return await at.home.store.read(lambda tx: tuple(_alerts(tx, at, caller, project_id)[:_MOST]))


async def acknowledge(at: Session, caller: Caller, alert_id: str) -> Alert:
    """Record that the caller has seen an alert; a second call changes nothing."""

    def note(tx: Tx) -> Alert:
        alert = next((one for one in _alerts(tx, at, caller, None) if one.id == alert_id), None)
        if alert is None:
            raise NotFound(f"there is no alert {alert_id}", code="alert_not_found")
        if alert.acknowledged_at is not None:
            return alert
        for old in tx.find(Acknowledgement):
            if old.id == alert.id or old.created_at < tx.now() - _REMEMBERED:
                tx.delete(Acknowledgement, old.id)
        tx.insert(Acknowledgement(id=alert.id, actor=caller.actor, created_at=tx.now()))
        tx.append(
            Event(
                type="alert_acknowledged",
                actor=caller.actor,
                project=alert.project_id,
                payload={"alert": alert.id},
            )
        )
        return replace(alert, acknowledged_by=caller.actor, acknowledged_at=tx.now())

    return await at.home.store.transact("alert.acknowledge", note)


def _alerts(tx: Tx, at: Session, caller: Caller, project_id: str | None) -> list[Alert]:
    where = seen_where(tx, caller, project_id)
    found = [
        *_of_loops(tx, where),
        *_of_plans(tx, where),
        *_of_questions(tx, where),
        *_of_attempts(tx, where),
        *_of_sources(tx, where),
        *_of_the_monitor(tx, where),
    ]
    if project_id is None and caller.sees(None):
        found += [*_of_accounts(tx), *_of_workers(tx, at), *_of_webhooks(tx), *_of_targets(tx, at)]
    known = {one.id: one for one in tx.find(Acknowledgement)}
    ranks = list(Severity)
    return sorted(
        (_with_acknowledgement(one, known.get(one.id), tx.now()) for one in found),
        key=lambda one: (one.acknowledged_at is not None, -ranks.index(one.severity), one.since),
    )


def _with_acknowledgement(alert: Alert, known: Acknowledgement | None, now: datetime) -> Alert:
    """Return an alert with its acknowledgement, unless its cause happened again since."""
    if known is None or known.created_at < max(alert.since, now - _REMEMBERED):
        return alert
    return replace(alert, acknowledged_by=known.actor, acknowledged_at=known.created_at)


def _of_loops(tx: Tx, where: Mapping[str, Any]) -> Iterator[Alert]:
    rest = tx.find(Loop, state=(LoopState.FAILED, LoopState.PAUSED), **where)
    plans = {one.id: one for one in tx.find(Plan, id=[one.plan_id for one in rest if one.plan_id])}
    failed = tx.tally(Task, "plan_id", plan_id=list(plans), status=TaskState.ERROR) if plans else {}
    for loop in rest:
        plan = plans.get(loop.plan_id or "")
        is_failed = loop.state is LoopState.FAILED
        if is_failed and plan is not None and plan.status is PlanState.RUNNING and failed.get(plan.id):
            # Each failed task is an alert, and what you decide about them continues the loop.
            continue
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
    for loop in tx.find(Loop, state=LoopState.IDLE, deleted_at=None, **where):
        if loop.reason and loop.start is None:
            yield Alert(
                id=f"loop:{loop.id}:not_started",
                severity=Severity.ERROR,
                kind="loop_not_started",
                message=f"{loop.name} could not start: {loop.reason}",
                hint="fix that, then start the loop again",
                project_id=loop.project_id,
                loop_id=loop.id,
                since=loop.updated_at,
            )


def _of_plans(tx: Tx, where: Mapping[str, Any]) -> Iterator[Alert]:
    since = tx.now() - _RECENT
    failed = tx.find(
        Plan, status=PlanState.FAILED, made_for=None, order_by=("-created_at", "-id"), limit=_MOST, **where
    )
    loops = {one.id: one for one in tx.find(Loop, id=[one.loop_id for one in failed])}
    for plan in failed:
        loop = loops.get(plan.loop_id)
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
                    # The time of its warning is unknown.
                    since=plan.executed_at or plan.created_at,
                )
        asked = {one.task_id for one in open_ones(tx, plan_id=plan.id)}
        for task in tx.find(Task, plan_id=plan.id, status=TaskState.ERROR):
            if task.id in asked:
                # The answer to the question decides about the task: it is one alert.
                continue
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
            severity=Severity.ERROR if is_given_up(one.kind, one.key) else Severity.WARNING,
            kind="needs_response",
            message=one.text[:500],
            hint=f"answer it: POST /api/questions/{one.id}/answer",
            project_id=one.project_id,
            loop_id=one.loop_id,
            plan_id=one.plan_id,
            task_id=one.task_id or None,
            since=one.created_at,
        )


def _of_attempts(tx: Tx, where: Mapping[str, Any]) -> Iterator[Alert]:
    for one in tx.find(Attempt, quarantined=NOT_NULL, order_by=("-updated_at",), limit=_MOST):
        plan, task = tx.get(Plan, one.plan_id), tx.get(Task, one.task_id)
        if plan is None or task is None or not _is_of(plan, where):
            continue
        if not Path(one.workspace or "").is_dir():
            # It was handled, or is on another machine.
            continue
        yield Alert(
            id=f"attempt:{one.id}:quarantined",
            severity=Severity.WARNING,
            kind="work_quarantined",
            message=f"{task.key}: the work of attempt {one.n} could not be saved: {one.quarantined}",
            hint=f"take what you need from {one.workspace}, then delete that folder",
            project_id=plan.project_id,
            loop_id=plan.loop_id,
            plan_id=plan.id,
            task_id=task.id,
            since=one.cleaned_at or one.updated_at,
        )


def _of_sources(tx: Tx, where: Mapping[str, Any]) -> Iterator[Alert]:
    for debt in tx.find(SourceDebt):
        plan = tx.get(Plan, debt.id)
        if plan is None or not _is_of(plan, where):
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


def _is_of(plan: Plan, where: Mapping[str, Any]) -> bool:
    """Return whether a plan is in the projects of a search."""
    wanted = where.get("project_id", plan.project_id)
    return plan.project_id in ((wanted,) if isinstance(wanted, str) else wanted)


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


def _of_workers(tx: Tx, at: Session) -> Iterator[Alert]:
    waits = tx.count(Loop, state=LoopState.RUNNING)
    known = tx.find(Worker)
    if waits and known and not live_workers(tx, at.home.membership):
        yield Alert(
            id="workers:none",
            severity=Severity.CRITICAL,
            kind="no_worker",
            message=f"{waits} {'loop' if waits == 1 else 'loops'} should run, and no worker does",
            hint="`loopwright up` starts one",
            since=max(one.lease_until for one in known),
        )


def _of_webhooks(tx: Tx) -> Iterator[Alert]:
    dead = tx.tally(DeadLetter, "webhook_id")
    for one in tx.find(Webhook, target=None):
        # Its path may contain a password of the receiver, so only the host is named.
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


def _of_targets(tx: Tx, at: Session) -> Iterator[Alert]:
    values = at.settings.values
    names = {name_of(url): ("notify", "notices") for url in values.notify}
    if values.otlp_endpoint:
        names[otlp.name_of(values.otlp_endpoint)] = ("otlp_endpoint", "traces")
    for one in tx.find(Webhook, target=sorted(names)) if names else ():
        if one.failures >= _FAILED:
            setting, what = names[one.target or ""]
            yield Alert(
                id=f"{setting}:{one.id}",
                severity=Severity.WARNING,
                kind=f"{setting}_stuck",
                message=f"{one.target} of the setting {setting} takes no {what}: {one.error}",
                hint="fix the target; Loopwright tries again",
                since=one.created_at,
            )
