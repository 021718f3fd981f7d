"""Whether the daemon is alive, and whether it could start work now."""

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.responses import Response

from loopwright.server.context import Home
from loopwright.server.problems import HttpProblem, of_http
from loopwright.services.daemon.readiness import why_not_ready

router = APIRouter(tags=["health"])


class Alive(BaseModel):
    """The daemon answers."""

    status: str = "ok"


@router.get("/healthz")
async def healthz() -> Alive:
    """Return whether the daemon answers."""
    return Alive()


@router.get("/readyz", response_model=Alive)
async def readyz(home: Home) -> Alive | Response:
    """Return whether the daemon could start work now."""
    if why := await why_not_ready(home.at):
        return of_http(HttpProblem("not_ready", why, headers={"Retry-After": "5"}))
    return Alive()
