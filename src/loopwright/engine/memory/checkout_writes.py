"""What this worker wrote into the user's checkout, so that no agent is blamed for it."""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from loopwright.ports import Files, Tripwire


class OwnWrites:
    """The last content of each file that was written here."""

    def __init__(self) -> None:
        self._last: dict[Path, str] = {}

    def note(self, folder: Path, files: Files) -> None:
        """Remember what was written just now."""
        self._last |= {(folder / name).resolve(): _digest(content) for name, content in files.items()}

    def spare(self, checkout: Path, before: Tripwire, after: Tripwire) -> tuple[Tripwire, Tripwire]:
        """Return two fingerprints without the files that differ and are as this worker left them."""
        changed = (name for name in after.status if before.status.get(name) != after.status[name])
        mine = {name for name in changed if self._is_mine((checkout / name).resolve())}
        return _without(before, mine), _without(after, mine)

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
