"""What every engine does with one leg, wherever it runs."""

import asyncio
from collections.abc import Callable, Iterable
from weakref import WeakSet

from loopwright.core.rows.model import Leg
from loopwright.ports import Execute

OnError = Callable[[Leg, BaseException], None]
"""Called in the worker's event loop with each exception that escaped a leg; the leg has ended by then."""


async def run_leg(execute: Execute, leg: Leg) -> None:
    """Run a leg, and turn a cancellation that the worker did not ask for into an error."""
    task = asyncio.current_task()
    assert task is not None
    try:
        await execute(leg)
    except asyncio.CancelledError as error:
        if task.cancelling():
            raise
        raise RuntimeError(f"leg {leg.id} was cancelled from inside") from error


class Endings:
    """Ends the tasks of legs, each by a single cancellation: a second one would interrupt its cleaning up."""

    def __init__(self) -> None:
        self._told: WeakSet[asyncio.Task[None]] = WeakSet()

    async def end(self, tasks: Iterable[asyncio.Task[None]]) -> None:
        """Cancel the tasks, and return when each has cleaned up after itself."""
        ending = list(tasks)
        for task in ending:
            if task not in self._told:
                self._told.add(task)
                task.cancel()
        if ending:
            await asyncio.wait(ending)

    def asked(self, task: asyncio.Task[None]) -> bool:
        """Return whether a task was ended from here: one that was cancelled otherwise ends with its event loop."""
        return task in self._told


def checked_slots(slots: int) -> int:
    """Return `slots` unchanged, or raise; a worker with none only controls."""
    if slots < 0:
        raise ValueError(f"slots must be 0 or more, not {slots}")
    return slots
