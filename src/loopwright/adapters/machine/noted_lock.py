"""A lock that one process holds, with a note for others that says who holds it. It ends with the process."""

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class NotedLock:
    """A file that at most one process holds locked, however that process ends."""

    def __init__(self, path: Path) -> None:
        """Take the file; it is made when the lock is first taken."""
        self._path = path
        self._fd: int | None = None

    def acquire(self, note: Mapping[str, Any]) -> bool:
        """Take the lock and leave a note for others; False when it is held."""
        if self._fd is not None:
            return True
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps(dict(note)).encode(), 0)
        self._fd = fd
        return True

    def holds(self) -> bool:
        """Return whether this object holds the lock."""
        return self._fd is not None

    def holder(self) -> Mapping[str, Any] | None:
        """Return the note of the live holder, None if no process holds the lock."""
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _note(os.pread(fd, 65536, 0))
        finally:
            os.close(fd)
        return None

    def release(self) -> None:
        """Let others in."""
        if self._fd is not None:
            os.close(self._fd)
        self._fd = None


def _note(text: bytes) -> Mapping[str, Any]:
    try:
        note = json.loads(text)
    except ValueError:
        return {}  # seen between taking the lock and writing the note
    return note if isinstance(note, dict) else {}
