"""Issues of a beads tracker, one JSON document a line: read as tasks, their status written back line by line."""

import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from loopwright.adapters.sources.beads import beads_found
from loopwright.adapters.sources.beads.bd import (
    ACTOR,
    MARKS,
    NO_WORK,
    RECORDS,
    STATUS,
    Bd,
    claimed_by,
    closing,
    commit_in,
    is_known,
    is_left,
    is_there,
    mark_of,
    tell,
)
from loopwright.adapters.sources.text.criteria import acceptance, lines_of
from loopwright.adapters.sources.text.json_edits import JsonEdits, opened, stamp
from loopwright.adapters.sources.text.located import MAX_NODES, Located, inner, line_of, plain, tables, words
from loopwright.adapters.sources.text.located_json import read_json
from loopwright.adapters.sources.text.meaning import fingerprint
from loopwright.adapters.sources.text.plan_file import decoded
from loopwright.adapters.sources.text.problems import Problems, Unreadable, check_graph, refuse
from loopwright.adapters.sources.text.reading import read_file
from loopwright.adapters.sources.text.reasons import reason_in, tell_reason, theirs
from loopwright.adapters.sources.text.schema_check import check_schema
from loopwright.config.nearest import did_you_mean, quoted
from loopwright.config.publish import SCHEMA_DIALECT
from loopwright.core.values.errors import BadPlan
from loopwright.ports import Files, ItemProgress, Mark, PlannedTask, PlannedWork, Progress, Source

FOLDER: Final = ".beads"
FILE: Final = "issues.jsonl"
OLDER: Final = "beads.jsonl"
"""What older trackers call the same file."""
EXPORT: Final = "bd export"
"""What stands for the file where the tracker's own program was asked."""
MAX_ISSUES: Final = 20_000
_CLOSED: Final = re.compile(rb'"status"\s*:\s*"closed"')
_BLOCKS: Final = "blocks"
_KINDS: Final = frozenset({_BLOCKS, "parent-child", "discovered-from", "related"})

_TEXT: Final[dict[str, Any]] = {"type": ["string", "null"], "maxLength": 200_000}
ISSUE: Final[dict[str, Any]] = {
    "$schema": SCHEMA_DIALECT,
    "title": "Loopwright: a line of a beads issues.jsonl",
    "type": "object",
    "required": ["id", "title"],
    "properties": {
        "id": {"type": "string", "minLength": 1, "maxLength": 128},
        "title": {"type": "string", "minLength": 1, "maxLength": 500},
        "description": _TEXT,
        "design": _TEXT,
        "acceptance_criteria": _TEXT,
        "notes": _TEXT,
        "status": {"type": "string", "minLength": 1, "maxLength": 100},
        "assignee": {"type": ["string", "null"], "maxLength": 500},
        "priority": {"type": "integer", "minimum": 0, "maximum": 4, "default": 2},
        "issue_type": {"type": ["string", "null"]},
        "dependencies": {
            "type": ["array", "null"],
            "items": {
                "type": ["object", "string"],
                "required": ["depends_on_id"],
                "properties": {"depends_on_id": {"type": "string"}, "type": {"type": ["string", "null"]}},
            },
        },
    },
}


class BeadsSource(Source):
    """Reads and writes `.beads/issues.jsonl`; with the tracker's own program, `write_to_program` is the way instead."""

    kind = "beads"
    usual_places = (".beads",)

    def recognises(self, place: Path) -> bool:
        """Take the folder `.beads`, whose tracker may keep no such file, and the file in it."""
        if place.is_dir():
            return place.name == FOLDER and (_file_in(place) is not None or self.has_program(place))
        return place.is_file() and (
            place.name == FILE or (place.name == OLDER and place.parent.name == FOLDER)
        )

    def canonical(self, place: Path) -> Path:
        """Return the folder `.beads` of its file, unless the folder means the tracker's program."""
        folder = place.parent
        is_same = folder.name == FOLDER and _file_in(folder) == place and not self.has_program(folder)
        return folder if is_same else place

    def files(self, place: Path) -> Files:
        """Return what the tracker's own program tells, or the one file."""
        if self.has_program(place):
            return {EXPORT: Bd(place.resolve().parent).exported()}
        path = _file_in(place) or place / FILE if place.is_dir() else place
        return {path.name: read_file(path)}

    def parse(self, files: Files, name: str) -> PlannedWork:
        """Return the issues as tasks, or raise `BadPlan` with located problems."""
        ((file, content),) = files.items()
        problems = Problems(name if name.endswith(file) else file if file == EXPORT else f"{name}/{file}")
        issues = _issues(content, problems)
        refuse(name, problems)
        edges = _edges(issues, problems)
        refuse(name, problems)
        tasks = tuple(_task(issues, key, needs) for key, needs in edges.items())
        for issue in (issues[key] for key in edges):
            status = _status(issue)
            if not is_known(status):
                known = f"such issues wait for you, as it is none of: {', '.join(MARKS)}"
                message = f"the status {quoted(status)} is unknown; {known}"
                problems.warn_once(f"status {status}", line_of(issue, "status"), "status", message)
        if not tasks:
            problems.warn(1, "", "there is no issue in it to work on")
        return PlannedWork(title="Issues", tasks=tasks, sha256=fingerprint(tasks), notes=problems.notes)

    def written(self, files: Files, progress: Progress) -> Files:
        """Return the file with the status of each issue that the progress knows."""
        ((name, content),) = files.items()
        lines = content.split(b"\n")
        is_done = b'"status":"done"' in content.replace(b" ", b"")
        closed = "done" if is_done and not _CLOSED.search(content) else "closed"
        for number, line in enumerate(lines):
            if line.strip():
                lines[number] = _told(line, number + 1, name, progress, closed)
        made = beads_found.written(b"\n".join(lines), progress)
        return {name: made} if made != content else {}

    def has_program(self, place: Path) -> bool:
        """Return whether the tracker has its program here; a user who names the file means the file."""
        return place.is_dir() and is_there()

    def write_to_program(self, place: Path, progress: Progress) -> bool:
        """Tell the tracker through its own program; say no when there is none, so that the file is to be written."""
        folder = place if place.is_dir() else place.parent
        return tell(folder.resolve().parent, progress)


