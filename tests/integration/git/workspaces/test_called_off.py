"""Work in threads that is called off: whoever holds a lock for it holds it until the thread has come to its end."""

import asyncio
import threading

import pytest

from loopwright.adapters.machine.threads import to_the_end


async def test_who_is_called_off_waits_for_the_end_of_what_was_begun() -> None:
    begun, go, done = asyncio.Event(), threading.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def work() -> None:
        loop.call_soon_threadsafe(begun.set)
        go.wait()
        done.set()

    task = asyncio.create_task(to_the_end(work))
    await begun.wait()
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done(), "the thread is still at it"
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done.is_set()


async def test_who_was_called_off_stays_so_whatever_went_wrong_and_that_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun, go = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def work() -> None:
        loop.call_soon_threadsafe(begun.set)
        go.wait()
        raise OSError("the disk is full")

    task = asyncio.create_task(to_the_end(work))
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "the disk is full" in caplog.text
    assert await to_the_end(lambda: 7) == 7
