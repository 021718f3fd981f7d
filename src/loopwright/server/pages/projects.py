"""The pages of projects and their loops, and the forms on them."""

from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from loopwright.core.values.errors import LoopwrightError, NotFound
from loopwright.server.context import Home, Operator, Reader
from loopwright.server.pages.render import page, words_of
from loopwright.services.dashboard import home as dashboard
from loopwright.services.dashboard import project as project_views
from loopwright.services.remote import figures, loops, packets, starting
from loopwright.services.remote.drafting import PlanWish, ask_for_plan

router = APIRouter(prefix="/projects", include_in_schema=False)

Text = Annotated[str, Form()]
_STEERED: Final = frozenset({"stop", "pause", "resume"})
_MOVED: Final = {"earlier": -1, "later": 1}


@router.get("")
async def show_projects(request: Request, home: Home, caller: Reader) -> Response:
    """Show all projects."""
    found = await project_views.list_projects(home.at, caller)
    asks = await dashboard.attention(home.at, caller)
    return page(request, "projects.html", projects=found, now=datetime.now(UTC), asks=asks)


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
        tab=tab if tab in ("work", "settings") else "work",
        now=datetime.now(UTC),
        asks=await dashboard.attention(home.at, caller),
        refused=refused,
        shown_at=f"/projects/{project_id}",
    )


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
    model: Text = "",
    source: Text = "",
) -> Response:
    """Inspect, plan, or create a loop; then show where that led."""
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
        elif action == "loops":
            loop = await starting.create_loop(
                home.at, caller, starting.NewLoop(project_id=project_id, source=source.strip())
            )
            await starting.ask_to_start(home.at, caller, loop.id)
        else:
            raise NotFound(f"there is no action {action!r}", code="action_unknown")
    except NotFound as missing:
        if missing.code in ("action_unknown", "project_not_found"):
            raise
        return await show_project(request, project_id, home, caller, refused=words_of(missing))
    except LoopwrightError as refused:
        return await show_project(request, project_id, home, caller, refused=words_of(refused))
    return RedirectResponse(back, status_code=303)


@router.post("/{project_id}/loops/{loop_id}/{action}")
async def act_on_loop(
    request: Request, project_id: str, loop_id: str, action: str, home: Home, caller: Operator
) -> Response:
    """Start, stop, pause or resume a loop, or change its priority."""
    try:
        if action == "start":
            await starting.ask_to_start(home.at, caller, loop_id)
        elif action in _STEERED:
            await loops.steer_loop(home.at, caller, loop_id, action)  # type: ignore[arg-type]
        elif action in _MOVED:
            known = await loops.get_loop(home.at, caller, loop_id)
            wanted = min(10, max(1, known.priority + _MOVED[action]))
            await loops.change_loop(home.at, caller, loop_id, priority=wanted)
        else:
            raise NotFound(f"there is no action {action!r}", code="action_unknown")
    except NotFound:
        raise
    except LoopwrightError as refused:
        return await show_project(request, project_id, home, caller, refused=words_of(refused))
    return RedirectResponse(f"/projects/{project_id}", status_code=303)
