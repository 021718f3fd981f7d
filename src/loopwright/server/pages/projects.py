"""The pages of projects, and the forms on them."""

from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from loopwright.core.values.access import Scope
from loopwright.core.values.errors import LoopwrightError, NotFound
from loopwright.server.context import Admin, Home, Operator, Reader
from loopwright.server.pages.render import inside, page, words_of
from loopwright.server.shapes import ModelText
from loopwright.services.dashboard import home as dashboard
from loopwright.services.dashboard import project as project_views
from loopwright.services.remote import packets
from loopwright.services.remote import projects as remote
from loopwright.services.remote.drafting import PlanWish, ask_for_plan
from loopwright.services.remote.pages import LARGEST, Asked
from loopwright.services.reports import figures

router = APIRouter(prefix="/projects", include_in_schema=False)

Text = Annotated[str, Form()]
_TABS: Final = ("work", "gates", "settings")


@router.get("")
async def show_projects(
    request: Request, home: Home, caller: Reader, refused: str = "", typed: str = ""
) -> Response:
    """Show all projects, and the form that registers one."""
    found = (await remote.list_projects(home.at, caller, Asked(limit=LARGEST))).items
    return page(
        request,
        "projects.html",
        projects=found,
        may_add=caller.may(Scope.ADMIN) and caller.sees(None),
        refused=refused,
        typed=typed,
        now=datetime.now(UTC),
        asks=await dashboard.attention(home.at, caller),
        shown_at="/projects",
    )


@router.post("")
async def add_project(request: Request, home: Home, caller: Admin, path: Text = "") -> Response:
    """Register a repository of this machine."""
    try:
        made = await remote.add_project(home.at, caller, path.strip())
    except LoopwrightError as refused:
        return await show_projects(request, home, caller, refused=words_of(refused), typed=path)
    return RedirectResponse(f"/projects/{made.project.id}", status_code=303)


@router.get("/{project_id}")
async def show_project(
    request: Request, project_id: str, home: Home, caller: Reader, tab: str = "work", refused: str = ""
) -> Response:
    """Show a project."""
    shown = await project_views.project_page(home.at, caller, project_id)
    settings = await figures.project_settings(home.at, caller, project_id) if tab == "settings" else ()
    return page(
        request,
        "project.html",
        shown=shown,
        project=shown.project,
        settings=settings,
        gates=await figures.project_gates(home.at, caller, project_id) if tab == "gates" else (),
        tab=tab if tab in _TABS else "work",
        may_record=caller.may(Scope.ADMIN),
        now=datetime.now(UTC),
        asks=await dashboard.attention(home.at, caller),
        refused=refused,
        shown_at=f"/projects/{project_id}",
    )


@router.post("/{project_id}/environment")
async def record_environment(
    request: Request, project_id: str, home: Home, caller: Admin, back: Text = ""
) -> Response:
    """Let the plans of a project start with the daemon's environment; then show where the form was."""
    try:
        await remote.use_daemon_environment(home.at, caller, project_id)
    except NotFound:
        raise
    except LoopwrightError as refused:
        return await show_project(request, project_id, home, caller, refused=words_of(refused))
    return RedirectResponse(inside(back) if back else f"/projects/{project_id}", status_code=303)


@router.post("/{project_id}/{action}")
async def act_on_project(
    request: Request,
    project_id: str,
    action: str,
    home: Home,
    caller: Operator,
    goal: Text = "",
    run: Text = "",
    packet: Text = "",
    model: ModelText = "",
) -> Response:
    """Inspect or plan, then show the result."""
    back = f"/projects/{project_id}"
    try:
        if action == "inspect":
            if goal.strip():
                await packets.inspect_project(home.at, caller, project_id, goal.strip())
            else:
                await packets.inspect_run(home.at, caller, run)
        elif action == "plan":
            wish = PlanWish(packet_id=packet or None, goal=goal, model=model.strip() or None)
            made = await ask_for_plan(home.at, caller, project_id, wish)
            back = f"/plans/{made.plan.id}"
        else:
            raise NotFound(f"there is no action {action!r}", code="action_unknown")
    except NotFound as missing:
        if missing.code in ("action_unknown", "project_not_found"):
            raise
        return await show_project(request, project_id, home, caller, refused=words_of(missing))
    except LoopwrightError as refused:
        return await show_project(request, project_id, home, caller, refused=words_of(refused))
    return RedirectResponse(back, status_code=303)
