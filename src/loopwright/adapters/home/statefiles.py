"""The files in the state folder of a project: written atomically, never committed, safe to delete."""

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path, PurePosixPath
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
from loopwright.core.values.state_folders import DEFAULT_FOLDER, STATE_FOLDERS
from loopwright.core.values.states import ENDED_RUN
from loopwright.ports import Exported, ExportedPlan, ExportedProject

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
_TAIL = 1_000_000
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_SUFFIX = re.compile(r"\.[a-z]{1,5}")
_CLAUDE: Final = PurePosixPath(STATE_FOLDERS[1])
_UNREADABLE: Final = (DamagedRow, BadId, ValueError, KeyError, TypeError, OSError)


class ProjectStateFiles:
    """One folder per kind of document, one file per id, and one file of events per day."""

    async def beside(self, write: Callable[[], object]) -> None:
        """Write in a thread, to the end: two that wrote the same file at once would mix it up."""
        # It loads asyncio, and `status` only wants to know where files are.
        from loopwright.adapters.machine.threads import to_the_end

        await to_the_end(write)

    def put(
        self, folder: Path, kind: str, id: str, document: Mapping[str, Any], *, durably: bool = True
    ) -> Path:
        """Write one document atomically; an id that could leave the folder is refused."""
        return self.put_text(folder, kind, f"{id}.json", readable(document), durably=durably)

    def put_text(self, folder: Path, kind: str, name: str, text: str, *, durably: bool = True) -> Path:
        """Write one file atomically; a name that could leave the folder is refused."""
        stem, suffix = name[: name.rfind(".")], name[name.rfind(".") :]
        if not (_SAFE.fullmatch(kind) and _SAFE.fullmatch(stem) and _SUFFIX.fullmatch(suffix)):
            raise BadId(f"{kind}/{name} cannot be the name of a file")
        path = _made(folder) / kind / name
        path.parent.mkdir(exist_ok=True)
        _replace(path, text, durably=durably)
        return path

    def put_top(self, folder: Path, name: str, text: str) -> None:
        """Write a file beside the folders, unless it is like that already."""
        _replace_changed(_made(folder) / name, text)

    def put_private(self, path: Path, text: str) -> None:
        """Write a file that only the user can read, unless it is like that already."""
        _replace_changed(path, text, mode=0o600)

    def append_events(self, folder: Path, events: Sequence[RecordedEvent]) -> None:
        """Append events to the file of their day; those that are there already are not written again."""
        folder = _made(folder) / "events"
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
        """Return what was exported of a repository's projects, to make their rows again."""
        events = _events(state_files(project, "events", "events-*.jsonl"))
        runs = _by_plan(state_files(project, "runs", "*.json"), Run)
        verdicts = _by_plan(state_files(project, "verdicts", "*.json"), VerdictRecord)
        plans: dict[str, ExportedPlan] = {}
        projects: dict[str, ExportedProject] = {}
        unreadable = []
        for path in state_files(project, "plans", "*.json"):
            try:
                one = _plan(project, path, events, runs, verdicts)
            except _UNREADABLE as wrong:
                unreadable.append(f"{path}: {wrong}")
            else:
                plans[one.plan.id] = one
        for path in state_files(project, "projects", "*.json"):
            try:
                own = _project(project, path)
            except _UNREADABLE as wrong:
                unreadable.append(f"{path}: {wrong}")
            else:
                projects[own.project.id] = own
        return Exported(
            plans=tuple(plans.values()),
            projects=tuple(projects.values()),
            unreadable=tuple(unreadable),
            last_event=max((one.n for one in events), default=0),
        )


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


def _project(root: Path, path: Path) -> ExportedProject:
    """Read a project and its loops."""
    found = json.loads(path.read_text(encoding="utf-8"))
    project = _row(Project, Kind.PROJECT, {**found, "path": str(root)})
    loops = [_row(Loop, Kind.LOOP, one) for one in found["loops"]]
    if project.id != path.stem or any(one.project_id != project.id for one in loops):
        raise BadId(f"it is not of the project {path.stem}")
    return ExportedProject(project=project, loops=tuple(loops))


def _row(kind: type[R], prefix: Kind, found: Mapping[str, Any]) -> R:
    check(found["id"], prefix)
    return from_document(kind, found)


def _by_plan(paths: Iterable[Path], kind: type[Any]) -> dict[str, list[Any]]:
    """Read documents; one that cannot be read is left out, and its row is unknown."""
    prefix = Kind.RUN if kind is Run else Kind.VERDICT
    found: dict[str, dict[str, Any]] = {}
    for path in paths:
        with suppress(*_UNREADABLE):
            row = _row(kind, prefix, json.loads(path.read_text(encoding="utf-8")))
            found.setdefault(row.plan_id, {})[row.id] = row
    return {plan_id: list(rows.values()) for plan_id, rows in found.items()}


def _events(paths: Iterable[Path]) -> list[RecordedEvent]:
    """Read all events in order; one that was numbered again counts as it was written last."""
    found: dict[str, RecordedEvent] = {}
    for path in paths:
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(DamagedRow, ValueError):  # half a line, or one that another process wrote
                event = from_document(RecordedEvent, json.loads(line))
                found[event.id] = event
    return sorted(found.values(), key=lambda one: one.n)


def state_file(root: Path, kind: str, name: str) -> Path:
    """Return the newest file of this name in the state folders of a repository, or where it would be."""
    # As text: a list of loops looks for many, and most loops have none.
    places = [f"{root}/{folder}/{kind}/{name}" for folder in STATE_FOLDERS]
    there = [(changed, place) for place in places if (changed := _changed_ns(place))]
    return Path(max(there)[1]) if there else root / DEFAULT_FOLDER / kind / name


def state_files(root: Path, kind: str, pattern: str) -> list[Path]:
    """Return the files of a kind in all state folders of a repository, of the same name the older one first."""
    found = [path for folder in STATE_FOLDERS for path in (root / folder / kind).glob(pattern)]
    return sorted(found, key=lambda path: (path.name, _changed_ns(path)))


def _changed_ns(path: Path | str) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - a path may be text here
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _made(folder: Path) -> Path:
    """Return a state folder that exists; the repository that it is in is never made."""
    if not folder.is_dir():
        if folder.parts[-2:] == _CLAUDE.parts:
            folder.parent.mkdir(exist_ok=True)
        folder.mkdir(exist_ok=True)
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