def _file_in(folder: Path) -> Path | None:
    return next((path for name in (FILE, OLDER) if (path := folder / name).is_file()), None)


def _issues(content: bytes, problems: Problems) -> dict[str, Located]:
    """Return the issues by their ids; what cannot be read is noted at its line."""
    try:
        text = decoded(content)
    except Unreadable as broken:
        problems.note(broken.line or 1, "", broken.message)
        return {}
    found: dict[str, Located] = {}
    left = MAX_NODES
    for number, line in enumerate(text.split("\n"), 1):
        if problems.crowded:
            break  # what else is wrong is said when these are mended
        if not line.strip():
            continue
        if len(found) >= MAX_ISSUES or left < 0:
            problems.note(number, "", "too many issues, or too much in them")
            break
        try:
            issue = read_json(line, number)
        except Unreadable as broken:
            problems.note(broken.line or number, "", broken.message)
            continue
        left -= line.count(":") + line.count(",")
        if plain(issue, "_type", "issue") != "issue":
            continue  # a note that the tracker keeps beside its issues
        before = problems.count
        check_schema(issue, ISSUE, problems)
        key = words(issue, "id")
        if key in found:
            problems.note(number, "id", f"{quoted(key)} is already on line {found[key].line}")
        elif problems.count == before:
            found[key] = issue
    return found


def _status(issue: Located) -> str:
    return words(issue, "status") or "open"


def _needs(issue: Located, kind: str) -> list[str]:
    """Return the issues that this one names in dependencies of a kind; a bare id is one that blocks."""
    held = inner(issue, "dependencies")
    entries = held.value if held is not None and isinstance(held.value, list) else []
    bare = [one.text for one in entries if isinstance(one.value, str)] if kind == _BLOCKS else []
    named = (one for one in tables(held) if (words(one, "type") or _BLOCKS) == kind)
    return [*bare, *(words(one, "depends_on_id") for one in named)]


def _is_record(issue: Located) -> bool:
    return words(issue, "issue_type") in RECORDS


def _is_epic(issue: Located) -> bool:
    return words(issue, "issue_type") == "epic"


def _edges(issues: Mapping[str, Located], problems: Problems) -> dict[str, tuple[str, ...]]:
    """Return for each task what it waits for.

    An epic is a container and never a task. It is done when its issues are: an issue that waits for the epic waits for
    them, and they wait for whatever the epic waits for.
    """
    work = {
        key: issue
        for key, issue in issues.items()
        if _status(issue) not in NO_WORK and not _is_record(issue) and not beads_found.is_found(issue)
    }
    children: dict[str, list[str]] = {}
    edges: dict[str, tuple[str, ...]] = {}
    places = {key: (issue.line, "dependencies") for key, issue in work.items()}
    odd: dict[str, int] = {}
    absent: dict[str, int] = {}
    for key, issue in work.items():
        for parent in _needs(issue, "parent-child"):
            children.setdefault(parent, []).append(key)
        needs = dict.fromkeys(_needs(issue, _BLOCKS))
        # A deleted or pinned issue holds nothing up.
        edges[key] = tuple(need for need in needs if need in work)
        for need in needs:
            if need not in issues:
                absent.setdefault(need, issue.line)
        for one in tables(inner(issue, "dependencies")):
            kind = words(one, "type") or _BLOCKS
            if kind not in _KINDS:
                odd.setdefault(kind, issue.line)
    for kind, line in odd.items():
        problems.warn(line, "dependencies", f"those of the type {quoted(kind)} put nothing in order here")
    if absent:
        named = ", ".join(list(absent)[:10]) + (", …" if len(absent) > 10 else "")
        meant = did_you_mean(next(iter(absent)), tuple(work)) if len(work) <= 1000 else ""
        message = f"no issue is called {named}{meant}; Loopwright does not wait for it"
        problems.warn(next(iter(absent.values())), "dependencies", message)
    childless = [key for key in work if _is_epic(work[key]) and key not in children]
    for key in childless:
        if mark_of(_status(work[key])) is not Mark.DONE:
            problems.warn(work[key].line, "", f"the epic {quoted(key)} has no issues: it is not a task")
    check_graph(problems, edges, places, "issue")
    if problems.count:
        return {}
    containers = {key for key in work if _is_epic(work[key])}
    made: dict[str, tuple[str, ...]] = {}
    left = MAX_NODES
    for key, issue in work.items():
        if key not in containers:
            wanted = [*edges[key], *_inherited(issue, work, containers, edges)]
            made[key] = tuple(
                dict.fromkeys(each for need in wanted for each in _inside(need, children, containers))
            )
            left -= len(made[key])
            if left < 0:
                problems.note(issue.line, "dependencies", "too many of them, with those of epics counted in")
                return {}
    check_graph(problems, made, places, "issue")
    return made


