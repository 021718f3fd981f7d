"""The pages about the whole home: costs, agents, alerts, workers, quota, settings and tokens."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from loopwright.core.values.access import Scope
from loopwright.core.values.alerts import Severity
from loopwright.core.values.errors import LoopwrightError, NotFound
from loopwright.server.context import Admin, Home, Operator, Reader
from loopwright.server.pages.charts import HEIGHT, SPARK_HEIGHT, draw_bars, spark
from loopwright.server.pages.render import inside, page, words_of
from loopwright.services.access import tokens
from loopwright.services.dashboard import costs as cost_views
from loopwright.services.dashboard import home as dashboard
from loopwright.services.dashboard.project import list_projects
from loopwright.services.reports import alerts, attention, figures
from loopwright.services.reports.costs import PRICES_AS_OF

router = APIRouter(include_in_schema=False)

Text = Annotated[str, Form()]

_SPANS: Final = {"7": 7, "30": 30, "90": 90}
"""How many days the page of costs can show."""
_ACKNOWLEDGED: Final = "acknowledged"


@router.get("/costs")
async def show_costs(
    request: Request, home: Home, caller: Reader, project: str = "", days: str = "30"
) -> Response:
    """Show what agents cost."""
    span = days if days in _SPANS else "30"
    shown = await cost_views.costs_page(home.at, caller, project_id=project or None, days=_SPANS[span])
    return page(
        request,
        "costs.html",
        shown=shown,
        bars=draw_bars([one.cost_micros for one in shown.days]),
        height=HEIGHT,
        spark=spark,
        spark_height=SPARK_HEIGHT,
        dimensions=cost_views.DIMENSIONS,
        spans=_SPANS,
        days=span,
        project=project,
        prices_as_of=PRICES_AS_OF,
        **await _common(home, caller),
    )


@router.get("/agents")
async def show_agents(request: Request, home: Home, caller: Reader, project: str = "") -> Response:
    """Show the record of each agent and model."""
    found = await figures.agent_record(home.at, caller, project or None)
    return page(request, "agents.html", agents=found, project=project, **await _common(home, caller))


@router.get("/alerts")
async def show_alerts(
    request: Request,
    home: Home,
    caller: Reader,
    project: str = "",
    severity: str = "",
    refused: str = "",
) -> Response:
    """Show the alerts, the most urgent first."""
    found = await alerts.alerts(home.at, caller, project or None)
    kinds = {one.id: _ACKNOWLEDGED if one.acknowledged_by else str(one.severity) for one in found}
    severities = [*(str(one) for one in reversed(Severity)), _ACKNOWLEDGED]
    counts = {one: list(kinds.values()).count(one) for one in severities}
    wanted = {severity} if severity in severities else {*severities} - {_ACKNOWLEDGED}
    return page(
        request,
        "alerts.html",
        alerts=[one for one in found if kinds[one.id] in wanted],
        counts={"": len(found) - counts[_ACKNOWLEDGED], **counts},
        severities=severities,
        severity=severity,
        project=project,
        may_act=caller.may(Scope.OPERATE),
        refused=refused,
        shown_at="/alerts" if refused else "",
        **await _common(home, caller),
    )


@router.post("/alerts")
async def acknowledge_alert(
    request: Request, home: Home, caller: Operator, alert: Text, back: Text = "/alerts"
) -> Response:
    """Acknowledge an alert, then show where the form was."""
    try:
        await alerts.acknowledge(home.at, caller, alert)
    except LoopwrightError as refused:
        return await show_alerts(request, home, caller, refused=words_of(refused))
    return RedirectResponse(inside(back), status_code=303)


@router.get("/workers")
async def show_workers(request: Request, home: Home, caller: Reader) -> Response:
    """Show the processes that start work."""
    found = await attention.workers(home.at, caller)
    return page(request, "workers.html", workers=found, **await _common(home, caller))


@router.get("/quota")
async def show_quota(request: Request, home: Home, caller: Reader, refused: str = "") -> Response:
    """Show the accounts of agents."""
    found = await figures.quota(home.at, caller)
    return page(
        request,
        "quota.html",
        accounts=found,
        may_open=caller.may(Scope.OPERATE),
        refused=refused,
        shown_at="/quota",
        **await _common(home, caller),
    )


@router.post("/quota/open")
async def open_account(request: Request, home: Home, caller: Operator, account: Text) -> Response:
    """Open a closed account again."""
    try:
        await figures.open_account(home.at, caller, account)
    except NotFound:
        raise
    except LoopwrightError as refused:
        return await show_quota(request, home, caller, refused=words_of(refused))
    return RedirectResponse("/quota", status_code=303)


@router.get("/settings")
async def show_settings(
    request: Request, home: Home, caller: Reader, project: str = "", only: str = ""
) -> Response:
    """Show the settings in force in a project, and where each comes from."""
    common = await _common(home, caller)
    chosen = project or next((one.id for one in common["projects"]), "")
    found = await figures.project_settings(home.at, caller, chosen) if chosen else ()
    changed = [one for one in found if one["origin"] != "default"]
    return page(
        request,
        "settings.html",
        settings=changed if only == "changed" else found,
        counts={"": len(found), "changed": len(changed)},
        only=only,
        project=chosen,
        **common,
    )


@router.get("/tokens")
async def show_tokens(request: Request, home: Home, caller: Admin) -> Response:
    """Show the tokens that programs and browsers sign in with."""
    return await _tokens(request, home, caller)


@router.post("/tokens")
async def create_token(
    request: Request,
    home: Home,
    caller: Admin,
    name: Text,
    scope: Annotated[Scope, Form()] = Scope.READ,
    projects: Annotated[list[str] | None, Form()] = None,
    limit: Annotated[str, Form(max_length=20)] = "",
    nesting: Annotated[str, Form(pattern="^[0-9]{0,2}$")] = "",
) -> Response:
    """Make a token, and show it this once."""
    wanted = projects or []
    try:
        made = await tokens.create_token(
            home.at,
            name.strip(),
            scope=scope,
            projects=wanted,
            limit=tokens.read_limit(limit.strip() or "off"),
            nesting=int(nesting) if nesting else None,
            maker=caller,
        )
    except LoopwrightError as refused:
        return await _tokens(
            request,
            home,
            caller,
            refused=words_of(refused),
            name=name,
            scope=scope,
            chosen=wanted,
            limits=(limit, nesting),
        )
    return await _tokens(request, home, caller, made=made)


@router.post("/tokens/{token_id}/revoke")
async def revoke_token(token_id: str, home: Home, caller: Admin) -> Response:
    """Revoke a token."""
    await tokens.revoke_token(home.at, token_id, within=caller.projects)
    return RedirectResponse("/tokens", status_code=303)


async def _tokens(
    request: Request,
    home: Home,
    caller: Admin,
    *,
    made: tokens.NewToken | None = None,
    refused: str = "",
    name: str = "",
    scope: Scope = Scope.READ,
    chosen: Collection[str] = (),
    limits: tuple[str, str] = ("", ""),
) -> Response:
    return page(
        request,
        "tokens.html",
        tokens=await tokens.list_tokens(home.at, within=caller.projects),
        own=caller.token_id,
        sees_all=caller.sees(None),
        scopes=tuple(Scope),
        made=made,
        refused=refused,
        typed=name,
        chosen_scope=scope,
        chosen_projects=chosen,
        typed_limit=limits[0],
        typed_nesting=limits[1],
        shown_at="/tokens",
        **await _common(home, caller),
    )


async def _common(home: Home, caller: Reader) -> dict[str, Any]:
    """Return the values that all these pages need."""
    return {
        "projects": await list_projects(home.at, caller),
        "now": datetime.now(UTC),
        "asks": await dashboard.attention(home.at, caller),
    }
