"""Loops: list, look at, start, stop, pause and resume them."""

from typing import Annotated

from fastapi import APIRouter, Body, Query

from loopwright.server.context import Home, Operator, Reader
from loopwright.server.shapes import (
    HealthDocument,
    LoopDocument,
    LoopPage,
    health_document,
    loop_document,
)
from loopwright.services.remote import loops

router = APIRouter(prefix="/api/loops", tags=["loops"])


@router.get("")
async def list_loops(
    home: Home,
    caller: Reader,
    project: str | None = None,
    after: str = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> LoopPage:
    """List the loops."""
    found = await loops.list_loops(home.at, caller, project_id=project, after=after, limit=limit + 1)
    page = found[:limit]
    return LoopPage(
        loops=[loop_document(one) for one in page], next=page[-1].id if len(found) > limit else None
    )


@router.get("/{loop_id}")
async def get_loop(loop_id: str, home: Home, caller: Reader) -> LoopDocument:
    """Return a loop."""
    return loop_document(await loops.get_loop(home.at, caller, loop_id))


@router.get("/{loop_id}/health")
async def get_health(loop_id: str, home: Home, caller: Reader) -> HealthDocument:
    """Return whether a loop is live, and whether it could start work now."""
    return health_document(await loops.loop_health(home.at, caller, loop_id))


@router.post("/{loop_id}/start")
async def start_loop(loop_id: str, home: Home, caller: Operator) -> LoopDocument:
    """Start a loop, or continue one that was stopped."""
    return loop_document(await loops.steer_loop(home.at, caller, loop_id, "start"))


@router.post("/{loop_id}/stop")
async def stop_loop(loop_id: str, home: Home, caller: Operator) -> LoopDocument:
    """Stop a loop: interrupt its agents and keep their work."""
    return loop_document(await loops.steer_loop(home.at, caller, loop_id, "stop"))


@router.post("/{loop_id}/pause")
async def pause_loop(
    loop_id: str, home: Home, caller: Operator, now: Annotated[bool, Body(embed=True)] = False
) -> LoopDocument:
    """Start nothing new in a loop; with `now`, interrupt its agents too."""
    return loop_document(await loops.steer_loop(home.at, caller, loop_id, "pause", now=now))


@router.post("/{loop_id}/resume")
async def resume_loop(loop_id: str, home: Home, caller: Operator) -> LoopDocument:
    """Continue a paused loop."""
    return loop_document(await loops.steer_loop(home.at, caller, loop_id, "resume"))
