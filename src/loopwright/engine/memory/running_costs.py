"""The cost so far of agents that run in this process; rows have it only after their end."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio


class Ledger:
    """Keeps the newest sum of each run, and wakes all watchers when any of them grows."""

    def __init__(self) -> None:
        self._sums: dict[str, int] = {}
        self._watching: dict[str, asyncio.Event] = {}

    def watch(self, run_id: str) -> "asyncio.Event":
        """Return the event that is set when a sum has grown."""
        import asyncio  # commands that only look have no use for it, and it takes a while to load

        return self._watching.setdefault(run_id, asyncio.Event())

    def note(self, run_id: str, micros: int) -> None:
        """Record what a run has cost so far."""
        self._sums[run_id] = micros
        for grown in self._watching.values():
            grown.set()

    def so_far(self, run_id: str) -> int:
        """Return what a run has cost as far as it is known here."""
        return self._sums.get(run_id, 0)

    def forget(self, run_id: str) -> None:
        """Forget a run: its cost is in its row now."""
        self._sums.pop(run_id, None)
        self._watching.pop(run_id, None)
