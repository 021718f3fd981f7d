"""`inspect`: all facts about a run, or about the project and a goal, in one packet."""

import asyncio
import os

from rich.markup import escape

from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json
from loopwright.services import inspection
from loopwright.services.inspection import Packet


def inspect(
    target: str | None = None, /, *, goal: str = "", markdown: bool = False, json: bool = False
) -> int:
    """Gather all facts about a run, or about this project and a goal, in one packet, and keep it.

    Parameters
    ----------
    target
        A run, or a task (its newest agent's run); default: this project.
    goal
        The goal, for a packet about the project.
    markdown
        Print the packet as Markdown.
    json
        Print the packet as JSON.
    """
    kept = asyncio.run(inspection.inspect(target, goal=goal))
    packet, path = kept.packet, kept.path
    if json:
        print_json({"packet": packet, "path": str(path)})
    elif markdown:
        console().print(escape(kept.markdown), end="", soft_wrap=True, highlight=False)
    else:
        console().print(f"{packet.packet_id}: {escape(_summary(packet))}")
        console().print(f"kept in {escape(os.path.relpath(path))}, and as Markdown beside it", style="dim")
    return ExitCode.VERIFIED


def _summary(packet: Packet) -> str:
    if packet.project is not None:
        gates = ", ".join(one["command"] for one in packet.project.gates) or "no check was found"
        return f"{packet.project.name}, {', '.join(packet.project.languages) or 'no language known'}; {gates}"
    key = packet.task.key if packet.task is not None else packet.run_id
    return f"{key}: {len(packet.events)} events, {len(packet.logs)} lines of its log"
