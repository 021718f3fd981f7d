"""What only this worker process knows: its writes into the user's checkout, costs so far, and disk limits."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loopwright.ports import Disk, EndlessDisk, Files, Tripwire

if TYPE_CHECKING:
    import asyncio


# How much disk space has to stay free, and how much one attempt may use.


@dataclass(slots=True)
class Room:
    """How much of the disk has to stay free, and how much one attempt may use; None for no limit."""

    disk: Disk = field(default_factory=EndlessDisk)
    min_free: int | None = None
    max_workspace: int | None = None
    keep_recordings: int | None = None
    """How large all recordings of the home may be before the oldest of ended plans are removed."""
    is_low: bool = False
    """Whether low space was already reported, and its end was not."""

    @property
    def is_limited(self) -> bool:
        """Whether anything has to be measured."""
        return self.min_free is not None or self.max_workspace is not None

    def lacking(self) -> str:
        """Return what is missing for another agent; empty if there is space."""
        if self.min_free is None or (free := self.disk.free()) >= self.min_free:
            return ""
        return f"{in_words(free)} are free on the disk, and disk.min_free asks for {in_words(self.min_free)}"

    def excess(self, *folders: Path) -> str:
        """Return why a process that writes into these folders has to stop; empty if it may continue."""
        limit = self.max_workspace
        taken = self.disk.taken(*folders) if limit is not None or self.lacking() else 0
        if limit is not None and taken > limit:
            return f"the workspace takes {in_words(taken)}, and disk.max_workspace allows {in_words(limit)}"
        # The others need some space to finish. A process that used more than the reserve has to stop.
        if self.min_free is not None and taken > self.min_free and self.disk.free() < self.min_free // 4:
            return f"the disk is nearly full, and the workspace alone takes {in_words(taken)}"
        return ""


def in_words(size: int) -> str:
    """Return a size in words."""
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size >> 10} KB"


# The cost so far of agents that run in this process; rows have it only after their end.


class Ledger:
    """Keeps the newest cost of each run, and wakes all watchers if any of them grows."""

    def __init__(self) -> None:
        self._sums: dict[str, int] = {}
        self._watching: dict[str, asyncio.Event] = {}

    def watch(self, run_id: str) -> "asyncio.Event":
        """Return the event that is set when a cost has grown."""
        import asyncio  # commands that only read do not need it, and importing it takes a while

        return self._watching.setdefault(run_id, asyncio.Event())

    def note(self, run_id: str, micros: int) -> None:
        """Record what a run has cost so far."""
        self._sums[run_id] = micros
        for grown in self._watching.values():
            grown.set()

    def so_far(self, run_id: str) -> int:
        """Return the known cost of a run so far."""
        return self._sums.get(run_id, 0)

    def forget(self, run_id: str) -> None:
        """Forget a run: its cost is in its row now."""
        self._sums.pop(run_id, None)
        self._watching.pop(run_id, None)


_LONGEST_NAME: Final = 100
_DRAFT: Final = re.compile(r"\.(.+)\.[a-z0-9_]{8}")
"""The name of the temporary file that replaces a file of this name."""


class OwnWrites:
    """The last content of each file that was written here."""

    def __init__(self) -> None:
        self._last: dict[Path, str] = {}

    def note(self, folder: Path, files: Files) -> None:
        """Remember what was just written."""
        self._last |= {(folder / name).resolve(): _digest(content) for name, content in files.items()}

    def spare(self, checkout: Path, before: Tripwire, after: Tripwire) -> tuple[Tripwire, Tripwire]:
        """Return two fingerprints without the files that differ only by this worker's own writes."""
        names = {*before.status, *after.status}
        changed = [name for name in names if before.status.get(name) != after.status.get(name)]
        mine = {
            name
            for name in changed
            if (name in after.status and self._is_mine((checkout / name).resolve()))
            or self._is_draft((checkout / name).resolve())
        }
        return _without(before, mine), _without(after, mine)

    def _is_draft(self, path: Path) -> bool:
        """Return whether a file that no longer exists was the temporary file of a write."""
        match = _DRAFT.fullmatch(path.name)
        beside = {one.name[:_LONGEST_NAME] for one in self._last if one.parent == path.parent}
        return match is not None and match[1] in beside and not path.exists()

    def _is_mine(self, path: Path) -> bool:
        if path not in self._last:
            return False
        try:
            return _digest(path.read_bytes()) == self._last[path]
        except OSError:
            return False


def _without(taken: Tripwire, names: Iterable[str]) -> Tripwire:
    return replace(taken, status={name: mark for name, mark in taken.status.items() if name not in names})


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
