"""The file with the process and the address of a home's daemon."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import psutil

from loopwright.core.values.errors import Held

FILE: Final = "daemon.json"
LOG: Final = "daemon.log"
PORT: Final = 8377
"""Where a daemon listens unless you choose another port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonNote:
    """What a daemon writes about itself."""

    pid: int
    born: float
    """When the process was started: a later process with the same pid is another one."""
    url: str
    version: str
    started_at: str
    arguments: tuple[str, ...] = ()
    """The flags that it was started with; a restart uses them again."""


def write_note(home: Path, note: DaemonNote) -> None:
    """Write the note; only you can read it."""
    made = home / f".{FILE}.{os.getpid()}"
    made.write_text(json.dumps(asdict(note), indent=2) + "\n")
    made.chmod(0o600)
    made.replace(home / FILE)


def remove_note(home: Path) -> None:
    """Remove the note of this process."""
    note = _read(home)
    if note is not None and note.pid == os.getpid():
        (home / FILE).unlink(missing_ok=True)


def running(home: Path) -> DaemonNote | None:
    """Return the note of the daemon that runs in a home; None if none does."""
    note = _read(home)
    return note if note is not None and is_alive(note) else None


def refuse_second(home: Path) -> None:
    """Refuse another daemon in a home that has one."""
    if other := running(home):
        raise Held(
            f"process {other.pid} is the daemon of this home already; it listens on {other.url}",
            code="daemon_running",
            hint="`loopwright restart` replaces it, `loopwright down` ends it",
        )


def is_alive(note: DaemonNote) -> bool:
    """Return whether the process of a note still runs."""
    try:
        return abs(psutil.Process(note.pid).create_time() - note.born) < 1.0
    except psutil.Error:
        return False


def born() -> float:
    """Return when this process was made."""
    return float(psutil.Process().create_time())


def _read(home: Path) -> DaemonNote | None:
    try:
        said = json.loads((home / FILE).read_text())
        return DaemonNote(**{**said, "arguments": tuple(said["arguments"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None  # there is none, or a kill left half of one: the lock of the home decides which process works
