"""Alerts, reports, budgets, costs and workers."""

from datetime import date, datetime
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, BaseModel, Field
from starlette.responses import PlainTextResponse, Response

from loopwright.core.values.alerts import Severity
from loopwright.core.values.documents import document
from loopwright.core.values.states import PlanState
from loopwright.server.api.plans import result_of
from loopwright.server.context import Home, Operator, Reader, Writer
from loopwright.server.plan_bodies import Result
from loopwright.server.shapes import Camel, CamelRequest, LoopDocument, loop_document
from loopwright.services.reports import alerts, attention, costs
from loopwright.services.reports import report as work_report
from loopwright.services.reports.attention import LoopReport
from loopwright.services.reports.costs import Dimension
from loopwright.services.reports.report_texts import Format, as_text

router = APIRouter(prefix="/api", tags=["attention"])

_NO_CONTENT: Final = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
"""A report in HTML loads nothing and runs nothing."""


class AlertDocument(Camel):
    """Something that needs you. It disappears when its cause ends."""

    id: str
    severity: Severity
    kind: str
    message: str
    hint: str
    project_id: str | None
    loop_id: str | None
    plan_id: str | None
    task_id: str | None
    since: datetime
    acknowledged_by: str
    acknowledged_at: datetime | None


class Alerts(Camel):
    """At most 200 alerts: the open ones first, by urgency."""

    alerts: list[AlertDocument]


class Report(BaseModel):
    """The progress of a loop."""

    loop: LoopDocument
    plan: dict[str, Any] | None
    plans: int
    verified: int
    figures: dict[str, Any] | None
    alerts: list[AlertDocument]
    generated_at: datetime


class CostDocument(Camel):
    """The cost of runs that share a property, such as their agent."""

    name: str
    runs: int
    cost_micros: int
    unknown_costs: int
    estimated_costs: int = Field(description="Runs that reported only tokens: their cost is in the sum.")
    seconds: float


class PlanLine(Camel):
    """A plan in a report."""

    plan_id: str
    project: str
    title: str
    status: PlanState
    passed: int
    total: int
    reason: str
    branch: str
    spent_micros: int


class QuotaWait(Camel):
    """A time in which an account was closed; without an end it is still closed."""

    account: str
    since: datetime
    until: datetime | None


class WorkReportDocument(Camel):
    """What happened since a time, and what is next."""

    since: datetime
    until: datetime
    verified: list[PlanLine]
    waiting: list[AlertDocument]
    failed: list[PlanLine]
    spent: CostDocument
    spent_by_agent: list[CostDocument]
    quota_waits: list[QuotaWait]
    next: list[PlanLine]


class Limit(Camel):
    """A cost limit, in millionths of a dollar."""

    setting: str
    limit_micros: int
    spent_micros: int | None
    warning: str


class BudgetDocument(Camel):
    """What a project has spent today, and the limits of its running plans."""

    project_id: str
    day: str
    spent_micros: int
    unknown_costs: int
    plans: dict[str, list[Limit]]


class SetLimits(CamelRequest):
    """Cost limits in millionths of a dollar; null removes a limit, and a limit that you leave out stays."""

    max_cost: int | None = Field(default=None, ge=0, le=10**15)
    max_cost_per_run: int | None = Field(default=None, ge=0, le=10**15)
    max_cost_per_task: int | None = Field(default=None, ge=0, le=10**15)
    max_cost_per_loop: int | None = Field(default=None, ge=0, le=10**15)
    max_cost_per_project: int | None = Field(default=None, ge=0, le=10**15)
    max_cost_per_day: int | None = Field(default=None, ge=0, le=10**15)


class Costs(Camel):
    """What agents cost."""

    by: str
    costs: list[CostDocument]
    prices_as_of: date = Field(description="The date of the model prices that estimate a cost from tokens.")


class Workers(BaseModel):
    """The workers with a valid lease."""

    workers: list[dict[str, Any]]


@router.get("/alerts")
async def list_alerts(home: Home, caller: Reader, project: str | None = None) -> Alerts:
    """Return the alerts: the open ones first, by urgency."""
    found = await alerts.alerts(home.at, caller, project)
    return Alerts(alerts=[AlertDocument(**document(one)) for one in found])


