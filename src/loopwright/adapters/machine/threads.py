"""Running blocking work in a thread without ever leaving it behind."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextvars import copy_context
from typing import TypeVar

import anyio

log = logging.getLogger(__name__)

T = TypeVar("T")


async def run_in(pool: Executor, work: Callable[[], T]) -> T:
    """Run `work` in the pool, with the caller's context variables, and wait for it.

    When the caller is cancelled, work that has not begun never does; work that has is waited for, so that nothing is
    still being written after the caller has gone.
    """
    loop = asyncio.get_running_loop()
    future = pool.submit(copy_context().run, work)
    # One event instead of asyncio's own chain of futures, each of which takes one more turn of the loop.
    done = asyncio.Event()

    def tell(_: "Future[T]") -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(done.set)

    future.add_done_callback(tell)
    try:
        await done.wait()
    except asyncio.CancelledError:
        if not future.cancel():
            await _finished(future, done)
        raise
    return future.result()


async def to_the_end(work: Callable[[], T]) -> T:
    """Run `work` in a thread of the event loop's own and wait for its end, also when the caller is cancelled.

    For work that must not continue without the lock under which it began.
    """
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                continue  # cancelled once more
        if not task.cancelled() and (error := task.exception()) is not None:
            # A cancelled task must not continue as if nothing had happened.
            log.warning("failed after it was called off", exc_info=error)
        raise


async def _finished(future: "Future[T]", done: asyncio.Event) -> None:
    with anyio.CancelScope(shield=True):
        while not future.done():
            try:
                await done.wait()
            except asyncio.CancelledError:
                continue  # cancelled once more: the first cancellation is raised when the work is finished
