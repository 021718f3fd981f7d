"""The page of lessons for agents, with their measurements and forms."""

from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from loopwright.core.values.access import Scope
from loopwright.core.values.errors import LoopwrightError, NotFound
from loopwright.server.context import Admin, Home, Operator, Reader
from loopwright.server.pages.diffs import changed_files
from loopwright.server.pages.render import page, words_of
from loopwright.services.dashboard import home as dashboard
from loopwright.services.dashboard.project import list_projects
from loopwright.services.remote import lessons
from loopwright.services.remote.lessons import LessonState

router = APIRouter(prefix="/lessons", include_in_schema=False)

Text = Annotated[str, Form(max_length=4_000)]
_STATES: Final = tuple(one.value.lower() for one in LessonState)


@router.get("")
async def show_lessons(
    request: Request,
    home: Home,
    caller: Reader,
    project: str = "",
    state: str = "",
    refused: str = "",
    typed: str = "",
) -> Response:
    """Show the lessons of the projects, each with its measurement."""
    found = await lessons.list_lessons(home.at, caller, project or None, everything=True)
    states = [one.lesson.state.value.lower() for one in found]
    counts = {one: states.count(one) for one in _STATES}
    wanted = {state} if state in _STATES else {*_STATES} - {"removed"}
    return page(
        request,
        "lessons.html",
        lessons=[one for one, is_in in zip(found, states, strict=True) if is_in in wanted],
        diffs={one.lesson.id: changed_files(one.diff, cut=False) for one in found if one.diff},
        counts={"": len(found) - counts["removed"], **counts},
        states=_STATES,
        state=state,
        project=project,
        projects=await list_projects(home.at, caller),
        may_decide=caller.may(Scope.ADMIN),
        may_act=caller.may(Scope.OPERATE),
        refused=refused,
        typed=typed,
        now=datetime.now(UTC),
        asks=await dashboard.attention(home.at, caller),
        shown_at="/lessons" if refused else "",
    )


@router.post("")
async def add_lesson(
    request: Request,
    home: Home,
    caller: Admin,
    text: Text,
    project: Text,
    files: Text = "",
    task_type: Text = "",
) -> Response:
    """Add your lesson."""
    patterns = files.replace(",", " ").split()
    try:
        await lessons.add_lesson(home.at, caller, project, text, files=patterns, task_type=task_type.strip())
    except LoopwrightError as refused:
        return await show_lessons(
            request, home, caller, project=project, refused=words_of(refused), typed=text
        )
    return RedirectResponse("/lessons", status_code=303)


@router.post("/propose")
async def propose_lessons(request: Request, home: Home, caller: Operator, project: Text) -> Response:
    """Draft lessons from failures."""
    try:
        await lessons.propose_lessons(home.at, caller, project)
    except LoopwrightError as refused:
        return await show_lessons(request, home, caller, refused=words_of(refused))
    return RedirectResponse("/lessons", status_code=303)


@router.post("/{lesson_id}/{action}")
async def act_on_lesson(
    request: Request,
    lesson_id: str,
    action: str,
    home: Home,
    caller: Admin,
    text: Text = "",
    project: Text = "",
) -> Response:
    """Approve, remove or promote a lesson."""
    try:
        if action == "approve":
            await lessons.approve_lesson(home.at, caller, lesson_id, text.strip() or None)
        elif action == "remove":
            await lessons.remove_lesson(home.at, caller, lesson_id)
        elif action == "promote":
            await lessons.promote_lesson(home.at, caller, lesson_id, project)
        else:
            raise NotFound(f"there is no action {action!r}", code="action_unknown")
    except LoopwrightError as refused:
        if isinstance(refused, NotFound) and refused.code == "action_unknown":
            raise
        return await show_lessons(request, home, caller, refused=words_of(refused))
    return RedirectResponse("/lessons", status_code=303)
