"""Trees that are being judged in this process, so that nobody begins the same a second time beside it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from loopwright.engine.memory.cancelling import call_off


class Underway:
    """Who judges which tree just now. It only saves work: what was found is in the rows."""

    def __init__(self) -> None:
        self._ends: dict[tuple[str, str], asyncio.Event] = {}
        self._waits: dict[tuple[str, str], tuple[str, str]] = {}

    @contextmanager
    def judging(self, plan_id: str, tree: str) -> Iterator[None]:
        """Let others know of it for as long as this lasts."""
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
        """Wait until another judgement of a tree is over; False when there is none to wait for.

        Nobody waits for someone who waits for them: each would wait for ever.
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
