"""The demonstration, started from the first page of a fresh home."""

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from loopwright.server.context import Admin, Home
from loopwright.services.projects.sample import start_sample

router = APIRouter(include_in_schema=False)


@router.post("/demo")
async def start(home: Home, caller: Admin) -> Response:
    """Start the demonstration, and show it."""
    return RedirectResponse(await start_sample(home.at, caller), status_code=303)
