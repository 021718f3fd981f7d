"""Interrupt work: the events that stop a leg, and the exception that ends its step."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


class Interrupts:
    """Tells the legs of this process that the user wants them to stop."""

    def __init__(self) -> None:
        self._events: dict[str, asyncio.Event] = {}

    def event(self, subject: str) -> asyncio.Event:
        """Return the event of one leg's subject."""
        return self._events.setdefault(subject, asyncio.Event())

    def forget(self, subject: str) -> None:
        """Forget a subject whose leg has ended."""
        self._events.pop(subject, None)

    def subjects(self) -> list[str]:
        """Return the subjects whose legs run in this process."""
        return list(self._events)

    def knows(self, subject: str) -> bool:
        """Return whether a leg of this subject runs in this process."""
        return subject in self._events

    def raise_for(self, subject: str) -> None:
        """Wake the leg, if it runs here."""
        if subject in self._events:
            self._events[subject].set()


class Interrupted(Exception):
    """The user requested the gate to stop; nothing was learned about the tree."""


# Ending tasks that are no longer awaited.


async def call_off(*tasks: "asyncio.Future[Any]") -> None:
    """Cancel tasks and wait for their end; raise what they failed with.

    Not by awaiting one under `suppress(CancelledError)`: that would also swallow a cancellation of the caller
    itself which comes in this exact moment, and it would continue as if no stop had been requested.
    """
    for task in tasks:
        task.cancel()
    for ended in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(ended, Exception):
            raise ended


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run work beside the block and wait for both; if the block fails, the work is cancelled."""
    task = asyncio.ensure_future(work)
    try:
        yield
        await task
    finally:
        await call_off(task)
