"""Room on the disk that the home is on."""

from pathlib import Path
from typing import Protocol


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
