"""The files in a project's `.loopwright/`: written atomically, never committed, safe to delete."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any, Final, TypeVar

from loopwright.adapters.store.codec import from_document
from loopwright.core.replies.discoveries import Discovery
from loopwright.core.rows.events import RecordedEvent
from loopwright.core.rows.model import (
    Attempt,
    Command,
    Finish,
    Loop,
    Plan,
    Project,
    Review,
    Run,
    Task,
    VerdictRecord,
)
from loopwright.core.rows.source_rows import SourceDebt, SourceMarks
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.documents import document, readable
from loopwright.core.values.errors import BadId, DamagedRow
from loopwright.core.values.ids import Kind, check
from loopwright.core.values.states import ENDED_RUN
from loopwright.ports import Exported, ExportedPlan

R = TypeVar("R")
_BRANCH = re.compile(r"loopwright/(?P<plan>plan_[0-9a-f-]{8,})/main")
_LISTED: Final[tuple[tuple[str, type[Any], Kind], ...]] = (
    ("tasks", Task, Kind.TASK),
    ("attempts", Attempt, Kind.ATTEMPT),
    ("runs", Run, Kind.RUN),
    ("reviews", Review, Kind.REVIEW),
    ("questions", Question, Kind.QUESTION),
    ("discoveries", Discovery, Kind.DISCOVERY),
    ("commands", Command, Kind.COMMAND),
)
"""Rows that the document of a plan has as lists, each with the prefix of its ids."""
FOLDER = ".loopwright"
_TAIL = 1_000_000
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_SUFFIX = re.compile(r"\.[a-z]{1,5}")


class ProjectStateFiles:
    """One folder per kind of document, one file per id, and one file of events per day."""

    def put(
        self, project: Path, kind: str, id: str, document: Mapping[str, Any], *, durably: bool = True
    ) -> Path:
        """Write one document atomically; an id that could leave the folder is refused."""
        return self.put_text(project, kind, f"{id}.json", readable(document), durably=durably)

    def put_text(self, project: Path, kind: str, name: str, text: str, *, durably: bool = True) -> Path:
        """Write one file atomically; a name that could leave the folder is refused."""
        stem, suffix = name[: name.rfind(".")], name[name.rfind(".") :]
        if not (_SAFE.fullmatch(kind) and _SAFE.fullmatch(stem) and _SUFFIX.fullmatch(suffix)):
            raise BadId(f"{kind}/{name} cannot be the name of a file")
        path = _folder(project) / kind / name
        path.parent.mkdir(exist_ok=True)
        _replace(path, text, durably=durably)
        return path

    def put_top(self, project: Path, name: str, text: str) -> None:
        """Write a file beside the folders, unless it is like that already."""
        _replace_changed(_folder(project) / name, text)

    def put_private(self, path: Path, text: str) -> None:
        """Write a file that only the user can read, unless it is like that already."""
        _replace_changed(path, text, mode=0o600)

    def append_events(self, project: Path, events: Sequence[RecordedEvent]) -> None:
        """Append events to the file of their day; those that are there already are not written again."""
        folder = _folder(project) / "events"
        folder.mkdir(exist_ok=True)
        for day, group in groupby(events, key=lambda event: event.at.date().isoformat()):
            path = folder / f"events-{day}.jsonl"
            mine = list(group)
            last = _last_number(path, {event.n: event.id for event in mine})
            lines = [
                json.dumps(document(event), sort_keys=True, ensure_ascii=False) + "\n"
                for event in mine
                if event.n > last
            ]
            if lines:
                with path.open("a", encoding="utf-8") as file:
                    file.write("".join(lines))
                    file.flush()
                    os.fsync(file.fileno())

    def exported(self, project: Path) -> Exported:
        """Return what was exported of a project, to make its rows again."""
        folder = project / FOLDER
        events = _events(folder / "events")
        runs, verdicts = _by_plan(folder / "runs", Run), _by_plan(folder / "verdicts", VerdictRecord)
        plans, unreadable = [], []
        for path in sorted((folder / "plans").glob("*.json")):
            try:
                plans.append(_plan(project, path, events, runs, verdicts))
            except (DamagedRow, BadId, ValueError, KeyError, TypeError, OSError) as wrong:
                unreadable.append(f"{path}: {wrong}")
        last = max((one.n for one in events), default=0)
        return Exported(plans=tuple(plans), unreadable=tuple(unreadable), last_event=last)


def _plan(
    project: Path,
    path: Path,
    events: Sequence[RecordedEvent],
    runs: Mapping[str, Sequence[Run]],
    verdicts: Mapping[str, Sequence[VerdictRecord]],
) -> ExportedPlan:
    """Read one plan; nothing in it may name a file or a ref, so every id is checked."""
    found = json.loads(path.read_text(encoding="utf-8"))
    plan = _row(Plan, Kind.PLAN, found)
    named = _BRANCH.fullmatch(plan.branch)
    if plan.id != path.stem or named is None or not plan.id.startswith(named["plan"]):
        raise BadId(f"it is not of the plan {path.stem}")
    own = found.get("project") or {
        "id": plan.project_id,
        "name": project.name,
        "created_at": found["created_at"],
    }
    rows: list[Any] = [
        _row(kind, prefix, one) for name, kind, prefix in _LISTED for one in found.get(name) or ()
    ]
    known = {row.id for row in rows if isinstance(row, Run)}
    # One that has begun since is left to those who look for it.
    rows += [one for one in runs.get(plan.id, ()) if one.id not in known and one.state in ENDED_RUN]
    rows += verdicts.get(plan.id, ())
    for end in found.get("finishes") or ():
        receipt = path.parent.parent / "receipts" / f"{check(end['id'], Kind.FINISH)}.json"
        text = receipt.read_text(encoding="utf-8") if receipt.exists() else ""
        rows.append(_row(Finish, Kind.FINISH, {**end, "receipt": text}))
    for name, kind in (("source_marks", SourceMarks), ("source_debt", SourceDebt)):
        if found.get(name):
            rows.append(_row(kind, Kind.PLAN, found[name]))
    if any(getattr(row, "plan_id", plan.id) != plan.id for row in rows):
        raise BadId("it has rows of another plan")
    mine = [one for one in events if one.plan == plan.id]
    last = found.get("event", mine[-1].n if mine else 0)
    return ExportedPlan(
        project=_row(Project, Kind.PROJECT, {**own, "path": str(project)}),
        loop=_row(Loop, Kind.LOOP, found["loop"]),
        plan=plan,
        rows=tuple(rows),
        events=tuple(one for one in mine if one.n <= last),
    )


def _row(kind: type[R], prefix: Kind, found: Mapping[str, Any]) -> R:
    check(found["id"], prefix)
    return from_document(kind, found)


def _by_plan(folder: Path, kind: type[Any]) -> dict[str, list[Any]]:
    """Read the documents of a folder; one that cannot be read is left out, and its row is unknown."""
    prefix = Kind.RUN if kind is Run else Kind.VERDICT
    found: dict[str, list[Any]] = {}
    for path in sorted(folder.glob("*.json")):
        with suppress(DamagedRow, BadId, ValueError, KeyError, TypeError, OSError):
            row = _row(kind, prefix, json.loads(path.read_text(encoding="utf-8")))
            found.setdefault(row.plan_id, []).append(row)
    return found


def _events(folder: Path) -> list[RecordedEvent]:
    """Read all events in order; one that was numbered again counts as it was written last."""
    found: dict[str, RecordedEvent] = {}
    for path in sorted(folder.glob("events-*.jsonl")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(DamagedRow, ValueError):  # half a line, or one that another process wrote
                event = from_document(RecordedEvent, json.loads(line))
                found[event.id] = event
    return sorted(found.values(), key=lambda one: one.n)


def _folder(project: Path) -> Path:
    folder = project / FOLDER
    if not folder.is_dir():
        folder.mkdir()
    guard = folder / ".gitignore"
    if not guard.exists():
        # It ignores itself too: Loopwright's files never show up in the user's status.
        _replace(guard, "*\n")
    return folder


def _replace_changed(path: Path, text: str, mode: int = 0o666) -> None:
    with suppress(FileNotFoundError, UnicodeDecodeError):
        if path.read_text(encoding="utf-8") == text:
            return
    _replace(path, text, durably=False, mode=mode)


def _replace(path: Path, text: str, *, durably: bool = True, mode: int = 0o666) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        if durably:
            file.flush()
            os.fsync(file.fileno())
    draft.replace(path)


def _last_number(path: Path, coming: Mapping[int, str]) -> int:
    """Return the number of the last event in a file before or among those that are coming; half a line is cut off.

    Others who work in the checkout can add lines. Those neither block ours nor count as ours.
    """
    if not path.exists():
        return 0
    with path.open("rb+") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL))
        tail = file.read()
        whole = tail[: tail.rfind(b"\n") + 1]
        if len(whole) < len(tail):
            file.truncate(size - (len(tail) - len(whole)))
    newest: int | None = None
    first = min(coming)
    # From the end, where our last line nearly always is: the lines before it need not be read.
    for n, its_id in filter(None, map(_number, reversed(whole.splitlines()))):
        if n < first or coming.get(n) == its_id:
            return n
        newest = n if newest is None else newest
    # Only later ones: a file of such lines is not from Loopwright; before the end of a long one, ours are written.
    return newest if newest is not None and size > _TAIL else 0


def _number(line: bytes) -> tuple[int, str] | None:
    try:
        found = json.loads(line)
        return int(found["n"]), str(found["id"])
    except (ValueError, KeyError, TypeError):
        return None
