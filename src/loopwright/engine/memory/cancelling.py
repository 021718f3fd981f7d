"""Ending tasks that nobody waits for any more."""

import asyncio
from typing import Any


async def call_off(*tasks: "asyncio.Future[Any]") -> None:
    """Cancel tasks and wait for their end; what they failed with is raised.

    Not by awaiting one under `suppress(CancelledError)`: that would also swallow a cancellation of the caller itself
    which comes in this very moment, and it would go on as if nobody had asked it to stop.
    """
    for task in tasks:
        task.cancel()
    for ended in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(ended, Exception):
            raise ended
