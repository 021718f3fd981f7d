"""Ending what nobody waits for any more, without losing that the caller itself is to end."""

import asyncio

import pytest
from tests.cases import each_case

from loopwright.engine.attempt.landing_line import Line
from loopwright.engine.memory.interrupts import call_off


@each_case("later", range(8))
async def test_whoever_waits_in_a_line_ends_when_asked_to_at_any_moment(later: int) -> None:
    line = Line()

    async def watch() -> None:
        while True:
            await line.change(asyncio.Event())

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    line.tell()
    for _ in range(later):
        await asyncio.sleep(0)
    watching.cancel()
    done, _ = await asyncio.wait([watching], timeout=5)
    assert watching in done, "the cancellation was lost"


async def test_what_a_task_failed_with_is_told() -> None:
    async def fail() -> None:
        raise ValueError("no")

    failing, sleeping = asyncio.create_task(fail()), asyncio.create_task(asyncio.sleep(1000))
    await asyncio.sleep(0)
    with pytest.raises(ValueError, match="no"):
        await call_off(failing, sleeping)
    assert sleeping.cancelled()
