"""The clock that tests move by hand."""

from datetime import timedelta

import anyio
import pytest
from tests.fakes.clock import START, FakeClock
from tests.waiting import eventually_async


async def test_sleepers_wake_in_order_when_time_reaches_them() -> None:
    clock = FakeClock()
    woken: list[str] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(name)

    async with anyio.create_task_group() as group:
        group.start_soon(sleeper, "late", 10.0)
        group.start_soon(sleeper, "early", 5.0)
        group.start_soon(sleeper, "never", 0.0)
        await eventually_async(lambda: clock.sleepers == 2)
        assert clock.next_wake_at == START + timedelta(seconds=5)
        clock.advance(4.999)
        await anyio.sleep(0)
        assert woken == ["never"]
        clock.advance(10)
    assert woken == ["never", "early", "late"]
    assert clock.sleepers == 0
    assert clock.next_wake_at is None


async def test_a_sleeper_that_is_cancelled_is_forgotten() -> None:
    clock = FakeClock()
    with anyio.move_on_after(0.01):
        await clock.sleep(5)
    assert clock.sleepers == 0
    clock.advance(10)


def test_a_clock_that_is_set_back_wakes_nobody_and_advancing_back_is_refused() -> None:
    clock = FakeClock()
    clock.step(-60)
    assert clock.now() == START - timedelta(minutes=1)
    with pytest.raises(ValueError, match="backwards"):
        clock.advance(-1)
