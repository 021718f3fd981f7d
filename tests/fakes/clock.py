"""A clock that stands still until it is told to go on."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final

START: Final = datetime(2030, 1, 1, tzinfo=UTC)


class FakeClock:
    """Time that only `advance` moves; sleepers wake, in order, when it reaches them."""

    def __init__(self, start: datetime = START) -> None:
        self._now = start
        self._ran = 0.0
        self._sleepers: list[tuple[datetime, int, asyncio.Future[None]]] = []
        self._drawn = 0

    def now(self) -> datetime:
        """Return the present moment of this clock."""
        return self._now

    def monotonic(self) -> float:
        """Return the seconds that were advanced: nobody who sets the date changes them."""
        return self._ran

    @property
    def sleepers(self) -> int:
        """How many tasks sleep."""
        return len(self._sleepers)

    @property
    def next_wake_at(self) -> datetime | None:
        """When the first sleeper is due, None when nobody sleeps."""
        return min(self._sleepers)[0] if self._sleepers else None

    def advance(self, seconds: float) -> None:
        """Move time forward and wake everyone who is due, the earliest first."""
        if seconds < 0:
            raise ValueError("time does not run backwards; use `step` for a clock that was set")
        self._ran += seconds
        self._now += timedelta(seconds=seconds)
        due = sorted(sleeper for sleeper in self._sleepers if sleeper[0] <= self._now)
        for _, _, woken in due:
            if not woken.done():
                woken.set_result(None)

    def step(self, seconds: float) -> None:
        """Set the clock, forward or back, without waking anyone: what a wall clock does when it is corrected."""
        self._now += timedelta(seconds=seconds)

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock was advanced that far."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        self._drawn += 1
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sleeper = (self._now + timedelta(seconds=seconds), self._drawn, woken)
        self._sleepers.append(sleeper)
        try:
            await woken
        finally:
            self._sleepers.remove(sleeper)
