"""The pages of loops, and the forms on them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from loopwright.core.values.access import Scope
from loopwright.core.values.errors import BadPlan, LoopwrightError, NotFound
from loopwright.server.context import Home, Operator, Paging, Reader
from loopwright.server.pages.render import inside, page, words_of
from loopwright.server.shapes import ModelText
from loopwright.services.dashboard import home as dashboard
from loopwright.services.dashboard import loops as views
from loopwright.services.dashboard.project import list_projects
from loopwright.services.dashboard.rounds import rounds_page
from loopwright.services.remote import loops, starting
from loopwright.services.remote.drafting import PlanWish, ask_for_plan

router = APIRouter(prefix="/loops", include_in_schema=False)

Text = Annotated[str, Form()]
Priority = Annotated[int | None, Form(ge=1, le=10)]
Slots = Annotated[int | None, Form(ge=1, le=256)]

_STEERED: Final = frozenset({"stop", "pause", "resume"})
_WAYS: Final = ("source", "template", "goal")
_VALUE: Final = "value."
"""The prefix of the form fields for a template's parameters."""


@router.get("")
async def show_loops(
    request: Request,
    home: Home,
    caller: Reader,
    asked: Paging,
    project: str = "",
    status: str = "",
    refused: str = "",
) -> Response:
    """Show all loops, the most urgent first."""
    projects = await list_projects(home.at, caller)
    shown = await views.list_loops(home.at, caller, asked, project_id=project or None, only=status)
    return page(
        request,
        "loops.html",
        shown=shown,
        filters=views.FILTERS,
        projects=projects,
        project=project,
        only=status,
        now=datetime.now(UTC),
        asks=await dashboard.attention(home.at, caller),
        refused=refused,
        shown_at="/loops",
    )


@router.get("/new")
async def new_loop(
    request: Request, home: Home, caller: Reader, project: str = "", way: str = ""
) -> Response:
    """Show the form for a new loop."""
    return await _form(request, home, caller, project=project, way=way, given={})


@router.post("/new")
async def create_loop(
    request: Request,
    home: Home,
    caller: Operator,
    project: Text,
    way: Text = "source",
    source: Text = "",
    template: Text = "",
    goal: Text = "",
    model: ModelText = "",
    priority: Priority = None,
    start: Annotated[bool, Form()] = False,
) -> Response:
    """Create a loop, or request a plan for a goal; show each problem beside its field."""
    form = {name: str(value) for name, value in (await request.form()).items()}
    try:
        if way == "goal":
            made = await ask_for_plan(
                home.at, caller, project, PlanWish(goal=goal.strip(), model=model.strip() or None)
            )
            return RedirectResponse(f"/plans/{made.plan.id}", status_code=303)
        wanted = starting.NewLoop(
            project_id=project,
            source=source.strip() if way == "source" else None,
            template=template if way == "template" else None,
            values=_values(form, template) if way == "template" else {},
            priority=priority,
        )
        loop = await starting.create_loop(home.at, caller, wanted)
    except LoopwrightError as refused:
        return await _form(request, home, caller, project=project, way=way, given=form, refused=refused)
    if start:
        try:
            await starting.ask_to_start(home.at, caller, loop.id)
        except LoopwrightError as refused:
            # The loop exists, and its own page shows why it cannot start.
            return await show_loop(request, loop.id, home, caller, refused=words_of(refused))
    return RedirectResponse(f"/loops/{loop.id}", status_code=303)


@router.get("/{loop_id}")
async def show_loop(
    request: Request, loop_id: str, home: Home, caller: Reader, refused: str = ""
) -> Response:
    """Show a loop: its health, its plans, its time and cost."""
    shown = await views.loop_page(home.at, caller, loop_id)
    return page(
        request,
        "loop.html",
        shown=shown,
        view=shown.loop,
        may_act=caller.may(Scope.OPERATE),
        may_record=caller.may(Scope.ADMIN),
        now=datetime.now(UTC),
        asks=await dashboard.attention(home.at, caller),
        refused=refused,
        shown_at=f"/loops/{loop_id}",
    )


@router.get("/{loop_id}/rounds")
async def show_rounds(request: Request, loop_id: str, home: Home, caller: Reader) -> Response:
    """Show the rounds of an orchestrator folder: its controller, its roadmap and its records."""
    return page(
        request,
        "rounds.html",
        shown=await rounds_page(home.at, caller, loop_id),
        now=datetime.now(UTC),
        asks=await dashboard.attention(home.at, caller),
    )


@router.post("/{loop_id}/settings")
async def change_loop(
    request: Request,
    loop_id: str,
    home: Home,
    caller: Operator,
    agent: Text = "",
    model: ModelText = "",
    max_concurrent: Slots = None,
) -> Response:
    """Change the agent and model for the tasks that a loop has not begun."""
    try:
        await loops.change_loop(
            home.at,
            caller,
            loop_id,
            agent=agent.strip() or None,
            model=model.strip() or None,
            max_concurrent=max_concurrent,
        )
    except NotFound:
        raise
    except LoopwrightError as refused:
        return await show_loop(request, loop_id, home, caller, refused=words_of(refused))
    return RedirectResponse(f"/loops/{loop_id}", status_code=303)


@router.post("/{loop_id}/{action}")
async def act_on_loop(
    request: Request,
    loop_id: str,
    action: str,
    home: Home,
    caller: Operator,
    priority: Priority = None,
    back: Text = "",
) -> Response:
    """Start, stop, pause, resume or delete a loop, or change its priority; then show where the form was."""
    try:
        if action == "start":
            await starting.ask_to_start(home.at, caller, loop_id)
        elif action == "delete":
            await starting.delete_loop(home.at, caller, loop_id)
            back = back or "/loops"
        elif action == "priority":
            await loops.change_loop(home.at, caller, loop_id, priority=priority)
        elif action in _STEERED:
            await loops.steer_loop(home.at, caller, loop_id, action)  # type: ignore[arg-type]
        else:
            raise NotFound(f"there is no action {action!r}", code="action_unknown")
    except NotFound:
        raise
    except LoopwrightError as refused:
        return await show_loop(request, loop_id, home, caller, refused=words_of(refused))
    return RedirectResponse(inside(back) if back else f"/loops/{loop_id}", status_code=303)


async def _form(
    request: Request,
    home: Home,
    caller: Reader,
    *,
    project: str,
    way: str,
    given: Mapping[str, str],
    refused: LoopwrightError | None = None,
) -> Response:
    projects = await list_projects(home.at, caller)
    chosen = project or (projects[0].id if projects else "")
    material = await views.loop_material(home.at, caller, chosen) if chosen else None
    return page(
        request,
        "new_loop.html",
        projects=projects,
        chosen=chosen,
        material=material,
        may_record=caller.may(Scope.ADMIN),
        way=way if way in _WAYS else _WAYS[0] if material is None or material.sources else "goal",
        given=given,
        problems=_problems(refused),
        refused=words_of(refused) if refused else "",
        now=datetime.now(UTC),
        asks=await dashboard.attention(home.at, caller),
        shown_at="/loops/new",
    )


def _problems(refused: LoopwrightError | None) -> tuple[str, ...]:
    """Return each place where a source or the values of a template are wrong."""
    return refused.problems if isinstance(refused, BadPlan) else ()


def _values(form: Mapping[str, Any], template: str) -> dict[str, str]:
    """Return the values of a template's parameters; a field that was left empty keeps its default."""
    mine = f"{_VALUE}{template}."
    return {name.removeprefix(mine): value for name, value in form.items() if name.startswith(mine) and value}
