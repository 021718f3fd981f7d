"""The numbered log of events: page by page, by long polling, or as a stream."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Final

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import StreamingResponse

from loopwright.core.rows.events import RecordedEvent
from loopwright.core.values.access import Caller
from loopwright.server.context import Home, Reader
from loopwright.server.feed import Feed, Wanted
from loopwright.server.shapes import EventPage, event_document

router = APIRouter(prefix="/api/events", tags=["events"])

_BEAT_S: Final = 15.0
"""A stream says something at least this often, so that both sides notice a dead connection."""

Number = Annotated[int, Query(ge=0)]
Types = Annotated[list[str] | None, Query(alias="type")]


@router.get("")
async def list_events(
    home: Home,
    caller: Reader,
    after: Number = 0,
    project: str | None = None,
    loop: str | None = None,
    plan: str | None = None,
    types: Types = None,
    wait: Annotated[float, Query(ge=0, le=30, description="Seconds to wait for the first event.")] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 200,
) -> EventPage:
    """Return events after a number; with `wait`, wait for the next one."""
    wanted = _filter(caller, project, loop, plan, types or ())
    batch = await home.feed.after(after, wanted, limit=limit)
    while not batch.events and batch.last > after:
        after = batch.last
        batch = await home.feed.after(after, wanted, limit=limit)
    if not batch.events and wait and await home.feed.wait(batch.last, wait):
        batch = await home.feed.after(batch.last, wanted, limit=limit)
    return EventPage(events=[event_document(one) for one in batch.events], last=batch.last)


@router.get("/stream", response_class=StreamingResponse)
async def stream_events(
    request: Request,
    home: Home,
    caller: Reader,
    after: Annotated[int | None, Query(ge=0)] = None,
    project: str | None = None,
    loop: str | None = None,
    plan: str | None = None,
    types: Types = None,
    last_event_id: Annotated[str | None, Header()] = None,
) -> StreamingResponse:
    """Stream events as they happen (SSE); `Last-Event-ID` continues a stream that broke."""
    begin = after if after is not None else home.feed.last
    if last_event_id is not None and last_event_id.isdecimal():
        begin = int(last_event_id)
    wanted = _filter(caller, project, loop, plan, types or ())
    return StreamingResponse(
        _lines(request, home.feed, begin, wanted),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _lines(request: Request, feed: Feed, after: int, wanted: Wanted) -> AsyncIterator[str]:
    yield "retry: 1000\n\n"
    async for batch in feed.follow(after, wanted, beat_s=_BEAT_S):
        if await request.is_disconnected():
            return
        yield "".join(map(_message, batch.events)) or f": {batch.last}\n\n"


def _message(event: RecordedEvent) -> str:
    data = json.dumps(event_document(event).model_dump(mode="json", by_alias=True), ensure_ascii=False)
    return f"id: {event.n}\nevent: {event.type}\ndata: {data}\n\n"


def _filter(
    caller: Caller, project: str | None, loop: str | None, plan: str | None, types: Sequence[str]
) -> Wanted:
    def wanted(event: RecordedEvent) -> bool:
        return (
            caller.sees(event.project)
            and (project is None or event.project == project)
            and (loop is None or event.loop == loop)
            and (plan is None or event.plan == plan)
            and (not types or event.type in types)
        )

    return wanted
