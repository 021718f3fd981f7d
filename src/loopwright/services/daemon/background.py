"""Start and end the daemon of a home in the background."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from loopwright.core.values.errors import CannotRun, Held
from loopwright.services.daemon.note import LOG, DaemonNote, is_alive, refuse_second, running

_START_S: Final = 60.0
_END_S: Final = 30.0
_LOOK_S: Final = 0.05


def start(home: Path, arguments: Sequence[str]) -> DaemonNote:
    """Start the daemon of a home and return its note once it answers; raise if one already runs."""
    refuse_second(home)
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    log = home / LOG
    with log.open("ab") as out:
        begin = out.tell()
        log.chmod(0o600)
        process = subprocess.Popen(
            [sys.executable, "-m", "loopwright.cli", "serve", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    until = time.monotonic() + _START_S
    while time.monotonic() < until:
        note = running(home)
        if note is not None and note.pid == process.pid:
            return note
        if process.poll() is not None:
            break
        time.sleep(_LOOK_S)
    said = log.read_bytes()[begin:].decode(errors="replace").strip().splitlines()
    errors = [one.removeprefix("error: ") for one in said if one.startswith("error: ")]
    why = (errors or said or ["it said nothing"])[-1]
    raise CannotRun(f"the daemon did not start: {why}; its log is {log}")


def end(home: Path) -> DaemonNote | None:
    """End the daemon of a home and return its note; None if none runs. Agents continue."""
    note = running(home)
    if note is None:
        return None
    os.kill(note.pid, signal.SIGTERM)
    until = time.monotonic() + _END_S
    while is_alive(note):
        if time.monotonic() > until:
            raise Held(
                f"the daemon (process {note.pid}) did not end within {_END_S:.0f} s",
                code="daemon_not_ended",
                hint=f"`kill -9 {note.pid}` ends it at once; agents continue and nothing is lost",
            )
        time.sleep(_LOOK_S)
    return note
