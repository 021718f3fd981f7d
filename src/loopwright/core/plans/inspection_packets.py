"""Inspection packets: what the user or a planner needs to know about a run, or about a project and a goal.

Each part and the whole packet are bounded, and the packet names what was cut.
"""

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import datetime
from typing import Any, Final, TypeVar

from loopwright.core.values.documents import plain

VERSION: Final = "1.1"
MOST_EVENTS: Final = 500
MOST_LINES: Final = 500
LONGEST_LINE: Final = 2_000
LONGEST_TEXT: Final = 20_000
MOST_ENTRIES: Final = 400
MOST_QUESTIONS: Final = 100
LARGEST: Final = 1_000_000
"""The most characters of a whole packet as JSON, without line breaks and indents."""
_GO_FIRST: Final[Mapping[str, str]] = {
    "events": "older events",
    "clarifications": "older questions and answers",
    "open_questions": "older open questions",
    "logs": "older lines of the log",
}
"""The parts that are cut to make room, oldest entries first, in this order; other parts have their own limits."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line that a run printed."""

    stream: str
    line: str
    timestamp: str = ""
    """The time that the line itself contains: most agents that print JSON add one; a recording has no time per line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketTask:
    """The task that a run was for."""

    task_id: str | None
    key: str
    title: str
    prompt: str
    state: str
    started_at: datetime | None = None
    ended_at: datetime | None = None
    result: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketProject:
    """The current state of a project."""

    name: str
    languages: tuple[str, ...] = ()
    setup: str = ""
    gates: tuple[Mapping[str, str], ...] = ()
    """Possible checks: name, command, and the reason for the guess."""
    layout: tuple[str, ...] = ()
    """Folders with the number of their files, and the files at the top."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """README and instructions for agents, by the name of the file."""
    history: tuple[str, ...] = ()
    """The newest commits, one line each."""
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """A whole packet. Names are those of its JSON."""

    packet_id: str
    type: str
    """`task` for a run, `project` for a project and a goal."""
    generated_at: datetime
    generated_by: str
    goal: str = ""
    run_id: str | None = None
    plan_id: str | None = None
    project_id: str | None = None
    task: PacketTask | None = None
    project: PacketProject | None = None
    events: tuple[Mapping[str, Any], ...] = ()
    logs: tuple[LogLine, ...] = ()
    errors: tuple[str, ...] = ()
    clarifications: tuple[Mapping[str, str], ...] = ()
    """Earlier questions, with their answers."""
    open_questions: tuple[str, ...] = ()
    """What a planner has to decide, or ask."""
    cut: tuple[str, ...] = ()
    """What was left out because there was too much of it."""
    version: str = VERSION


def last_lines(lines: Iterable[T]) -> tuple[tuple[T, ...], str]:
    """Return the end of a log, and what was cut from it."""
    kept: deque[T] = deque(maxlen=MOST_LINES)
    count = 0
    for count, line in enumerate(lines, 1):  # noqa: B007 - the last one is the number
        kept.append(line)
    left = count - len(kept)
    return tuple(kept), f"{left} lines of the log before the last {MOST_LINES}" if left else ""


def bounded(text: str, limit: int = LONGEST_TEXT) -> str:
    """Return the start of a text."""
    return text if len(text) <= limit else text[:limit] + "\n[cut]"


def cleaned(packet: Packet, clean: Callable[[str], str]) -> Packet:
    """Return a packet with every text redacted first and cut after that: half of a secret would not be recognised."""
    made = _each_text(packet, clean)
    assert isinstance(made, Packet)
    return fitted(made)


def fitted(packet: Packet, largest: int = LARGEST) -> Packet:
    """Return a packet within the size limit, which names what was cut."""
    over = _size(packet) - largest
    kept: dict[str, Any] = {}
    cut = []
    for name, what in _GO_FIRST.items():
        items = getattr(packet, name)
        gone = 0
        while over > 0 and gone < len(items):
            over -= _size(items[gone]) + len(", ")
            gone += 1
        if gone:
            kept[name] = items[gone:]
            cut.append(f"{gone} {what}, because all of it would be too large")
    return replace(packet, **kept, cut=(*packet.cut, *cut)) if cut else packet


def _size(value: Any) -> int:
    return len(json.dumps(plain(value), ensure_ascii=False))


def moment_in(line: str) -> str:
    """Return the time in a line of JSON; None if it has none."""
    if not line.startswith("{") or '"timestamp"' not in line:
        return ""
    try:
        said = json.loads(line)["timestamp"]
        return datetime.fromisoformat(said).isoformat()
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""  # not JSON, or another kind of JSON


def _each_text(value: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return bounded(clean(value))
    if isinstance(value, Mapping):
        return {key: _each_text(one, clean) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_each_text(one, clean) for one in value)
    if isinstance(value, LogLine):
        return replace(value, line=bounded(clean(value.line), LONGEST_LINE))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{one.name: _each_text(getattr(value, one.name), clean) for one in fields(value)}
        )
    return value


def layout(paths: Iterable[str]) -> tuple[tuple[str, ...], str]:
    """Return the folders of two levels with their file counts, the files at the top, and what was cut."""
    counts: dict[str, int] = {}
    top: list[str] = []
    for path in paths:
        parts = path.split("/")
        if len(parts) == 1:
            top.append(path)
        for depth in range(1, min(len(parts), 3)):
            folder = "/".join(parts[:depth]) + "/"
            counts[folder] = counts.get(folder, 0) + 1
    rows = [f"{folder} ({count})" for folder, count in sorted(counts.items())]
    rows += sorted(top)
    left = len(rows) - MOST_ENTRIES
    return tuple(rows[:MOST_ENTRIES]), f"{left} more folders and files of the layout" if left > 0 else ""


def in_markdown(packet: Packet) -> str:
    """Return a packet for people, and for prompts."""
    parts = [f"# Inspection packet {packet.packet_id}", f"Made {packet.generated_at:%Y-%m-%d %H:%M} UTC."]
    if packet.goal:
        parts += ["## Goal", packet.goal]
    if packet.task is not None:
        parts += _of_task(packet.task)
    if packet.project is not None:
        parts += _of_project(packet.project)
    if packet.errors:
        parts += ["## Errors", _listed(packet.errors)]
    if packet.clarifications:
        asked = [f"{one.get('question', '')} -> {one.get('answer', '')}" for one in packet.clarifications]
        parts += ["## Asked and answered", _listed(asked)]
    if packet.open_questions:
        parts += ["## Open questions", _listed(packet.open_questions)]
    if packet.events:
        told = [f"{one.get('at', '')} {one.get('type', '')}" for one in packet.events]
        parts += ["## Events", _listed(told)]
    if packet.logs:
        parts += ["## Log", _fenced("\n".join(one.line for one in packet.logs))]
    if packet.cut:
        parts += ["## Not in here", _listed(packet.cut)]
    return "\n\n".join(parts) + "\n"


def _of_task(task: PacketTask) -> list[str]:
    told = [f"{name}: {value}" for name, value in (("state", task.state), ("result", task.result)) if value]
    return [f"## Task {task.key}: {task.title}", _listed(told), "### Prompt", _fenced(task.prompt)]


def _of_project(project: PacketProject) -> list[str]:
    told = [
        f"languages: {', '.join(project.languages) or 'none was recognised'}",
        *([f"setup: `{project.setup}`"] if project.setup else []),
        *(f"gate {one['name']}: `{one['command']}` ({one['why']})" for one in project.gates),
    ]
    parts = [f"## Project {project.name}", _listed(told), "### Layout", _fenced("\n".join(project.layout))]
    for name, text in project.texts.items():
        parts += [f"### {name}", _fenced(text)]
    if project.history:
        parts += ["### Newest commits", _fenced("\n".join(project.history))]
    return parts


def _listed(items: Iterable[str]) -> str:
    return "\n".join(f"- {' '.join(item.split())}" for item in items)


def _fenced(text: str) -> str:
    """Put a text between fences that are longer than any in it."""
    longest = max((len(run) for run in _ticks(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"


def _ticks(text: str) -> Iterable[str]:
    run = ""
    for char in text + " ":
        if char == "`":
            run += char
        elif run:
            yield run
            run = ""
