"""Which gates of this process may run beside each other: all of them, unless one has to run alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from loopwright.engine.memory.cancelling import call_off


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
            # Whoever waits now looks again; who comes later waits for the next change.
            self._changed.set()
            self._changed = asyncio.Event()
