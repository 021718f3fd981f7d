"""Who may work in a home: one process that holds a lock, or many that hold leases."""

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from loopwright.adapters.machine.files import is_locked
from loopwright.adapters.machine.noted_lock import NotedLock

ALL: Final = "all"
"""What a worker serves and attends, instead of the one project that a `run` starts work for."""


class LockedMembership:
    """One worker at a time, known by a held file lock: it ends with the process, however that ends."""

    exclusive = True

    def __init__(self, home: Path) -> None:
        self._lock = NotedLock(home / "worker.lock")
        self._folder = home / "attended"
        self._attends: dict[str, int] = {}

    def acquire(self, note: Mapping[str, Any]) -> bool:
        """Take the lock and leave a note for others; False when it is held."""
        return self._lock.acquire(note)

    def holds(self) -> bool:
        """Return whether this process holds the lock."""
        return self._lock.holds()

    def holder(self) -> Mapping[str, Any] | None:
        """Return the note of the live holder, None if no process holds the lock."""
        return self._lock.holder()

    def beat(self) -> None:
        """Show in the time of the lock's file that this process makes progress."""
        self._lock.beat()

    def beats(self) -> int:
        """Return the time of the lock's file."""
        return self._lock.beats()

    def end_holder(self) -> int | None:
        """Kill the process that holds the lock, and return its id; None if it is not one of this machine."""
        return self._lock.end_holder()

    def release(self) -> None:
        """Let others in, and attend nothing any more."""
        self._lock.release()
        for fd in self._attends.values():
            os.close(fd)
        self._attends.clear()

    def serves(self, project_id: str) -> bool:
        """Return whether a live process starts the work of a project, or has another one start it."""
        holder = self.holder() or {}
        return holder.get("serves") in (ALL, project_id) or self.attended(project_id)

    def attend(self, project_id: str) -> None:
        """Hold a lock on a file of this process and the project, which ends with the process."""
        if project_id in self._attends:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        name = f"{project_id}.{uuid4().hex}"
        made = self._folder / f".{name}"
        fd = os.open(made, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        # Others see the file only now: one that is not locked belongs to a dead process, and is removed.
        made.rename(self._folder / name)
        self._attends[project_id] = fd

    def attended(self, project_id: str) -> bool:
        """Return whether a live process holds such a lock, for this project or for all of them."""
        return any(_is_live(path) for one in (project_id, ALL) for path in self._folder.glob(f"{one}.*"))


def _is_live(path: Path) -> bool:
    """Return whether the process that made the file lives; the file of a dead one is removed."""
    live = is_locked(path)
    if not live:
        path.unlink(missing_ok=True)
    return live


class LeasedMembership:
    """Any number of workers: their leases in the database tell who is alive."""

    exclusive = False

    def acquire(self, note: Mapping[str, Any]) -> bool:  # noqa: ARG002 - the port's shape
        """Let everyone in."""
        return True

    def holder(self) -> Mapping[str, Any] | None:
        """Return None: no single process holds such a home."""
        return None

    def beat(self) -> None:
        """Leave it to the lease."""

    def beats(self) -> int:
        """Return 0: no single process holds such a home."""
        return 0

    def end_holder(self) -> int | None:
        """Return None: no single process holds such a home."""
        return None

    def release(self) -> None:
        """Nothing was held."""

    def attend(self, project_id: str) -> None:
        """Leave it to the worker's row, which names its project."""

    def attended(self, project_id: str) -> bool:  # noqa: ARG002 - the port's shape
        """Leave it to the rows of the workers."""
        return False
