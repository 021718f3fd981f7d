"""How much disk space has to stay free, and how much one attempt may take."""

from dataclasses import dataclass, field
from pathlib import Path

from loopwright.ports import Disk, EndlessDisk


@dataclass(slots=True)
class Room:
    """How much of the disk has to stay free, and how much one attempt may take; None for no limit."""

    disk: Disk = field(default_factory=EndlessDisk)
    min_free: int | None = None
    max_workspace: int | None = None
    keep_recordings: int | None = None
    """How much all recordings of the home may take before the oldest of ended plans go."""
    is_low: bool = False
    """Whether that was said already, and not yet that there is room again."""

    @property
    def is_limited(self) -> bool:
        """Whether anything has to be looked at."""
        return self.min_free is not None or self.max_workspace is not None

    def lacking(self) -> str:
        """Return what is lacking for another agent; empty when there is room."""
        if self.min_free is None or (free := self.disk.free()) >= self.min_free:
            return ""
        return f"{in_words(free)} are free on the disk, and disk.min_free asks for {in_words(self.min_free)}"

    def excess(self, *folders: Path) -> str:
        """Return why a process that writes into these folders has to stop; empty when it may continue."""
        limit = self.max_workspace
        taken = self.disk.taken(*folders) if limit is not None or self.lacking() else 0
        if limit is not None and taken > limit:
            return f"the workspace takes {in_words(taken)}, and disk.max_workspace allows {in_words(limit)}"
        # The others need some space to finish. A process that took more than the reserve has to stop.
        if self.min_free is not None and taken > self.min_free and self.disk.free() < self.min_free // 4:
            return f"the disk is nearly full, and the workspace alone takes {in_words(taken)}"
        return ""


def in_words(size: int) -> str:
    """Return a size as people say it."""
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size >> 10} KB"
