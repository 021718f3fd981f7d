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
from loopwright.adapters.sources.beads.issue_graph import edges_of, named_in, status_of
from loopwright.adapters.sources.text.criteria import acceptance, lines_of
from loopwright.adapters.sources.text.json_edits import JsonEdits, opened, stamp
from loopwright.adapters.sources.text.located import MAX_NODES, Located, line_of, plain, words
from loopwright.adapters.sources.text.located_json import read_json
from loopwright.adapters.sources.text.meaning import fingerprint
from loopwright.adapters.sources.text.plan_file import decoded
from loopwright.adapters.sources.text.problems import Problems, Unreadable, refuse
from loopwright.adapters.sources.text.reading import read_file
from loopwright.adapters.sources.text.reasons import reason_in, tell_reason, theirs
from loopwright.adapters.sources.text.schema_check import check_schema
from loopwright.config.nearest import quoted
from loopwright.config.publish import SCHEMA_DIALECT
from loopwright.core.values.errors import BadPlan
from loopwright.ports import Files, ItemProgress, Mark, PlannedTask, PlannedWork, Progress, Source

FOLDER: Final = ".beads"
FILE: Final = "issues.jsonl"
OLDER: Final = "beads.jsonl"
"""What older trackers call the same file."""
EXPORT: Final = "bd export"
"""The name of what the tracker's own program exports."""
MAX_ISSUES: Final = 20_000
_CLOSED: Final = re.compile(rb'"status"\s*:\s*"closed"')

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
    format_name = "Beads issues"
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
        edges = edges_of(issues, problems)
        refuse(name, problems)
        tasks = tuple(_task(issues, key, needs) for key, needs in edges.items())
        for issue in (issues[key] for key in edges):
            status = status_of(issue)
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
            break  # the rest is reported once these are fixed
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


def _task(issues: Mapping[str, Located], key: str, needs: tuple[str, ...]) -> PlannedTask:
    issue = issues[key]
    status, notes = status_of(issue), str(plain(issue, "notes", ""))
    parts = [str(plain(issue, name, "")).strip() for name in ("description", "design")]
    origins = [f"Found while working on {origin}." for origin in named_in(issue, "discovered-from")]
    criteria = lines_of(str(plain(issue, "acceptance_criteria", "")))
    parents = [issues[parent] for parent in named_in(issue, "parent-child") if parent in issues]
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
    """Return how an issue is marked, and why it waits for the user if it does."""
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
            return line  # it has ended either way; trackers tidy up like this
        message = f"the status {quoted(status)} cannot be changed"
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
