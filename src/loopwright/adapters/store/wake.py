"""Waking whoever waits for a change: the part inside one process, and what a way between processes must do."""

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from itertools import islice
from typing import Final, Protocol
from weakref import WeakKeyDictionary

Sleep = Callable[[float], Awaitable[None]]

_REMEMBERED: Final = 1000
"""How many commits are known by name. Whoever has not looked for longer is woken in any case."""


class Signal:
    """Counts commits and wakes the tasks that wait for the next one, so that none is missed.

    Each task has its own place: it is woken by every commit since its last `wait`, or since it first looked at the
    store. A task that never did either goes on from where the last waiter of the store stood.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._commits = 0
        self._told = 0
        self._seen: WeakKeyDictionary[asyncio.Task[object], int] = WeakKeyDictionary()
        # In the order of their coming, so that a simulation wakes them in the same order every time.
        self._waiting: dict[asyncio.Event, tuple[asyncio.AbstractEventLoop, Collection[str]]] = {}
        self._names: deque[str] = deque(maxlen=_REMEMBERED)

    def bump(self, name: str = "") -> None:
        """Count a commit, from any thread; one of another process has no name and wakes everybody."""
        with self._lock:
            self._commits += 1
            self._names.append(name)
            waiting = [
                (loop, event) for event, (loop, ignoring) in self._waiting.items() if name not in ignoring
            ]
        for loop, event in waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    def mark(self) -> None:
        """Note that the current task is about to look at the store."""
        task = asyncio.current_task()
        if task is not None:
            with self._lock:
                self._seen.setdefault(task, self._commits)

    async def wait(
        self, timeout: float, sleep: Sleep = asyncio.sleep, ignoring: Collection[str] = ()
    ) -> bool:
        """Wait for a commit that the current task has not been told of; say whether there was one in time."""
        event = asyncio.Event()
        with self._lock:
            if self._tell(ignoring):
                return True
            self._waiting[event] = (asyncio.get_running_loop(), ignoring)
        waits = [asyncio.ensure_future(event.wait()), asyncio.ensure_future(sleep(timeout))]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            with self._lock:
                del self._waiting[event]
        with self._lock:
            return self._tell(ignoring)

    def _tell(self, ignoring: Collection[str]) -> bool:
        task = asyncio.current_task()
        assert task is not None
        count = self._commits - self._seen.get(task, self._told)
        self._seen[task] = self._told = self._commits
        newest = islice(reversed(self._names), count)
        return count > len(self._names) or any(name not in ignoring for name in newest)


class Wake(Protocol):
    """A way for one process to wake the others on the same home."""

    def listen(self, signal: Signal) -> None:
        """Begin to bump the signal when another process committed; a second call does nothing."""

    def send(self) -> None:
        """Wake the other processes after a commit."""

    def close(self) -> None:
        """Stop listening."""
