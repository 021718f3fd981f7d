"""The files in a project's `.loopwright/`: written atomically, never committed, safe to delete."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from loopwright.core.documents import document, readable
from loopwright.core.errors import BadId
from loopwright.core.happenings import RecordedEvent

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


def _folder(project: Path) -> Path:
    folder = project / FOLDER
    if not folder.is_dir():
        folder.mkdir()
    guard = folder / ".gitignore"
    if not guard.exists():
        # It ignores itself too: nothing of ours ever shows up in the user's status.
        _replace(guard, "*\n")
    return folder


def _replace(path: Path, text: str, *, durably: bool = True) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        if durably:
            file.flush()
            os.fsync(file.fileno())
    draft.replace(path)


def _last_number(path: Path, coming: Mapping[int, str]) -> int:
    """Return the number of the last event in a file before or among those that are coming; half a line is cut off.

    Whoever works in the checkout can add lines of their own. They neither hold ours up nor are they taken for ours.
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
    # From the end, where the last of ours nearly always is: the lines before it need not be read.
    for n, its_id in filter(None, map(_number, reversed(whole.splitlines()))):
        if n < first or coming.get(n) == its_id:
            return n
        newest = n if newest is None else newest
    # Only later ones: a whole file of them is none of ours; before the end of a long one, ours were written already.
    return newest if newest is not None and size > _TAIL else 0


def _number(line: bytes) -> tuple[int, str] | None:
    try:
        found = json.loads(line)
        return int(found["n"]), str(found["id"])
    except (ValueError, KeyError, TypeError):
        return None
