"""Our git processes that take locks, noted before they run: so it is known which locks a killed one left."""

import contextlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from loopwright.keeper.processes import SEES_PROCESSES, look

_SETTLED_S: Final = 1.0
"""A lock that is younger may be that of a git which lives: if the end of our process is not known, wait for it."""
_GRAIN_S: Final = 1.0
"""File systems and clocks differ by less."""


class Started:
    """The notes of one project, one file for each process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def note(self, pid: int, locks: Sequence[Path]) -> Path | None:
        """Note a process that was started and has not been told yet what to do; None when that is not possible.

        Then it goes without: what it leaves if it is killed is for a person to delete.
        """
        file = self._folder / f"{pid}-{time.time_ns()}.json"
        about = {"pid": pid, "started": _start_of(pid), "at": time.time(), "locks": list(map(str, locks))}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(about), encoding="ascii")
        except OSError:
            file.unlink(missing_ok=True)
            return None
        return file

    def ended(self, note: Path, code: int) -> None:
        """Forget a process that ended by itself and so let go of its locks; note when one was killed."""
        with contextlib.suppress(OSError):
            if code >= 0:
                note.unlink()
            else:
                about = json.loads(note.read_text(encoding="ascii"))
                note.write_text(json.dumps({**about, "died": time.time()}), encoding="ascii")

    def remove_left(self, locks: Sequence[Path]) -> bool:
        """Remove the locks that only one of our dead gits can have left; return whether there was one."""
        removed = False
        for lock in locks:
            with contextlib.suppress(OSError):
                made_at = lock.lstat().st_mtime
                if any(_can_have_made(lock, made_at, about) for about in self._notes()):
                    lock.unlink()
                    removed = True
        return removed

    def tidy(self) -> None:
        """Forget processes that are gone and left nothing: the process that started them was killed before it could."""
        for _ in self._notes():
            pass

    def _notes(self) -> Iterator[dict[str, Any]]:
        """Yield what is noted; what has left no lock is forgotten."""
        for file in sorted(self._folder.glob("*.json")):
            try:
                about = json.loads(file.read_text(encoding="ascii"))
            except (OSError, ValueError):
                continue  # just forgotten, or its writer was killed before the process was told what to do
            if any(map(os.path.lexists, about["locks"])) or _lives(about):
                yield about
            else:
                file.unlink(missing_ok=True)


_SHARED: Final = ("HEAD.lock", "packed-refs.lock")
"""The user's own git makes these too. They are ours only if we saw our process die."""


def _can_have_made(lock: Path, made_at: float, about: dict[str, Any]) -> bool:
    """Return whether a process that is dead may have made a lock, and no other one that lives."""
    if os.path.realpath(lock) not in map(os.path.realpath, about["locks"]) or _lives(about):
        return False
    if "died" not in about and lock.name in _SHARED:
        return False
    until = about.get("died", time.time() - _SETTLED_S - _GRAIN_S)
    return bool(about["at"] - _GRAIN_S <= made_at <= until + _GRAIN_S)


def _start_of(pid: int) -> int | None:
    process = look(pid)
    return process.started if process is not None else None


def _lives(about: dict[str, Any]) -> bool:
    if SEES_PROCESSES:
        process = look(about["pid"])
        return process is not None and not process.zombie and process.started == about["started"]
    try:
        os.kill(about["pid"], 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another process's: whether it is that of the note cannot be known
    return True
