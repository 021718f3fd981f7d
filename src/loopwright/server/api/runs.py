"""Runs and their output."""

import json
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from pydantic import BaseModel, Field
from starlette.responses import StreamingResponse

from loopwright.core.rows.model import Run
from loopwright.core.values.documents import document, plain
from loopwright.core.values.states import RunState
from loopwright.server.api.events import LAST
from loopwright.server.api.plans import result_of
from loopwright.server.api.questions import check_answer
from loopwright.server.context import Home, Operator, Paging, Reader
from loopwright.server.plan_bodies import Result
from loopwright.server.shapes import (
    Camel,
    Logs,
    RunDocument,
    RunPage,
    SnakeRequest,
    logs_document,
    run_document,
)
from loopwright.server.streams import Stream
from loopwright.services.remote import questions, runs
from loopwright.services.remote.runs import LogPage

router = APIRouter(prefix="/api/runs", tags=["runs"])


class Respond(SnakeRequest):
    """An answer to the question of a run."""

    response: str = Field(max_length=20_000)


class Responded(BaseModel):
    """An accepted answer."""

    plan_id: str
    result: str


class Interrupt(SnakeRequest):
    """How to interrupt an agent."""

    note: str = Field(default="", max_length=20_000, description="What the next attempt should know.")


class RunDetail(RunDocument):
    """A run with all its facts."""

    project_id: str
    event_count: int
    updated_at: datetime
    details: dict[str, Any]


class RunEvent(Camel):
    """Something that happened in a run, or a line that it printed."""

    event_id: str
    run_id: str
    type: str
    timestamp: datetime | None = Field(
        description="Null for a line: programs do not say when they print one."
    )
    message: str
    level: str
    offset: int | None = Field(default=None, description="Of a line: its position in the output.")
    payload: dict[str, Any] = Field(default_factory=dict)


class RunEvents(Camel):
    """The history of a run, in order."""

    events: list[RunEvent]
    next_offset: int
    has_more: bool


Offset = Annotated[int, Query(ge=0, le=LAST)]


@router.get("")
async def list_runs(
    home: Home,
    caller: Reader,
    page: Paging,
    plan: str | None = None,
    status: Annotated[list[RunState] | None, Query()] = None,
) -> RunPage:
    """List the runs of a plan, or of all, the newest first."""
    found = await runs.list_runs(home.at, caller, page, plan_id=plan, states=tuple(status or ()))
    return RunPage(runs=list(map(run_document, found.items)), next=found.next)


@router.get("/{run_id}")
async def get_run(run_id: str, home: Home, caller: Reader) -> RunDetail:
    """Return all facts about a run."""
    record = await runs.get_run(home.at, caller, run_id)
    return RunDetail(
        **run_document(record.run, record.prompt).model_dump(by_alias=False),
        project_id=record.project_id,
        event_count=record.events,
        updated_at=_updated(record.run),
        details=document(record.view),
    )


@router.get("/{run_id}/logs")
async def get_logs(
    run_id: str,
    home: Home,
    caller: Reader,
    offset: Offset = 0,
    limit: Annotated[int, Query(ge=1, le=5000)] = 500,
) -> Logs:
    """Return the output of a run from a position."""
    return logs_document(await runs.run_log(home.at, caller, run_id, offset=offset, limit=limit))


@router.get("/{run_id}/logs/stream", response_class=StreamingResponse)
async def stream_logs(
    run_id: str,
    home: Home,
    caller: Reader,
    offset: Offset = 0,
    last_event_id: Annotated[str | None, Header(max_length=20)] = None,
) -> Stream:
    """Stream the output of a run until it ends (SSE); `Last-Event-ID` continues a broken stream."""
    begin = int(last_event_id) if last_event_id is not None and last_event_id.isdecimal() else offset
    await runs.run_log(home.at, caller, run_id, offset=begin, limit=1)  # raises if there is no such run
    pages = runs.follow_log(home.at, caller, run_id, begin)
    return Stream(_messages(pages), unread_s=home.limits.unread_s)


@router.get("/{run_id}/events")
async def list_events(
    run_id: str,
    home: Home,
    caller: Reader,
    offset: Offset = 0,
    limit: Annotated[int, Query(ge=1, le=5000)] = 500,
) -> RunEvents:
    """Return the events of a run and every line of its output, in order."""
    page = await runs.run_log(home.at, caller, run_id, offset=offset, limit=limit)
    recorded = [
        RunEvent(
            event_id=one.id,
            run_id=run_id,
            type=one.type,
            timestamp=one.at,
            message=one.type,
            level="info",
            payload=plain(one.payload),
        )
        for one in await runs.run_events(home.at, caller, run_id)
    ]
    first = [one for one in recorded if one.type == "run_started"] if offset == 0 else []
    last = [one for one in recorded if one.type != "run_started"] if page.ended else []
    lines = [
        RunEvent(
            event_id=f"{run_id}:{one.offset}",
            run_id=run_id,
            type="log",
            timestamp=None,
            message=one.text,
            level="error" if one.stream == "err" else "info",
            offset=one.offset,
        )
        for one in page.lines
    ]
    return RunEvents(events=[*first, *lines, *last], next_offset=page.next_offset, has_more=not page.ended)


@router.post("/{run_id}/respond")
async def respond(run_id: str, answer: Respond, home: Home, caller: Operator) -> Responded:
    """Answer the question that a run asked."""
    check_answer(answer.response)
    taken = await questions.respond(home.at, caller, run_id, answer.response)
    return Responded(plan_id=taken.plan_id, result=taken.command.result)


@router.post("/{run_id}/interrupt")
async def interrupt(run_id: str, home: Home, caller: Operator, how: Interrupt | None = None) -> Result:
    """End the agent of a run; its task begins again with the note, and no attempt is used up."""
    return result_of(await runs.interrupt(home.at, caller, run_id, how.note if how else ""))


async def _messages(pages: AsyncIterator[LogPage]) -> AsyncIterator[str]:
    yield "retry: 1000\n\n"
    async for page in pages:
        for one in page.lines:
            line = json.dumps(
                {"offset": one.offset, "stream": one.stream, "line": one.text}, ensure_ascii=False
            )
            yield f"id: {one.offset}\ndata: {line}\n\n"
        if page.ended:
            yield "event: end\ndata: {}\n\n"
        elif not page.lines:
            yield ": waiting\n\n"


def _updated(run: Run) -> datetime:
    return run.ended_at or run.started_at or run.created_at
