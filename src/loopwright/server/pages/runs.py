"""The page of a run, the pieces of its transcript, and the search in it."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import RedirectResponse, Response

from loopwright.core.values.errors import LoopwrightError, NotFound
from loopwright.server.context import Home, Operator, Reader
from loopwright.server.pages.render import page, words_of
from loopwright.services.dashboard import home as dashboard
from loopwright.services.dashboard import run as run_views
from loopwright.services.dashboard import transcript as transcripts
from loopwright.services.remote import runs

router = APIRouter(prefix="/runs", include_in_schema=False)

Position = Annotated[int | None, Query(ge=0)]


@router.get("/{run_id}")
async def show_run(
    request: Request, run_id: str, home: Home, caller: Reader, at: Position = None, refused: str = ""
) -> Response:
    """Show a run: its facts, its prompt, and the end of its transcript or what begins at a position."""
    shown = await run_views.run_page(home.at, caller, run_id, begin=at)
    return page(
        request,
        "run.html",
        run=shown,
        view=shown.view,
        now=datetime.now(UTC),
        asks=await dashboard.attention(home.at, caller),
        refused=refused,
    )


@router.get("/{run_id}/transcript")
async def show_piece(
    request: Request, run_id: str, home: Home, caller: Reader, before: Position = None, after: Position = None
) -> Response:
    """Return a piece of a transcript as a fragment of a page."""
    piece = await transcripts.transcript(home.at, caller, run_id, before=before, after=after)
    return page(request, "piece.html", piece=piece)


@router.get("/{run_id}/search")
async def search(
    request: Request, run_id: str, home: Home, caller: Reader, q: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """Return where a transcript has a text, as a fragment of a page."""
    found = await transcripts.search(home.at, caller, run_id, q)
    return page(request, "hits.html", found=found, run_id=run_id)


@router.post("/{run_id}/interrupt")
async def interrupt(
    request: Request, run_id: str, home: Home, caller: Operator, note: Annotated[str, Form()] = ""
) -> Response:
    """End the agent of a run, so that its task starts again with a note; then show the run."""
    try:
        await runs.interrupt(home.at, caller, run_id, note.strip())
    except NotFound:
        raise
    except LoopwrightError as refused:
        return await show_run(request, run_id, home, caller, refused=words_of(refused))
    return RedirectResponse(f"/runs/{run_id}", status_code=303)
