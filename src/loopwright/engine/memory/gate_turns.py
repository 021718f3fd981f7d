"""Which gates of this process may run beside each other: all of them, unless one has to run alone."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from loopwright.engine.memory.interrupts import call_off


class GateTurns:
    """Lets gates run side by side, or one by itself. While one waits to be alone, no other begins."""

    def __init__(self) -> None:
        self._running = 0
        self._alone = 0
        """How many run alone, or wait to."""
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def turn(self, *, alone: bool, unless: asyncio.Event) -> AsyncIterator[None]:
        """Wait for a turn and hold it; once `unless` is set, nothing is waited for."""
        if alone:
            self._alone += 1
        try:
            while (self._running if alone else self._alone) and not unless.is_set():
                changed, stopped = (asyncio.ensure_future(one.wait()) for one in (self._changed, unless))
                try:
                    await asyncio.wait((changed, stopped), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    await call_off(changed, stopped)
            self._running += 1
            try:
                yield
            finally:
                self._running -= 1
        finally:
            self._alone -= alone
            # Those that wait now look again; those that come later wait for the next change.
            self._changed.set()
            self._changed = asyncio.Event()


# Trees that are being judged in this process, so that the same tree is not judged twice at once.


class Underway:
    """The trees that are being judged now. This only saves work: verdicts are in the rows."""

    def __init__(self) -> None:
        self._ends: dict[tuple[str, str], asyncio.Event] = {}
        self._waits: dict[tuple[str, str], tuple[str, str]] = {}

    @contextmanager
    def judging(self, plan_id: str, tree: str) -> Iterator[None]:
        """Mark a tree as being judged while the block runs."""
        key = (plan_id, tree)
        if key in self._ends:
            yield  # asked by two at the same time: the first one tells
            return
        self._ends[key] = asyncio.Event()
        try:
            yield
        finally:
            self._ends.pop(key).set()

    async def ended(self, plan_id: str, tree: str, *, asked_by: str, interrupt: asyncio.Event) -> bool:
        """Wait until another judgement of a tree has ended; False when there is none to wait for.

        Two that wait for each other would wait for ever, so neither does.
        """
        key, mine = (plan_id, tree), (plan_id, asked_by)
        end = self._ends.get(key)
        if end is None or interrupt.is_set() or self._leads_to(key, mine):
            return False
        self._waits[mine] = key
        waits = [asyncio.ensure_future(event.wait()) for event in (end, interrupt)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._waits.pop(mine, None)
            await call_off(*waits)
        return True

    def _leads_to(self, start: tuple[str, str], goal: tuple[str, str]) -> bool:
        at: tuple[str, str] | None = start
        while at is not None and at != goal:
            at = self._waits.get(at)
        return at == goal
