"""Time, chance, and places where a test may end the process."""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol


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
