"""What every engine promises, whoever runs the legs."""

import asyncio
import gc
from typing import Any

import pytest
from tests.contracts.engine.legs import Legs
from tests.waiting import eventually_async

from loopwright.adapters.dispatch.local import LocalEngine

Engine = Any


async def launch(engine: Engine, legs: Legs, *, slots: int = 2, worker_id: str = "worker_1") -> None:
    await engine.launch(legs.execute, worker_id=worker_id, slots=slots)


async def nothing_in_flight(engine: Engine) -> None:
    async def empty() -> bool:
        return await engine.in_flight() == []

    await eventually_async(empty)


async def test_a_started_leg_runs_once_and_is_then_forgotten(engine: Engine, legs: Legs) -> None:
    await launch(engine, legs)
    leg = legs.new()
    await engine.start(leg)
    await nothing_in_flight(engine)
    assert legs.begun == legs.ended == [leg.id]
    assert legs.errors == []


async def test_a_second_start_does_nothing_whatever_became_of_the_leg(engine: Engine, legs: Legs) -> None:
    await launch(engine, legs, slots=1)
    running, waiting, last = legs.new(held=True), legs.new(), legs.new()
    await asyncio.gather(*(engine.start(running) for _ in range(5)))
    await legs.see_begun(running)
    for leg in (running, waiting, waiting, running):
        await engine.start(leg)
    legs.release(running)
    await legs.see_ended(running, waiting)
    await engine.start(running)
    await engine.start(last)
    await legs.see_ended(last)
    await nothing_in_flight(engine)
    assert legs.begun == [running.id, waiting.id, last.id]


@pytest.mark.capability("C074")
async def test_no_more_legs_run_at_once_than_there_are_slots(engine: Engine, legs: Legs) -> None:
    await launch(engine, legs, slots=3)
    many = [legs.new(held=True) for _ in range(9)]
    for leg in many:
        await engine.start(leg)
    for done in range(9):
        await eventually_async(lambda done=done: len(legs.begun) == min(done + 3, 9))
        assert legs.most_at_once == 3
        legs.release(next(leg for leg in many if leg.id == legs.begun[done]))
    await legs.see_ended(*many)
    assert legs.most_at_once == 3


async def test_legs_begin_in_the_order_in_which_they_were_started(engine: Engine, legs: Legs) -> None:
    await launch(engine, legs, slots=1)
    many = [legs.new() for _ in range(6)]
    for leg in many:
        await engine.start(leg)
    await legs.see_ended(*many)
    assert legs.begun == [leg.id for leg in many]


async def test_a_worker_without_slots_takes_nothing(engine: Engine, legs: Legs) -> None:
    await launch(engine, legs, slots=0)
    leg = legs.new()
    await engine.start(leg)
    assert await engine.in_flight() == [leg.id]
    assert legs.begun == []
    with pytest.raises(ValueError, match="slots must be 0 or more"):
        await LocalEngine(on_error=legs.on_error).launch(legs.execute, worker_id="w", slots=-1)


async def test_cancelling_stops_a_running_leg_and_waits_until_it_has_cleaned_up(
    engine: Engine, legs: Legs
) -> None:
    await launch(engine, legs)
    cancelled, other = legs.new(held=True), legs.new(held=True)
    await engine.start(cancelled)
    await engine.start(other)
    await legs.see_begun(cancelled, other)
    # Twice at once: the second call must not interrupt the cleaning up that the first one waits for.
    await asyncio.gather(engine.cancel(cancelled), engine.cancel(cancelled))
    assert legs.dropped == [cancelled.id]
    assert await engine.in_flight() == [other.id]
    legs.release(cancelled)
    await engine.start(cancelled)
    legs.release(other)
    await nothing_in_flight(engine)
    assert sorted(legs.begun) == sorted([cancelled.id, other.id])
    assert legs.ended == [other.id]
    assert legs.errors == []


async def test_a_leg_that_is_cancelled_while_it_waits_never_begins(engine: Engine, legs: Legs) -> None:
    await launch(engine, legs, slots=1)
    first, second, third = legs.new(held=True), legs.new(), legs.new()
    for leg in (first, second, third):
        await engine.start(leg)
    await legs.see_begun(first)
    await engine.cancel(second)
    assert set(await engine.in_flight()) == {first.id, third.id}
    await engine.start(second)
    legs.release(first)
    await legs.see_ended(third)
    await nothing_in_flight(engine)
    assert legs.begun == [first.id, third.id]


async def test_cancelling_a_leg_that_nobody_started_or_that_has_ended_does_nothing(
    engine: Engine, legs: Legs
) -> None:
    await launch(engine, legs)
    leg = legs.new()
    await engine.cancel(leg)
    await engine.start(leg)
    await legs.see_ended(leg)
    await nothing_in_flight(engine)
    await engine.cancel(leg)
    assert legs.dropped == []


