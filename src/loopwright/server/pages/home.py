"""The first page, the board, the questions, and the stream that keeps pages up to date."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from loopwright.core.values.access import Scope
from loopwright.core.values.errors import LoopwrightError
from loopwright.server.context import Home, Operator, Reader
from loopwright.server.pages.render import inside, page
from loopwright.server.streams import Stream
from loopwright.services.dashboard import home as dashboard
from loopwright.services.dashboard.project import list_projects
from loopwright.services.remote import questions
from loopwright.services.remote.events import Wanted
from loopwright.services.remote.pages import LARGEST, Asked

router = APIRouter(include_in_schema=False)

_PAUSE_S: Final = 0.4
"""How long to gather changes before a page loads itself again."""
_BEAT_S: Final = 15.0


@router.get("/")
async def home_page(request: Request, home: Home, caller: Reader, project: str = "") -> Response:
    """Show what needs you, and the running, waiting and finished work."""
    shown = await dashboard.home_page(home.at, caller, project_id=project or None)
    return page(
        request,
        "home.html",
        home=shown,
        may_act=caller.may(Scope.OPERATE),
        now=_now(),
        asks=await dashboard.attention(home.at, caller),
        Place=dashboard.Place,
        projects=await list_projects(home.at, caller),
        project=project,
    )


@router.get("/board")
async def board(request: Request, home: Home, caller: Reader, project: str = "") -> Response:
    """Show the tasks of all plans in columns by their state."""
    shown = await dashboard.board(home.at, caller, project_id=project or None)
    return page(
        request,
        "board.html",
        board=shown,
        now=_now(),
        asks=await dashboard.attention(home.at, caller),
        projects=await list_projects(home.at, caller),
        project=project,
    )


@router.get("/questions")
async def list_questions(request: Request, home: Home, caller: Reader) -> Response:
    """Show the open questions."""
    found = (await questions.open_questions(home.at, caller, Asked(limit=LARGEST))).items
    return page(request, "questions.html", questions=found, now=_now(), asks=len(found), refused="")


@router.post("/questions/{question_id}")
async def answer(
    request: Request,
    question_id: str,
    home: Home,
    caller: Operator,
    answer: Annotated[str, Form()] = "",
    other: Annotated[str, Form()] = "",
    back: Annotated[str, Form()] = "/questions",
) -> Response:
    """Answer a question, with one of its options or in your own words."""
    own = other.strip()
    try:
        await questions.answer_question(home.at, caller, question_id, own or answer, other=bool(own))
    except LoopwrightError as refused:
        found = (await questions.open_questions(home.at, caller, Asked(limit=LARGEST))).items
        return page(
            request,
            "questions.html",
            questions=found,
            now=_now(),
            asks=len(found),
            refused=str(refused),
        )
    return RedirectResponse(inside(back), status_code=303)


@router.get("/live")
async def live(home: Home, caller: Reader, project: str | None = None) -> Response:
    """Stream one `changed` for every group of events, so that a page loads itself again."""
    wanted = Wanted(caller=caller, project=project)

    async def changes() -> AsyncIterator[str]:
        # Sent at once, because a page that reconnects may have missed changes.
        yield _changed(home.feed.last)
        async for batch in home.feed.follow(home.feed.last, wanted, beat_s=_BEAT_S):
            yield _changed(batch.last) if batch.events else ": still here\n\n"
            await asyncio.sleep(_PAUSE_S)

    return Stream(changes(), unread_s=home.limits.unread_s)


def _changed(number: int) -> str:
    return f"event: changed\nid: {number}\ndata: {number}\n\n"


def _now() -> datetime:
    return datetime.now(UTC)
