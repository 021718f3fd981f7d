"""The simulated cluster: the same seed gives the same run, and everything may go wrong on purpose."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.contracts.engine.legs import Legs

from loopwright.core.model import Leg
from loopwright.testing.seeded_engine import Faults, SeededEngine

SEEDS = range(20)


class Cluster:
    """Workers whose legs write each of their steps to one list."""

    def __init__(self, seed: int, faults: Faults | None, workers: int, slots: int) -> None:
        self.errors: list[BaseException] = []
        first = SeededEngine(seed, faults=faults, on_error=lambda _, error: self.errors.append(error))
        self.engines = [first, *(first.peer() for _ in range(workers - 1))]
        self.slots = slots
        self.story: list[str] = []

    async def join(self, number: int) -> None:
        async def execute(leg: Leg) -> None:
            for step in range(4):
                self.story.append(f"w{number} {leg.subject} {step}")
                await asyncio.sleep(0)

        await self.engines[number].launch(execute, worker_id=f"w{number}", slots=self.slots)

    def ended(self, leg: Leg) -> int:
        return sum(line.endswith(f" {leg.subject} 3") for line in self.story)


@asynccontextmanager
async def cluster(
    seed: int, *, faults: Faults | None = None, workers: int = 2, slots: int = 2
) -> AsyncIterator[Cluster]:
    made = Cluster(seed, faults, workers, slots)
    for number in range(workers):
        await made.join(number)
    try:
        yield made
    finally:
        for engine in made.engines:
            await engine.close()


def some_legs(count: int) -> list[Leg]:
    return [Leg(subject=f"att_{number}", n=1, fence=1) for number in range(count)]


async def story(seed: int, faults: Faults | None = None) -> list[str]:
    async with cluster(seed, faults=faults) as made:
        for leg in some_legs(6):
            await made.engines[0].start(leg)
        await made.engines[0].run_until_idle()
        return made.story


async def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    faults = Faults(lose=0.2, delay=0.3, duplicate=0.2)
    assert [await story(seed, faults) for seed in SEEDS] == [await story(seed, faults) for seed in SEEDS]
    assert len({tuple(await story(seed)) for seed in SEEDS}) == len(SEEDS)


async def test_nothing_moves_between_steps() -> None:
    async with cluster(1) as made:
        [leg] = some_legs(1)
        await made.engines[0].start(leg)
        for _ in range(50):
            await asyncio.sleep(0)
        assert made.story == []
        assert await made.engines[0].step()
        assert await made.engines[0].step()
        assert len(made.story) == 1
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(made.story) == 1
        assert await made.engines[1].run_until_idle() == 4
        assert not await made.engines[0].step()
        assert made.ended(leg) == 1


async def test_a_leg_that_waits_for_something_leaves_the_cluster_idle_until_it_happens() -> None:
    happened = asyncio.Event()
    done: list[str] = []

    async def execute(leg: Leg) -> None:
        async with asyncio.timeout(60):
            await happened.wait()
        done.append(leg.id)

    engine = SeededEngine(0, on_error=lambda leg, error: pytest.fail(f"{leg} {error!r}"))
    await engine.launch(execute, worker_id="w", slots=1)
    [leg] = some_legs(1)
    await engine.start(leg)
    await engine.run_until_idle()
    assert done == []
    happened.set()
    await engine.run_until_idle()
    assert done == [leg.id]
    await engine.close()


async def test_a_lost_start_is_forgotten_and_a_later_one_works() -> None:
    async with cluster(3, faults=Faults(lose=0.5)) as made:
        legs = some_legs(20)
        for leg in legs:
            await made.engines[0].start(leg)
        assert 0 < len(await made.engines[0].in_flight()) < 20
        while any(made.ended(leg) == 0 for leg in legs):
            for leg in legs:
                await made.engines[1].start(leg)
            await made.engines[0].run_until_idle()
        assert [made.ended(leg) for leg in legs] == [1] * 20


async def test_a_delayed_start_is_in_flight_and_runs_in_the_end() -> None:
    async with cluster(4, faults=Faults(delay=1.0, delay_steps=10)) as made:
        first, second = some_legs(2)
        await made.engines[0].start(first)
        await made.engines[0].start(first)
        await made.engines[0].start(second)
        assert await made.engines[0].in_flight() == [first.id, second.id]
        await made.engines[0].cancel(second)
        assert await made.engines[0].run_until_idle() > 4
        assert made.ended(first) == 1
        assert made.ended(second) == 0


async def test_a_doubled_start_runs_the_leg_twice() -> None:
    for seed in SEEDS:
        async with cluster(seed, faults=Faults(duplicate=1.0)) as made:
            legs = some_legs(3)
            for leg in legs:
                await made.engines[0].start(leg)
            await made.engines[0].run_until_idle()
            assert [made.ended(leg) for leg in legs] == [2] * 3
            assert await made.engines[0].in_flight() == await made.engines[0].owners() == []


async def test_the_second_run_of_a_doubled_leg_does_not_bring_the_leg_back() -> None:
    async with cluster(8, faults=Faults(duplicate=1.0), workers=1, slots=1) as made:
        [engine], [leg] = made.engines, some_legs(1)
        await engine.start(leg)
        while len(made.story) < 6:
            await engine.step()
        assert made.ended(leg) == 1
        assert await engine.in_flight() == await engine.owners() == []


@pytest.mark.parametrize("steps", range(1, 9))
async def test_the_legs_of_a_crashed_worker_run_again_elsewhere_once_recovered(steps: int) -> None:
    async with cluster(steps, workers=2, slots=1) as made:
        crashed, alive = made.engines
        legs = some_legs(3)
        for leg in legs:
            await crashed.start(leg)
        for _ in range(steps):
            await alive.step()
        owned = await alive.in_flight(["w0"])
        crashed.crash()
        told = len([line for line in made.story if line.startswith("w0")])
        await alive.run_until_idle()
        assert await alive.in_flight() == owned
        assert await alive.owners() == (["w0"] if owned else [])
        assert await alive.recover(["w0"]) == owned
        assert await alive.recover(["w0"]) == []
        await alive.run_until_idle()
        for leg in legs:
            again = [f"w1 {leg.subject} {step}" for step in range(4)]
            assert again == [line for line in made.story if line in again] or leg.id not in owned
            assert made.ended(leg) == 1 or leg.id in owned
        assert len([line for line in made.story if line.startswith("w0")]) == told


async def test_a_thawed_worker_goes_on_with_a_leg_that_was_given_to_another() -> None:
    async with cluster(5, workers=2, slots=1) as made:
        frozen, other = made.engines
        [leg] = some_legs(1)
        other.freeze()
        await frozen.start(leg)
        for _ in range(3):
            await frozen.step()
        other.thaw()
        frozen.freeze()
        assert await other.recover(["w0"]) == [leg.id]
        for _ in range(2):
            await other.step()
        other.freeze()
        frozen.thaw()
        await other.run_until_idle()
        assert made.ended(leg) == 1
        # The zombie has ended, the leg has not.
        assert await other.in_flight(["w1"]) == [leg.id]
        other.thaw()
        await other.run_until_idle()
        assert made.ended(leg) == 2
        assert await other.in_flight() == []


async def test_cancelling_does_not_reach_a_frozen_worker(legs: Legs) -> None:
    engine = SeededEngine(6, on_error=legs.on_error)
    peer = engine.peer()
    await engine.launch(legs.execute, worker_id="w0", slots=1)
    await peer.launch(legs.execute, worker_id="w1", slots=0)
    leg = legs.new(held=True)
    await peer.start(leg)
    await peer.run_until_idle()
    engine.freeze()
    await peer.cancel(leg)
    assert legs.dropped == []
    assert await peer.in_flight() == []
    await engine.close()
    await peer.close()
    assert legs.dropped == [leg.id]


def test_a_loop_that_shuts_down_is_not_held_up_by_legs_that_are_held_back(legs: Legs) -> None:
    async def leave_it_running() -> None:
        engine = SeededEngine(9, on_error=legs.on_error)
        await engine.launch(legs.execute, worker_id="w", slots=1)
        await engine.start(legs.new())
        await engine.step()
        await engine.step()
        engine.crash()

    asyncio.run(leave_it_running())
    assert len(legs.dropped) == 1


async def test_a_cluster_that_never_rests_is_said_to_be_busy(legs: Legs) -> None:
    async def execute(_: Leg) -> None:
        while True:
            await asyncio.sleep(0)

    engine = SeededEngine(7, on_error=legs.on_error)
    await engine.launch(execute, worker_id="w", slots=1)
    await engine.start(legs.new())
    with pytest.raises(AssertionError, match="still busy after 30 steps"):
        await engine.run_until_idle(limit=30)
    await engine.close()
