"""Time, chance, space on the disk, and places where a test may end the process."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Protocol

# Room on the disk that the home is on.


class Disk(Protocol):
    """Says how much room there is, and how much is taken."""

    def free(self) -> int:
        """Return how many bytes can still be written to the home."""

    def taken(self, *folders: Path) -> int:
        """Return how many bytes these folders take; what vanishes in the meantime does not count."""

    def recorded(self, run: Path) -> int:
        """Return how many bytes the recording in a run's folder takes."""

    def forget(self, run: Path, since: str) -> None:
        """Delete the recording in a run's folder, and leave a note of the day."""


class EndlessDisk:
    """Has room for everything."""

    def free(self) -> int:
        """Return more than anyone needs."""
        return 1 << 62

    def taken(self, *folders: Path) -> int:  # noqa: ARG002 - whatever is in there
        """Return nothing."""
        return 0

    def recorded(self, run: Path) -> int:  # noqa: ARG002 - whatever is in there
        """Return nothing."""
        return 0

    def forget(self, run: Path, since: str) -> None:
        """Forget nothing."""


class Clock(Protocol):
    """Time, and waiting for it."""

    def now(self) -> datetime:
        """Return the present moment, aware UTC."""

    def monotonic(self) -> float:
        """Return seconds that no clock change touches: for leases and limits within this process."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


Ids = Callable[[str], str]
"""Draws a new id for a prefix of `core.values.ids.Kind`."""


Failpoint = Callable[[str], None]
"""Called with a name before and after each effect; does nothing outside tests, where it may end the process."""


def no_failpoint(name: str) -> None:
    """Let every effect happen."""
