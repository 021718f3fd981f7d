"""Inspection packets."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field
from pydantic.alias_generators import to_camel
from starlette.responses import PlainTextResponse

from loopwright.server.context import Home, Operator, Paging, Reader
from loopwright.server.shapes import NEXT, SnakeRequest
from loopwright.services.remote import packets

router = APIRouter(prefix="/api/inspection", tags=["inspection"])

_AS_THEY_ARE = frozenset({"events", "texts"})
"""Parts whose names are data."""


class Inspect(SnakeRequest):
    """What to inspect in a project."""

    goal: str = Field(min_length=1, max_length=20_000)


class PacketPage(BaseModel):
    """Some packets, without their long parts."""

    packets: list[dict[str, Any]]
    next: str | None = NEXT


@router.post("/run/{run_id}")
async def inspect_run(run_id: str, home: Home, caller: Operator) -> dict[str, Any]:
    """Make a packet of a run."""
    return _camel(await packets.inspect_run(home.at, caller, run_id))


@router.post("/project/{project_id}")
async def inspect_project(project_id: str, wanted: Inspect, home: Home, caller: Operator) -> dict[str, Any]:
    """Make a packet of a project and a goal."""
    return _camel(await packets.inspect_project(home.at, caller, project_id, wanted.goal))


@router.get("")
async def list_packets(home: Home, caller: Reader, page: Paging, project: str | None = None) -> PacketPage:
    """List the packets, the newest first."""
    found = await packets.list_packets(home.at, caller, page, project)
    return PacketPage(packets=list(map(_camel, found.items)), next=found.next)


@router.get("/{packet_id}")
async def get_packet(packet_id: str, home: Home, caller: Reader) -> dict[str, Any]:
    """Return a packet."""
    return _camel(await packets.get_packet(home.at, caller, packet_id))


class Markdown(PlainTextResponse):
    """A text in Markdown."""

    media_type = "text/markdown"


@router.get("/{packet_id}/markdown", response_class=Markdown)
async def get_markdown(packet_id: str, home: Home, caller: Reader) -> Markdown:
    """Return a packet as Markdown."""
    text = await packets.packet_markdown(home.at, caller, packet_id)
    return Markdown(text)


def _camel(value: Mapping[str, Any]) -> dict[str, Any]:
    return {to_camel(name): one if name in _AS_THEY_ARE else _part(one) for name, one in value.items()}


def _part(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_part(one) for one in value]
    return _camel(value) if isinstance(value, Mapping) else value
