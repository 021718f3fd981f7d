"""Wait for a condition instead of for a length of time: as short as possible, and bounded.

Looking takes no more than an eighth of the time, so that it is not taken from what is waited for: on two processors
that makes more of a difference than to look often.
"""

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

T = TypeVar("T")

_REST = 7
_LONGEST_S = 0.5


def eventually(pred: Callable[[], T], timeout: float = 30.0, every: float = 0.02) -> T:
    """Return the first truthy answer of `pred`, or fail with its last answer."""
    deadline = time.monotonic() + timeout
    while True:
        began = time.monotonic()
        if answer := pred():
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s: the last answer was {answer!r}")
        time.sleep(_rest(began, every))


async def eventually_async(
    pred: Callable[[], T | Awaitable[T]], timeout: float = 30.0, every: float = 0.02
) -> T:
    """Do the same without blocking the event loop; `pred` may be a plain function or a coroutine function."""
    deadline = time.monotonic() + timeout
    while True:
        began = time.monotonic()
        answer = pred()
        if isinstance(answer, Awaitable):
            answer = await answer
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s: the last answer was {answer!r}")
        await anyio.sleep(_rest(began, every))


def _rest(began: float, every: float) -> float:
    return max(every, min(_LONGEST_S, (time.monotonic() - began) * _REST))
