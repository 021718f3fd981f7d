"""Legs that tests hold, release and look at."""

import asyncio
from collections import Counter
from itertools import count

from tests.waiting import eventually_async

from loopwright.core.rows.model import Leg


class Legs:
    """Executes legs for an engine, and remembers what happened to each."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.dropped: list[str] = []
        self.errors: list[tuple[str, BaseException]] = []
        self.running: Counter[str] = Counter()
        self.most_at_once = 0
        self._held: dict[str, asyncio.Event] = {}
        self._failing: dict[str, BaseException] = {}
        self._numbers = count(1)

    def new(self, *, held: bool = False, raises: BaseException | None = None) -> Leg:
        """Make a leg; a held one runs until it is released."""
        leg = Leg(subject=f"att_{next(self._numbers)}", n=1, fence=7)
        if held:
            self._held[leg.id] = asyncio.Event()
        if raises is not None:
            self._failing[leg.id] = raises
        return leg

    def release(self, leg: Leg) -> None:
        """Let a held leg end."""
        self._held[leg.id].set()

    def on_error(self, leg: Leg, error: BaseException) -> None:
        """Remember what escaped a leg."""
        self.errors.append((leg.id, error))

    async def execute(self, leg: Leg) -> None:
        """Run a leg."""
        assert leg.fence == 7
        self.begun.append(leg.id)
        self.running[leg.id] += 1
        self.most_at_once = max(self.most_at_once, self.running.total())
        try:
            await asyncio.sleep(0)
            if leg.id in self._failing:
                raise self._failing[leg.id]
            if leg.id in self._held:
                await self._held[leg.id].wait()
            self.ended.append(leg.id)
        except asyncio.CancelledError:
            # Cleaning up takes a moment: whoever cancels has to wait for it.
            await asyncio.sleep(0.01)
            self.dropped.append(leg.id)
            raise
        finally:
            self.running[leg.id] -= 1

    async def see_begun(self, *legs: Leg) -> None:
        """Wait until all of these have begun."""
        await eventually_async(lambda: {leg.id for leg in legs} <= set(self.begun))

    async def see_ended(self, *legs: Leg, timeout: float = 10.0) -> None:
        """Wait until all of these have ended well."""
        await eventually_async(lambda: {leg.id for leg in legs} <= set(self.ended), timeout)
