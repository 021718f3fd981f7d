"""The heartbeat: a small file that is overwritten in place, so that it needs no room on a full disk."""

from __future__ import annotations

import json
import os

from loopwright.keeper import places
from loopwright.keeper.processes import look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WIDTH = 1024
"""Every version of the file has this size: one write replaces it, and a reader finds one JSON text and blanks."""


def read_status(directory: str) -> dict[str, Any]:
    """Return what a keeper wrote last; nothing where it is not there or only half of it is."""
    try:
        with open(os.path.join(directory, places.STATUS), "rb") as file:
            content = json.load(file)
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


class Status:
    """What can be read about a living keeper without asking it."""

    def __init__(self, directory: str, run_id: str) -> None:
        # The file's existence says "started": it comes after the lock and before the child.
        path = os.path.join(directory, places.STATUS)
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self.content: dict[str, Any] = {"version": 1, "run_id": run_id, "state": "starting"}
        self._written = b""
        self._write()
        os.fsync(self._fd)

    def keeper_started(self) -> None:
        """Note who keeps the run: the process after the fork."""
        self.content["keeper"] = _identity(os.getpid())
        self._write()

    def child_started(self, pid: int, at: float, *, idle_enforced: bool) -> None:
        """Note the child."""
        self.content.update(
            state="running",
            child=_identity(pid),
            started_at=places.iso(at),
            idle_enforced=idle_enforced,
            last_sign_at=places.iso(at),
            lasted_s=0.0,
        )
        self._write()

    def child_ended(self, code: int, ended_by: str) -> None:
        """Note how the child ended, for a worker that finds us killed before the exit file is written."""
        self.content.update(state="ending", ended_by=ended_by, code=code)
        self._write()

    def beat(self, seen_at: dict[str, float], ending: str, lasted_s: float) -> None:
        """Show that the keeper lives, and when the run last did."""
        self.content["lasted_s"] = round(lasted_s, 1)
        if seen_at:
            self.content["signs"] = {kind: places.iso(round(at, 3)) for kind, at in seen_at.items()}
            self.content["last_sign_at"] = places.iso(round(max(seen_at.values()), 3))
        if ending:
            self.content.update(state="ending", ended_by=ending)
        self._write()

    def _write(self) -> None:
        text = json.dumps(self.content).encode().ljust(WIDTH - 1) + b"\n"
        if text == self._written:
            os.utime(self._fd)
            return
        os.pwrite(self._fd, text, 0)
        self._written = text


def _identity(pid: int) -> dict[str, int | None]:
    process = look(pid)
    return {"pid": pid, "start_time": process.started if process is not None else None}
