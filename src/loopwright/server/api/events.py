"""The numbered log of events: page by page, by long polling, or as a stream."""

import asyncio
import json
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Header, Query

from loopwright.core.rows.events import RecordedEvent
from loopwright.server.context import Home, Reader
from loopwright.server.feed import Feed
from loopwright.server.shapes import EventPage, event_document
from loopwright.server.streams import Stream
from loopwright.services.remote.events import Wanted

router = APIRouter(prefix="/api/events", tags=["events"])

_BEAT_S: Final = 15.0
"""A stream sends something at least this often, so that both sides notice a dead connection."""
_LOOK_S: Final = 0.2
"""How long a request searches the part of the log that is not in memory."""
LAST: Final = (1 << 63) - 1

Number = Annotated[int, Query(ge=0, le=LAST)]
Name = Annotated[str | None, Query(max_length=100)]


async def _wanted(
    caller: Reader,
    project: Name = None,
    loop: Name = None,
    plan: Name = None,
    types: Annotated[list[str] | None, Query(alias="type", max_length=100)] = None,
) -> Wanted:
    return Wanted(caller=caller, project=project, loop=loop, plan=plan, types=frozenset(types or ()))


Filter = Annotated[Wanted, Depends(_wanted)]


@router.get("")
async def list_events(
    home: Home,
    wanted: Filter,
    after: Number = 0,
    wait: Annotated[float, Query(ge=0, le=30, description="Seconds to wait for the first event.")] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 200,
) -> EventPage:
    """Return events after a number; with `wait`, wait for the next one."""
    feed = home.feed
    clock = asyncio.get_running_loop().time
    began = clock()
    last = await feed.begin(after)
    while True:
        batch = await feed.after(last, wanted, limit=limit)
        is_at_end, last = batch.last == last, batch.last
        if batch.events or (not is_at_end and clock() - began > _LOOK_S):
            break
        if is_at_end and not await feed.wait(last, began + wait - clock()):
            break
    return EventPage(
        events=[event_document(one) for one in batch.events], last=last, has_more=last < feed.last
    )


@router.get("/stream", response_class=Stream, status_code=HTTPStatus.OK)
async def stream_events(
    home: Home,
    wanted: Filter,
    after: Annotated[int | None, Query(ge=0, le=LAST)] = None,
    last_event_id: Annotated[str | None, Header(max_length=20)] = None,
) -> Stream:
    """Stream events as they happen (SSE); `Last-Event-ID` continues a stream that broke."""
    begin = after if after is not None else home.feed.last
    if last_event_id is not None and last_event_id.isdecimal():
        begin = int(last_event_id)
    lines = _lines(home.feed, await home.feed.begin(begin), wanted)
    return Stream(lines, unread_s=home.limits.unread_s)


async def _lines(feed: Feed, after: int, wanted: Wanted) -> AsyncIterator[str]:
    yield "retry: 1000\n\n"
    async for batch in feed.follow(after, wanted, beat_s=_BEAT_S):
        yield "".join(map(feed.text, batch.events)) or f": {batch.last}\n\n"


def message(event: RecordedEvent) -> str:
    """Return an event as a stream sends it."""
    data = json.dumps(event_document(event).model_dump(mode="json", by_alias=True), ensure_ascii=False)
    return f"id: {event.n}\nevent: {event.type}\ndata: {data}\n\n"
