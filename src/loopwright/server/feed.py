"""The numbered log of events for many readers: one poller reads the database, and every stream reads from it."""

import asyncio
import logging
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final

from loopwright.core.rows.events import RecordedEvent
from loopwright.services.homes.session import Session
from loopwright.services.remote import events
from loopwright.services.remote.events import Wanted

log = logging.getLogger(__name__)

PAGE: Final = 500
_RECENT: Final = 5_000
"""How many events stay in memory; a stream that is further behind reads from the database."""
_SPAN: Final = 20_000
"""How many events one read of the database covers, so that no read takes long."""
_TICK_S: Final = 5.0
"""The longest wait of the poller if no process reports a commit."""
_AGAIN_S: Final = 1.0
"""The wait before it asks an unreachable database again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Some events, and the position up to which the log was read."""

    events: tuple[RecordedEvent, ...]
    last: int
    """Read on after this number."""


class Feed:
    """Reads the log once for all streams."""

    def __init__(self, at: Session, render: Callable[[RecordedEvent], str], *, recent: int = _RECENT) -> None:
        self._at = at
        self._render = render
        self._texts: dict[int, str] = {}
        self._kept = recent
        self._recent: list[RecordedEvent] = []
        self._before = 0
        """Every event after this number is in memory."""
        self._last = 0
        self._is_closed = False
        self._more = asyncio.Condition()

    @property
    def last(self) -> int:
        """The number of the newest event that was read."""
        return self._last

    async def open(self) -> None:
        """Find the end of the log: no stream can begin before this."""
        self._last = self._before = await events.last(self._at)

    async def run(self) -> None:
        """Read new events until this task is cancelled; an unreachable database is asked again."""
        while True:
            try:
                await self._read()
                await events.changed(self._at, _TICK_S)
            except Exception:  # the boundary: streams continue as soon as the database is back
                log.exception("the log of events cannot be read; trying again")
                await asyncio.sleep(_AGAIN_S)

    async def close(self) -> None:
        """End every stream; clients connect again."""
        async with self._more:
            self._is_closed = True
            self._more.notify_all()

    async def _read(self) -> None:
        while found := await events.page(self._at, self._last, PAGE):
            async with self._more:
                self._recent += found
                self._last = found[-1].n
                self._trim()
                self._more.notify_all()

    def _trim(self) -> None:
        # By halves: moving the rest of a list costs as much as its length.
        if len(self._recent) < 2 * self._kept:
            return
        gone, self._recent = self._recent[: -self._kept], self._recent[-self._kept :]
        self._before = gone[-1].n
        for event in gone:
            self._texts.pop(event.n, None)

    async def begin(self, n: int) -> int:
        """Return where a reader that has seen the log up to `n` continues, at most the end of the log."""
        # Another daemon may have sent it more than this one has read.
        return n if n <= self._last else min(n, await events.last(self._at))

    async def after(self, n: int, wanted: Wanted, *, limit: int = PAGE) -> Batch:
        """Return the next wanted events after a number, possibly none."""
        if n < self._before:
            return await self._older(n, wanted, limit)
        kept: list[RecordedEvent] = []
        last = n
        for place in range(bisect_right(self._recent, n, key=lambda one: one.n), len(self._recent)):
            if len(kept) >= limit:
                break
            last = self._recent[place].n
            if wanted(self._recent[place]):
                kept.append(self._recent[place])
        return Batch(events=tuple(kept), last=last)

    async def _older(self, n: int, wanted: Wanted, limit: int) -> Batch:
        # The events of a plan have an index. Others are looked for in a part of the log at a time.
        upto = self._before if wanted.plan is not None else min(self._before, n + _SPAN)
        found = await events.page(self._at, n, limit, upto=upto, wanted=wanted)
        return Batch(events=tuple(found), last=found[-1].n if len(found) == limit else upto)

    async def wait(self, n: int, timeout: float) -> bool:
        """Wait until the log has an event after a number; False if it has none in time."""
        try:
            async with asyncio.timeout(timeout), self._more:
                await self._more.wait_for(lambda: self._last > n or self._is_closed)
        except TimeoutError:
            return False
        return self._last > n

    async def follow(self, n: int, wanted: Wanted, *, beat_s: float) -> AsyncIterator[Batch]:
        """Yield batches until the feed is closed, an empty one when nothing happened for `beat_s` seconds."""
        while not self._is_closed:
            batch = await self.after(n, wanted)
            if batch.events:
                yield batch
            if batch.last > n:
                n = batch.last
            elif not await self.wait(n, beat_s):
                yield batch

    def text(self, event: RecordedEvent) -> str:
        """Return an event as streams send it, written once for all of them."""
        if event.n <= self._before:
            return self._render(event)
        if event.n not in self._texts:
            self._texts[event.n] = self._render(event)
        return self._texts[event.n]
