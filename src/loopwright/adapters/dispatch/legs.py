"""What every engine does with one leg, wherever it runs."""

import asyncio
from collections.abc import Callable

from loopwright.core.model import Leg
from loopwright.ports import Execute

OnError = Callable[[Leg, BaseException], None]
"""Called in the worker's event loop with each exception that escaped a leg; the leg has ended by then."""


async def run_leg(execute: Execute, leg: Leg) -> None:
    """Run a leg, and turn a cancellation that nobody asked for into an error that somebody hears of."""
    task = asyncio.current_task()
    assert task is not None
    try:
        await execute(leg)
    except asyncio.CancelledError as error:
        if task.cancelling():
            raise
        raise RuntimeError(f"leg {leg.id} was cancelled from inside") from error


def checked_slots(slots: int) -> int:
    """Return `slots` unchanged, or raise; a worker with none only controls."""
    if slots < 0:
        raise ValueError(f"slots must be 0 or more, not {slots}")
    return slots
