"""The page of a run, and the pieces of its transcript."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from loopwright.server.context import Home, Reader
from loopwright.server.pages.render import page
from loopwright.services.dashboard import home as dashboard
from loopwright.services.dashboard import run as run_views

router = APIRouter(prefix="/runs", include_in_schema=False)

Position = Annotated[int | None, Query(ge=0)]


@router.get("/{run_id}")
async def show_run(request: Request, run_id: str, home: Home, caller: Reader) -> Response:
    """Show a run: its facts, its prompt and the end of its transcript."""
    shown = await run_views.run_page(home.at, caller, run_id)
    return page(
        request,
        "run.html",
        run=shown,
        view=shown.view,
        now=datetime.now(UTC),
        asks=await dashboard.attention(home.at, caller),
    )


@router.get("/{run_id}/transcript")
async def show_piece(
    request: Request, run_id: str, home: Home, caller: Reader, before: Position = None, after: Position = None
) -> Response:
    """Return a piece of a transcript as a fragment of a page."""
    piece = await run_views.transcript(home.at, caller, run_id, before=before, after=after)
    return page(request, "piece.html", piece=piece, run_id=run_id, earlier=after is None)
