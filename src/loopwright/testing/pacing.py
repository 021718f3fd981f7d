"""Hold a coroutine back at each of its awaits, so that a simulation decides who goes on next."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any


class Paced:
    """An awaitable that goes on from each await only when told to; it runs as a real task, which may be cancelled."""

    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        self._work = work
        self._gate: asyncio.Future[None] | None = None
        self._rest: asyncio.Future[None] | None = None
        self._free = False

    @property
    def is_ready(self) -> bool:
        """It could go on and is held back."""
        return self._gate is not None

    async def advance(self) -> None:
        """Let it run to its next await, or to its end."""
        assert self._gate is not None
        gate, self._gate = self._gate, None
        self._rest = asyncio.get_running_loop().create_future()
        gate.set_result(None)
        await self._rest

    def let_go(self) -> None:
        """Hold it back no more: it is being ended, and whoever ends it waits for its cleaning up."""
        self._free = True

    def rest(self) -> None:
        """Tell whoever let it advance that it came to an await, or to its end."""
        if self._rest is not None and not self._rest.done():
            self._rest.set_result(None)

    def __await__(self) -> Generator[Any, Any, None]:
        """Pass everything between the task and the coroutine, through the gate."""
        # Made here and not before: a task that is cancelled before its first step would never await it.
        steps = self._work().__await__()
        thrown: BaseException | None = None
        while True:
            if not self._free:
                self._gate = asyncio.get_running_loop().create_future()
                try:
                    yield from self._gate
                except asyncio.CancelledError as error:
                    # Whoever cancels a task waits for its end, above all a loop that shuts down.
                    self._gate = None
                    self._free = True
                    thrown = error
            try:
                awaited = next(steps) if thrown is None else steps.throw(thrown)
            except StopIteration:
                return
            thrown = None
            self.rest()
            try:
                yield awaited
            except BaseException as error:  # noqa: BLE001 - it is thrown into the coroutine above
                thrown = error
