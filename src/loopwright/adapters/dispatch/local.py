"""The embedded engine: one worker, a task per leg in its event loop, no polling.

Nothing here survives the process. Rows, keepers and git do, and reconcile starts again what was running.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from loopwright.adapters.dispatch.legs import Endings, OnError, checked_slots, run_leg
from loopwright.core.rows.model import Leg
from loopwright.ports import Execute

REMEMBERED: Final = 10_000
"""How many ended legs are remembered. Forgetting one is harmless: the rows decide what runs, and a leg may be
run again; remembering only saves the work of finding out."""


class LocalEngine:
    """Runs legs in this process, at most `slots` at once, the others in the order in which they came."""

    def __init__(self, *, on_error: OnError) -> None:
        self._on_error = on_error
        self._execute: Execute | None = None
        self._worker_id = ""
        self._slots = 0
        self._waiting: dict[str, Leg] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._ended: dict[str, None] = {}
        self._endings = Endings()

    async def launch(self, execute: Execute, *, worker_id: str, slots: int) -> None:
        """Begin taking legs; after `close` it may be launched again under a new worker id."""
        if self._execute is not None:
            raise RuntimeError(f"the engine is already launched for {self._worker_id}")
        self._slots = checked_slots(slots)
        self._worker_id = worker_id
        self._execute = execute

    async def start(self, leg: Leg) -> None:
        """Run the leg as soon as a slot is free; do nothing when it is known already."""
        self._launched()
        if leg.id in self._waiting or leg.id in self._running or leg.id in self._ended:
            return
        self._waiting[leg.id] = leg
        self._fill()

    async def cancel(self, leg: Leg) -> None:
        """Stop driving the leg and return when it has cleaned up after itself."""
        self._launched()
        if self._waiting.pop(leg.id, None) is not None:
            self._remember(leg.id)
        elif (task := self._running.get(leg.id)) is not None:
            await self._endings.end([task])

    async def in_flight(self, owners: Sequence[str] | None = None) -> list[str]:
        """Return the ids of legs that are running or waiting; all of them are this worker's."""
        self._launched()
        if owners is not None and self._worker_id not in owners:
            return []
        return [*self._running, *self._waiting]

    async def owners(self) -> list[str]:
        """Return the workers that have legs in flight: this one, or none."""
        self._launched()
        return [self._worker_id] if self._running or self._waiting else []

    async def recover(self, owners: Sequence[str]) -> list[str]:  # noqa: ARG002 - nothing survives a process
        """Return nothing: the legs of a dead process died with it, and reconcile starts them again."""
        self._launched()
        return []

    async def close(self) -> None:
        """Drop every leg and return when each has cleaned up after itself; a dropped leg has not ended."""
        self._execute = None
        self._waiting.clear()
        tasks = list(self._running.values())
        self._running.clear()
        await self._endings.end(tasks)

    def _launched(self) -> Execute:
        if self._execute is None:
            raise RuntimeError("launch the engine first")
        return self._execute

    def _fill(self) -> None:
        while self._waiting and len(self._running) < self._slots:
            self._run(self._waiting.pop(next(iter(self._waiting))))

    def _run(self, leg: Leg) -> None:
        task = asyncio.create_task(run_leg(self._launched(), leg), name=f"leg {leg.id}")
        self._running[leg.id] = task
        task.add_done_callback(partial(self._settle, leg))

    def _settle(self, leg: Leg, task: asyncio.Task[None]) -> None:
        # A task that is no longer registered was dropped by `close`: its leg may be started again.
        if self._running.get(leg.id) is task:
            del self._running[leg.id]
            self._remember(leg.id)
            self._fill()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_error(leg, error)

    def _remember(self, leg_id: str) -> None:
        self._ended[leg_id] = None
        if len(self._ended) > REMEMBERED:
            del self._ended[next(iter(self._ended))]