def _inherited(
    issue: Located, issues: Mapping[str, Located], containers: set[str], edges: Mapping[str, tuple[str, ...]]
) -> list[str]:
    found: list[str] = []
    seen: set[str] = set()
    above = _needs(issue, "parent-child")
    while above:
        parent = above.pop()
        if parent in containers and parent not in seen:
            seen.add(parent)
            found += edges[parent]
            above += _needs(issues[parent], "parent-child")
    return found


def _inside(key: str, children: Mapping[str, list[str]], containers: set[str]) -> list[str]:
    """Return the issues that a container comes down to, or the issue itself."""
    found: list[str] = []
    seen: set[str] = set()
    below = [key]
    for each in below:
        if each in seen:
            continue
        seen.add(each)
        if each in containers:
            below += children.get(each, [])
        else:
            found.append(each)
    return found


def _task(issues: Mapping[str, Located], key: str, needs: tuple[str, ...]) -> PlannedTask:
    issue = issues[key]
    status, notes = _status(issue), str(plain(issue, "notes", ""))
    parts = [str(plain(issue, name, "")).strip() for name in ("description", "design")]
    origins = [f"Found while working on {origin}." for origin in _needs(issue, "discovered-from")]
    criteria = lines_of(str(plain(issue, "acceptance_criteria", "")))
    parents = [issues[parent] for parent in _needs(issue, "parent-child") if parent in issues]
    mark, reason = _standing(issue, status, notes)
    return PlannedTask(
        key=key,
        title=" ".join(words(issue, "title").split()),
        description="\n\n".join(part for part in (*parts, theirs(notes).strip(), *origins) if part),
        criteria=criteria,
        acceptance=acceptance(criteria),
        depends_on=needs,
        priority=25 * int(plain(issue, "priority", 2)),
        phase=words(parents[0], "title") if parents else "",
        type=str(plain(issue, "issue_type", "task")),
        mark=mark,
        reason=reason,
        commit=commit_in(str(plain(issue, "close_reason", ""))) if status == "closed" else None,
        line=issue.line,
    )


def _standing(issue: Located, status: str, notes: str) -> tuple[Mark, str]:
    """Return how an issue is marked, and why it waits for a person if it does."""
    if claimed := claimed_by(status, words(issue, "assignee")):
        return Mark.BLOCKED, claimed
    mark = mark_of(status)
    reasons = {"blocked": reason_in(notes), "deferred": "it is deferred"}
    return mark, reasons.get(status, f"its status is {status}") if mark is Mark.BLOCKED else ""


def _told(line: bytes, number: int, name: str, progress: Progress, closed: str) -> bytes:
    edits = opened(name, line, number)
    issue = edits.document
    item = progress.items.get(words(issue, "id"))
    if item is None or not isinstance(issue.value, dict):
        return line
    status = words(issue, "status") or "open"
    if status in NO_WORK:
        if item.mark in (Mark.DONE, Mark.SKIPPED):
            return line  # it is over in either way; trackers tidy up like this
        message = f"the status {quoted(status)} is none that can be changed"
        raise BadPlan(name, (f"{name}:{number}: {message}",))
    _tell(edits, item, status, progress.at, closed)
    return edits.bytes()


def _tell(edits: JsonEdits, item: ItemProgress, present: str, at: datetime, closed: str) -> None:
    """Write the progress of an issue; `closed` is this file's word for it."""
    issue = edits.document
    wanted = STATUS[item.mark]
    if is_left(present, words(issue, "assignee"), item):
        return
    if item.mark is Mark.BLOCKED and mark_of(present) is Mark.BLOCKED and present != "blocked":
        return  # its own status says why it waits
    tell_reason(edits, issue, item.reason if item.mark is Mark.BLOCKED else None)
    if mark_of(present) is MARKS[wanted]:
        return  # `hooked` and `deferred` say more than our words for the same
    edits.put(issue, "status", closed if wanted == "closed" else wanted)
    if wanted == "in_progress":
        edits.put(issue, "assignee", ACTOR)
    edits.put(issue, "updated_at", stamp(at))
    if wanted == "closed":
        edits.put(issue, "closed_at", stamp(item.ended_at or at))
        edits.put(issue, "close_reason", closing(item))
    else:
        edits.drop(issue, "closed_at")
        edits.drop(issue, "close_reason")
