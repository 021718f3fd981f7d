"""Inspection packets: make one of a run, or of a project and a goal, and find them again."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from loopwright.adapters.home.statefiles import state_file, state_files
from loopwright.core.rows.model import Plan, Project
from loopwright.core.values.access import Caller
from loopwright.core.values.documents import document
from loopwright.core.values.errors import NotFound
from loopwright.core.values.ids import Kind, is_id
from loopwright.core.values.state_folders import PACKETS
from loopwright.ports import Tx
from loopwright.services.homes.session import Session
from loopwright.services.inspection import inspect
from loopwright.services.remote.pages import Asked, Page, cut
from loopwright.services.remote.seen import acting, seen_project, seen_run

Packet = Mapping[str, Any]


async def inspect_run(at: Session, caller: Caller, run_id: str) -> Packet:
    """Make a packet of a run."""

    def load(tx: Tx) -> Project:
        run = seen_run(tx, caller, run_id)
        plan = tx.get(Plan, run.plan_id)
        assert plan is not None, "a run always has its plan"
        return seen_project(tx, caller, plan.project_id)

    project = await at.home.store.read(load)
    with acting(at, caller, project):
        return document((await inspect(run_id)).packet)


async def inspect_project(at: Session, caller: Caller, project_id: str, goal: str) -> Packet:
    """Make a packet of a project and a goal."""
    project = await at.home.store.read(lambda tx: seen_project(tx, caller, project_id))
    with acting(at, caller, project):
        return document((await inspect(goal=goal)).packet)


async def list_packets(
    at: Session, caller: Caller, page: Asked, project_id: str | None = None
) -> Page[Packet]:
    """Return the packets of a project, or of all, without their long parts; the newest first."""
    projects = await _projects(at, caller, project_id)
    found = await asyncio.to_thread(lambda: [one for project in projects for one in _kept(project)])
    named = ("packet_id", "type", "generated_at", "goal", "run_id", "plan_id", "project_id")

    def read(place: tuple[int, Path]) -> Packet:
        packet = _read(place[1]) or {"packet_id": place[1].stem}
        return {name: packet.get(name) for name in named}

    return cut(found, page, lambda one: (one[0], one[1].stem)).map(read)


def _kept(project: Project) -> Iterator[tuple[int, Path]]:
    """Yield when each packet was written, and its file."""
    for path in state_files(Path(project.path), PACKETS, "pkt_*.json"):
        try:
            yield path.stat().st_mtime_ns, path
        except FileNotFoundError:
            continue  # it was removed since it was listed


async def get_packet(at: Session, caller: Caller, packet_id: str) -> Packet:
    """Return a packet."""
    packet = _read(await packet_file(at, caller, packet_id))
    if packet is None:
        raise _missing(packet_id)
    return packet


async def packet_markdown(at: Session, caller: Caller, packet_id: str) -> str:
    """Return a packet as Markdown."""
    try:
        return (await packet_file(at, caller, packet_id)).with_suffix(".md").read_text(encoding="utf-8")
    except OSError as gone:
        raise _missing(packet_id) from gone


async def packet_file(at: Session, caller: Caller, packet_id: str, project_id: str | None = None) -> Path:
    """Return the file of a packet in one of the caller's projects."""
    if is_id(packet_id, Kind.PACKET):
        for project in await _projects(at, caller, project_id):
            path = state_file(Path(project.path), PACKETS, f"{packet_id}.json")
            if path.is_file():
                return path
    raise _missing(packet_id)


async def _projects(at: Session, caller: Caller, project_id: str | None) -> list[Project]:
    def load(tx: Tx) -> list[Project]:
        if project_id is not None:
            return [seen_project(tx, caller, project_id)]
        return [one for one in tx.find(Project, order_by=("id",)) if caller.sees(one.id)]

    return await at.home.store.read(load)


def _read(path: Path) -> Packet | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # it was removed or damaged since it was listed
    return found if isinstance(found, dict) else None


def _missing(packet_id: str) -> NotFound:
    return NotFound(f"there is no packet {packet_id}", code="packet_not_found")