@router.post("/alerts/{alert_id:path}/acknowledge")
async def acknowledge_alert(alert_id: str, home: Home, caller: Operator) -> AlertDocument:
    """Acknowledge an alert: it is listed last until its cause happens again."""
    return AlertDocument(**document(await alerts.acknowledge(home.at, caller, alert_id)))


@router.get(
    "/loops/{loop_id}/report",
    response_model=Report,
    responses={200: {"content": {"text/markdown": {"schema": {"type": "string"}}}}},
)
async def get_report(
    loop_id: str, home: Home, caller: Reader, format: Literal["json", "markdown"] = "json"
) -> Report | Response:
    """Return the progress of a loop, as JSON or as Markdown."""
    report = await attention.loop_report(home.at, caller, loop_id)
    if format == "markdown":
        return PlainTextResponse(_markdown(report), media_type="text/markdown")
    return Report(
        loop=loop_document(report.loop),
        plan=document(report.plan) if report.plan else None,
        plans=report.plans,
        verified=report.verified,
        figures=document(report.figures) if report.figures else None,
        alerts=[AlertDocument(**document(one)) for one in report.alerts],
        generated_at=report.generated_at,
    )


@router.get(
    "/report",
    response_model=WorkReportDocument,
    responses={
        200: {
            "content": {
                "text/markdown": {"schema": {"type": "string"}},
                "text/html": {"schema": {"type": "string"}},
            }
        }
    },
)
async def get_work_report(
    home: Home,
    caller: Reader,
    since: Annotated[
        AwareDatetime | None, Query(description="The beginning of the report; by default, the last day.")
    ] = None,
    project: str | None = None,
    format: Format = "json",
) -> WorkReportDocument | Response:
    """Return what was verified, what waits for you, what failed, what it cost, and what is next."""
    made = await work_report.report(home.at, caller, since=since, project_id=project)
    if format == "json":
        return WorkReportDocument(**document(made))
    text = as_text(made, format)
    return Response(text, media_type=f"text/{format}", headers=_NO_CONTENT if format == "html" else None)


@router.get("/projects/{project_id}/budget")
async def get_budget(project_id: str, home: Home, caller: Reader) -> BudgetDocument:
    """Return what a project has spent today, and the limits of its plans that are under way."""
    return BudgetDocument(**document(await attention.budget(home.at, caller, project_id)))


@router.patch("/plans/{plan_id}/budget")
async def set_budget(plan_id: str, limits: SetLimits, home: Home, caller: Writer) -> Result:
    """Change cost limits of a plan. To raise one, you need the scope `admin`."""
    given = {name: getattr(limits, name) for name in limits.model_fields_set}
    return result_of(await attention.set_limits(home.at, caller, plan_id, given))


@router.get("/costs")
async def get_costs(
    home: Home,
    caller: Reader,
    by: Literal["day", "project", "agent", "model", "role"] = "day",
    project: str | None = None,
    days: Annotated[int, Query(ge=1, le=366)] = 30,
) -> Costs:
    """Return what agents cost in the last days."""
    found = await costs.costs(home.at, caller, by=Dimension(by), project_id=project, days=days)
    return Costs(
        by=by,
        costs=[CostDocument(**document(one)) for one in found],
        prices_as_of=costs.PRICES_AS_OF,
    )


@router.get("/workers")
async def list_workers(home: Home, caller: Reader) -> Workers:
    """Return the workers of the home."""
    return Workers(workers=[document(one) for one in await attention.workers(home.at, caller)])


def _markdown(report: LoopReport) -> str:
    loop, plan = report.loop, report.plan
    passed = f"{loop.progress.passed} of {loop.progress.total} tasks passed"
    lines = [f"# {loop.name}", "", f"{loop.status.value.lower()}: {passed}"]
    if loop.reason:
        lines.append(f"Reason: {loop.reason}")
    if plan is not None:
        lines += ["", f"## {plan.title} ({plan.status.value})", ""]
        lines += ["| task | status | failed attempts | reason |", "|---|---|---|---|"]
        for task in plan.tasks:
            cells = (_cell(task.key), task.status.value, str(task.attempts_used), _cell(task.reason))
            lines.append(f"| {' | '.join(cells)} |")
    if report.alerts:
        lines += ["", "## Needs you", ""]
        lines += [f"- {one.severity.value}: {one.message} ({one.hint})" for one in report.alerts]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")[:200]
