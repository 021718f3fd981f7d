"""A lock that one process holds, with a note for others that says who holds it. It ends with the process."""

import fcntl
import json
import os
import time
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

    def beat(self) -> None:
        """Set the time of the file to now, if this object holds the lock."""
        if self._fd is not None:
            now = time.time_ns()  # the system's own value would be the same for some milliseconds
            os.utime(self._fd, ns=(now, now))

    def beats(self) -> int:
        """Return the time of the file in nanoseconds, 0 if there is none."""
        try:
            return self._path.stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def end_holder(self) -> int | None:
        """Kill the process that holds the lock, and return its id; None if no such process has the file open here.

        A process of another container may have noted an id that is another process here.
        """
        # Every command loads this module, and only one that waits for a hung process needs the library.
        import psutil

        pid = (self.holder() or {}).get("pid")
        if not isinstance(pid, int):
            return None
        try:
            process = psutil.Process(pid)
            if os.path.realpath(self._path) not in {one.path for one in process.open_files()}:
                return None
            process.kill()
        except psutil.Error:
            return None
        return pid

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
