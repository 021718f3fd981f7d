"""Wait for a condition instead of for a length of time: as short as possible, and bounded."""

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

T = TypeVar("T")


def eventually(pred: Callable[[], T], timeout: float = 10.0, every: float = 0.02) -> T:
    """Return the first truthy answer of `pred`, or fail with its last answer."""
    deadline = time.monotonic() + timeout
    while not (answer := pred()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s: the last answer was {answer!r}")
        time.sleep(every)
    return answer


async def eventually_async(
    pred: Callable[[], T | Awaitable[T]], timeout: float = 10.0, every: float = 0.02
) -> T:
    """Do the same without blocking the event loop; `pred` may be a plain function or a coroutine function."""
    deadline = time.monotonic() + timeout
    while True:
        answer = pred()
        if isinstance(answer, Awaitable):
            answer = await answer
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s: the last answer was {answer!r}")
        await anyio.sleep(every)
