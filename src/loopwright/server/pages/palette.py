"""The results of the command palette, as a fragment of a page."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from loopwright.server.context import Home, Reader
from loopwright.server.pages.render import page
from loopwright.services.dashboard.finding import find_places

router = APIRouter(include_in_schema=False)


@router.get("/find")
async def find(
    request: Request, home: Home, caller: Reader, q: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """Return the pages whose names contain the typed text."""
    return page(request, "found.html", places=await find_places(home.at, caller, q))
