"""Running blocking work in a thread without ever leaving it behind."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import TypeVar

import anyio

T = TypeVar("T")


async def run_in(pool: Executor, work: Callable[[], T]) -> T:
    """Run `work` in the pool and wait for it.

    When the caller is cancelled, work that has not begun never does; work that has is waited for, so that nothing is
    still being written after the caller has gone.
    """
    future = pool.submit(work)
    done = asyncio.wrap_future(future)
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        if not future.cancel():
            await _finished(future, done)
        raise


async def _finished(future: "Future[T]", done: "asyncio.Future[T]") -> None:
    with anyio.CancelScope(shield=True):
        while not future.done():
            try:
                await asyncio.wait([done])
            except asyncio.CancelledError:
                continue  # cancelled once more: the first cancellation is raised when the work is finished
    if done.done() and not done.cancelled():
        done.exception()  # looked at, because nobody else will
