"""Running blocking work in a thread without ever leaving it behind."""

import asyncio
import ctypes
import logging
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextvars import copy_context
from typing import TypeVar

import anyio

log = logging.getLogger(__name__)
_M_ARENA_MAX = -8
_ARENAS = 2

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


def share_memory() -> None:
    """Let all threads take memory from two pools: glibc makes one per thread, and each keeps what was freed in it."""
    if sys.platform == "linux":
        set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have no pools
        if set_option is not None:
            set_option(_M_ARENA_MAX, _ARENAS)
