"""Whether a live process holds the lock of a file. The lock ends with the process, whatever ended it."""

import fcntl
import os
from pathlib import Path


def is_locked(path: Path | str) -> bool:
    """Return whether a process holds the file's lock; False when there is no such file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # Shared, so that two processes that look at once do not take each other for the owner.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
