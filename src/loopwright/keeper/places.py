"""The files of a run directory, and writing them so that a reader never sees half of one."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LOCK = "lock"
SPEC = "spec.json"
STATUS = "status.json"
EXIT = "exit.json"
SOCKET = "socket"
OUTPUT = "output"
WRITES = "writes.jsonl"
LOG = "keeper.log"
TMP = "tmp"
HOME = "home"
RESERVE = "reserve"
EXIT_RESERVE = "exit.reserved"
EARLIER = "earlier"

MARKER = "LOOPWRIGHT_RUN"
"""The variable that every process of a run inherits."""

# What the program's exit status tells the one who started it.
STARTED = 0
REFUSED = 1
HELD = 10
ENDED_ALREADY = 11

EXIT_RESERVE_BYTES = 16 * 1024
RESERVE_BYTES = 96 * 1024
SOCKET_PATH_LIMIT = 100


def segment_name(start: int) -> str:
    """Name the piece of output that begins at this position, so that names sort in order."""
    return f"{start:020d}"


def iso(moment: float | None) -> str | None:
    """Write a wall-clock moment as ISO 8601 in UTC."""
    if moment is None:
        return None
    whole = int(moment)
    micros = int((moment - whole) * 1_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{micros:06d}+00:00"


def steady() -> float:
    """Return seconds of a clock that ignores changes of the time of day and counts while the machine sleeps."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.clock_gettime(clock) if clock is not None else time.monotonic()


def write_all(fd: int, data: bytes) -> None:
    """Write every byte, or raise."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def sync_directory(directory: str) -> None:
    """Make names in a directory durable."""
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_json(directory: str, name: str, value: dict[str, Any]) -> None:
    """Replace a file with a JSON text, durably and in one step."""
    path = os.path.join(directory, name)
    temporary = f"{path}.{os.getpid()}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        write_all(fd, json.dumps(value).encode() + b"\n")
        os.fsync(fd)
    except OSError:
        os.unlink(temporary)
        raise
    finally:
        os.close(fd)
    os.rename(temporary, path)
    sync_directory(directory)


def reserve(directory: str, name: str, size: int) -> None:
    """Take real disk blocks now, to have them when the disk is full."""
    fd = os.open(os.path.join(directory, name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        if not _allocated(fd, size):
            # Only then are blocks chosen for what was written.
            write_all(fd, b"\0" * size)
            os.fsync(fd)
    finally:
        os.close(fd)


def _allocated(fd: int, size: int) -> bool:
    """Have the file system set blocks aside at once, without writing anything; False where it cannot."""
    if not hasattr(os, "posix_fallocate"):
        return False
    try:
        os.posix_fallocate(fd, 0, size)
    except OSError as problem:
        if problem.errno in (errno.EOPNOTSUPP, errno.EINVAL):
            return False
        raise
    return True


def write_exit(directory: str, value: dict[str, Any]) -> None:
    """Write the exit file into the blocks that were reserved for it, then give it its name."""
    temporary = os.path.join(directory, EXIT_RESERVE)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        data = json.dumps(value).encode() + b"\n"
        write_all(fd, data)
        os.ftruncate(fd, len(data))
        os.fsync(fd)
    finally:
        os.close(fd)
    os.rename(temporary, os.path.join(directory, EXIT))
    sync_directory(directory)


def remove(path: str) -> None:
    """Delete a file if it is there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def remove_tree(path: str) -> None:
    """Delete a folder with everything in it, also where its owner took away the right to; links are not followed.

    It goes level by level without recursion, so that no depth of folders can exhaust the stack.
    """
    if os.path.islink(path) or not os.path.isdir(path):
        # The owner of the folder may have replaced it, for example by a link to anywhere.
        remove(path)
        return
    folders = [path]
    for folder in folders:
        try:
            os.chmod(folder, stat.S_IRWXU)
            entries = list(os.scandir(folder))
        except FileNotFoundError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            else:
                remove(entry.path)
    for folder in reversed(folders):
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            continue


def take(lock: int, wait_s: float) -> bool:
    """Take a lock on an open file, waiting a little for its holder; return whether that worked."""
    until = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
        else:
            return True
