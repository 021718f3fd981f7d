"""The numbered log of events for many readers: one poller reads the database, and every stream reads from it."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from loopwright.core.rows.events import RecordedEvent
from loopwright.services.homes.session import Session
from loopwright.services.remote import events

PAGE: Final = 500
_RECENT: Final = 5_000
"""How many events stay in memory; a stream that is further behind reads from the database."""
_TICK_S: Final = 5.0
"""How long the poller waits at most if no process tells it of a commit."""

Wanted = Callable[[RecordedEvent], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Some events, and how far the log was read to find them."""

    events: tuple[RecordedEvent, ...]
    last: int
    """Read on after this number."""


class Feed:
    """Reads the log once for all streams."""

    def __init__(self, at: Session) -> None:
        self._at = at
        self._recent: deque[RecordedEvent] = deque(maxlen=_RECENT)
        self._first = 1
        """Every event from this number on is in memory."""
        self._last = 0
        self._more = asyncio.Condition()

    @property
    def last(self) -> int:
        """The number of the newest event that was read."""
        return self._last

    async def run(self) -> None:
        """Read new events until this task is cancelled."""
        self._last = await events.last(self._at)
        self._first = self._last + 1
        async with self._more:
            self._more.notify_all()
        while True:
            await self._read()
            await events.changed(self._at, _TICK_S)

    async def _read(self) -> None:
        while True:
            found = await events.page(self._at, self._last, PAGE)
            if not found:
                return
            async with self._more:
                self._recent.extend(found)
                self._first = self._recent[0].n
                self._last = found[-1].n
                self._more.notify_all()

    async def after(self, n: int, wanted: Wanted, *, limit: int = PAGE) -> Batch:
        """Return the next wanted events after a number, possibly none."""
        found: Sequence[RecordedEvent]
        if n + 1 >= self._first:
            # The log has no gaps, so the place of a number in memory is known.
            found = list(islice(self._recent, n + 1 - self._first, None))
        else:
            found = await events.page(self._at, n, PAGE)
        kept: list[RecordedEvent] = []
        last = n
        for event in found:
            if len(kept) >= limit:
                break
            last = event.n
            if wanted(event):
                kept.append(event)
        return Batch(events=tuple(kept), last=last)

    async def wait(self, n: int, timeout: float) -> bool:
        """Wait until the log has an event after a number; False if it has none in time."""
        try:
            async with asyncio.timeout(timeout), self._more:
                await self._more.wait_for(lambda: self._last > n)
        except TimeoutError:
            return False
        return True

    async def follow(self, n: int, wanted: Wanted, *, beat_s: float) -> AsyncIterator[Batch]:
        """Yield batches for ever, an empty one when nothing happened for `beat_s` seconds."""
        while True:
            batch = await self.after(n, wanted)
            if batch.events:
                yield batch
            if batch.last > n:
                n = batch.last
                continue
            if not await self.wait(n, beat_s):
                yield batch