async def test_legs_in_flight_are_listed_and_told_apart_by_owner(engine: Engine, legs: Legs) -> None:
    await launch(engine, legs, slots=1)
    assert await engine.in_flight() == []
    assert await engine.owners() == []
    running, waiting = legs.new(held=True), legs.new()
    await engine.start(running)
    await legs.see_begun(running)
    await engine.start(waiting)
    assert set(await engine.in_flight()) == {running.id, waiting.id}
    assert running.id in await engine.in_flight(["worker_1", "worker_2"])
    assert await engine.in_flight(["worker_2"]) == []
    assert await engine.in_flight([]) == []
    assert await engine.owners() == ["worker_1"]


async def test_recovering_touches_neither_own_legs_nor_those_of_unknown_workers(
    engine: Engine, legs: Legs
) -> None:
    await launch(engine, legs)
    leg = legs.new(held=True)
    await engine.start(leg)
    await legs.see_begun(leg)
    assert await engine.recover(["worker_1", "worker_2"]) == []
    assert await engine.recover([]) == []
    legs.release(leg)
    await nothing_in_flight(engine)
    assert legs.begun == legs.ended == [leg.id]


async def test_an_exception_ends_its_leg_is_reported_and_stops_no_other(
    engine: Engine, legs: Legs, caplog: pytest.LogCaptureFixture
) -> None:
    gc.collect()  # what other tests left behind is no concern of this one
    caplog.clear()
    await launch(engine, legs, slots=1)
    error = ValueError("broken in the middle")
    broken, after = legs.new(raises=error), legs.new()
    await engine.start(broken)
    await engine.start(after)
    await legs.see_ended(after)
    await nothing_in_flight(engine)
    assert legs.errors == [(broken.id, error)]
    await engine.start(broken)
    await nothing_in_flight(engine)
    assert legs.begun == [broken.id, after.id]
    # Reported once, and not a second time by an event loop that finds it unread.
    await engine.close()
    gc.collect()
    assert [record.message for record in caplog.records] == []


async def test_a_leg_that_cancels_itself_is_reported_too(engine: Engine, legs: Legs) -> None:
    await launch(engine, legs)
    leg = legs.new(raises=asyncio.CancelledError())
    await engine.start(leg)
    await eventually_async(lambda: legs.errors)
    await nothing_in_flight(engine)
    [(leg_id, error)] = legs.errors
    assert leg_id == leg.id
    assert "cancelled from inside" in str(error)


async def test_a_leg_may_start_another(engine: Engine, legs: Legs) -> None:
    first, second = legs.new(), legs.new()

    async def execute(leg: Any) -> None:
        await legs.execute(leg)
        if leg == first:
            await engine.start(second)

    await engine.launch(execute, worker_id="worker_1", slots=1)
    await engine.start(first)
    await legs.see_ended(first, second)


async def test_closing_drops_running_legs_and_they_run_again_under_a_new_incarnation(
    engine: Engine, legs: Legs
) -> None:
    await launch(engine, legs, slots=1)
    running, waiting = legs.new(held=True), legs.new()
    await engine.start(running)
    await legs.see_begun(running)
    await engine.start(waiting)
    await engine.close()
    assert legs.dropped == [running.id]
    assert legs.ended == []
    assert legs.errors == []
    await engine.close()

    legs.release(running)
    await launch(engine, legs, slots=1, worker_id="worker_2")
    recovered = await engine.recover(["worker_1"])
    assert recovered in ([], [running.id])
    await engine.start(running)
    await engine.start(waiting)
    await legs.see_ended(running, waiting)
    await nothing_in_flight(engine)
    assert sorted(legs.begun) == sorted([running.id, running.id, waiting.id])


async def test_nothing_works_before_launch_or_after_close(engine: Engine, legs: Legs) -> None:
    leg = legs.new()

    async def refused_everywhere() -> None:
        for call in (
            engine.start(leg),
            engine.cancel(leg),
            engine.in_flight(),
            engine.owners(),
            engine.recover(["w"]),
        ):
            with pytest.raises(RuntimeError, match="launch the engine first"):
                await call

    await refused_everywhere()
    await launch(engine, legs)
    with pytest.raises(RuntimeError, match="already"):
        await launch(engine, legs)
    await engine.close()
    await refused_everywhere()
    assert legs.begun == []


@pytest.mark.capability("C030")
@pytest.mark.parametrize("count", [40, pytest.param(200, marks=pytest.mark.long)])
async def test_two_loops_of_many_quick_legs_complete(engine: Engine, legs: Legs, count: int) -> None:
    await launch(engine, legs, slots=20)
    loops = [[legs.new() for _ in range(count)] for _ in range(2)]

    async def loop(many: list[Any]) -> None:
        for leg in many:
            await engine.start(leg)
        await legs.see_ended(*many, timeout=60)

    await asyncio.gather(*map(loop, loops))
    await nothing_in_flight(engine)
    assert len(legs.begun) == len(set(legs.begun)) == 2 * count
    assert legs.most_at_once <= 20
