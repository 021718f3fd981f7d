"""The simulated cluster: the same seed gives the same run, and everything may go wrong on purpose."""

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any

import pytest
from tests.fakes.seeded_engine import Faults, SeededEngine
from tests.fakes.virtual_loop import Process, VirtualLoop

from loopwright.core.rows.model import Leg

SEEDS = range(20)


def in_no_time(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine on a virtual loop."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


class Cluster:
    """Workers, each a process, whose legs write each of their steps to one list."""

    def __init__(self, seed: int, *, faults: Faults | None = None, workers: int = 2, slots: int = 2) -> None:
        self.errors: list[BaseException] = []
        first = SeededEngine(
            seed, faults=faults, on_error=lambda _, error: self.errors.append(error), host_id="h0"
        )
        self.engines = [first, *(first.peer(f"h{n}") for n in range(1, workers))]
        self.processes = [Process(f"w{n}") for n in range(workers)]
        self.slots = slots
        self.story: list[str] = []

    async def join(self) -> "Cluster":
        for n, process in enumerate(self.processes):
            await process.start(self._launch(n))
        return self

    async def _launch(self, n: int) -> None:
        async def execute(leg: Leg) -> None:
            for step in range(4):
                self.story.append(f"w{n} {leg.subject} {step}")
                await asyncio.sleep(1)

        await self.engines[n].launch(execute, worker_id=f"w{n}", slots=self.slots)

    def ended(self, leg: Leg) -> int:
        return sum(line.endswith(f" {leg.subject} 3") for line in self.story)

    async def leave(self) -> None:
        for process in self.processes:
            process.raise_from_the_dead()
        for engine in self.engines:
            await engine.close()
        await asyncio.sleep(100)
        assert self.errors == []


def some_legs(count: int, host_id: str | None = None) -> list[Leg]:
    return [Leg(subject=f"att_{number}", n=1, fence=1, host_id=host_id) for number in range(count)]


async def story(seed: int, faults: Faults | None = None) -> list[str]:
    cluster = await Cluster(seed, faults=faults).join()
    for leg in some_legs(8):
        await cluster.engines[0].start(leg)
    await asyncio.sleep(200)
    await cluster.leave()
    return cluster.story


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    faults = Faults(lose=0.2, delay=0.3, duplicate=0.2)
    first = [in_no_time(story(seed, faults)) for seed in SEEDS]
    assert first == [in_no_time(story(seed, faults)) for seed in SEEDS]
    assert len({tuple(one) for one in first}) == len(SEEDS)


def test_a_lost_start_is_forgotten_and_a_later_one_works() -> None:
    async def lose() -> None:
        cluster = await Cluster(3, faults=Faults(lose=0.5)).join()
        legs = some_legs(20)
        for leg in legs:
            await cluster.engines[0].start(leg)
        assert 0 < len(await cluster.engines[0].in_flight()) < 20
        while any(cluster.ended(leg) == 0 for leg in legs):
            for leg in legs:
                await cluster.engines[1].start(leg)
            await asyncio.sleep(5)
        assert [cluster.ended(leg) for leg in legs] == [1] * 20
        await cluster.leave()

    in_no_time(lose())


def test_a_delayed_start_is_in_flight_and_runs_in_the_end() -> None:
    async def delay() -> None:
        cluster = await Cluster(4, faults=Faults(delay=1.0, delay_s=10)).join()
        first, second = some_legs(2)
        engine = cluster.engines[0]
        for leg in (first, first, second):
            await engine.start(leg)
        assert await engine.in_flight() == [first.id, second.id]
        await engine.cancel(second)
        # The start was on its way already when whoever sent it died.
        cluster.processes[0].kill()
        await asyncio.sleep(20)
        assert cluster.ended(first) == 1
        assert cluster.ended(second) == 0
        await cluster.leave()

    in_no_time(delay())


@pytest.mark.parametrize("workers", [1, 2])
def test_a_doubled_start_runs_the_leg_twice_and_does_not_bring_it_back(workers: int) -> None:
    async def double() -> None:
        cluster = await Cluster(5, faults=Faults(duplicate=1.0), workers=workers, slots=1).join()
        [leg] = some_legs(1)
        await cluster.engines[0].start(leg)
        await asyncio.sleep(5 if workers == 1 else 20)
        assert cluster.ended(leg) == (1 if workers == 1 else 2)
        assert await cluster.engines[0].in_flight() == await cluster.engines[0].owners() == []
        await asyncio.sleep(20)
        assert cluster.ended(leg) == 2
        await cluster.leave()

    in_no_time(double())


@pytest.mark.parametrize("seconds", [0.5, 1.5, 2.5])
def test_the_legs_of_a_killed_worker_run_again_elsewhere_once_recovered(seconds: float) -> None:
    async def kill() -> None:
        cluster = await Cluster(int(seconds * 10), slots=1).join()
        _, alive = cluster.engines
        legs = some_legs(3)
        for leg in legs:
            await alive.start(leg)
        await asyncio.sleep(seconds)
        [owned] = await alive.in_flight(["w0"])
        cluster.processes[0].kill()
        told = [line for line in cluster.story if line.startswith("w0")]
        await asyncio.sleep(20)
        assert await alive.in_flight() == [owned]
        assert await alive.owners() == ["w0"]
        assert await alive.recover(["w0"]) == [owned]
        assert await alive.recover(["w0"]) == []
        await asyncio.sleep(20)
        assert [cluster.ended(leg) for leg in legs] == [1] * 3
        assert [line for line in cluster.story if line.startswith("w0")] == told
        await cluster.leave()

    in_no_time(kill())


def test_a_thawed_worker_goes_on_with_a_leg_that_was_given_to_another() -> None:
    async def thaw() -> None:
        cluster = await Cluster(6, slots=1).join()
        sleeper, other = cluster.engines
        first, second = cluster.processes
        [leg] = some_legs(1)
        second.freeze()
        await sleeper.start(leg)
        await asyncio.sleep(1.5)
        second.thaw()
        first.freeze()
        assert await other.recover(["w0"]) == [leg.id]
        await asyncio.sleep(1.5)
        second.freeze()
        first.thaw()
        await asyncio.sleep(20)
        assert cluster.ended(leg) == 1
        # The zombie has ended, the leg has not.
        assert await other.in_flight(["w1"]) == [leg.id]
        second.thaw()
        await asyncio.sleep(20)
        assert cluster.ended(leg) == 2
        assert await other.in_flight() == []
        await cluster.leave()

    in_no_time(thaw())


def test_cancelling_does_not_reach_a_frozen_worker() -> None:
    async def cancel() -> None:
        cluster = await Cluster(7, workers=2, slots=1).join()
        engine = cluster.engines[1]
        [leg] = some_legs(1, host_id="h0")
        await engine.start(leg)
        await asyncio.sleep(1.5)
        cluster.processes[0].freeze()
        await engine.cancel(leg)
        assert await engine.in_flight() == []
        cluster.processes[0].thaw()
        await asyncio.sleep(20)
        assert cluster.ended(leg) == 1
        await cluster.leave()

    in_no_time(cancel())


def test_a_leg_of_one_host_waits_for_a_worker_there() -> None:
    async def wait() -> None:
        cluster = await Cluster(8, slots=1).join()
        legs = some_legs(2, host_id="h1")
        cluster.processes[1].freeze()
        for leg in legs:
            await cluster.engines[0].start(leg)
        await asyncio.sleep(20)
        assert cluster.story == []
        cluster.processes[1].thaw()
        assert len(await cluster.engines[0].in_flight()) == 2
        await asyncio.sleep(20)
        assert {line.split()[0] for line in cluster.story} == {"w1"}
        assert [cluster.ended(leg) for leg in legs] == [1, 1]
        await cluster.leave()

    in_no_time(wait())


def test_once_it_is_calm_nothing_goes_wrong_any_more() -> None:
    async def calm() -> None:
        cluster = await Cluster(9, faults=Faults(lose=1.0)).join()
        [leg] = some_legs(1)
        await cluster.engines[0].start(leg)
        assert await cluster.engines[0].in_flight() == []
        cluster.engines[1].calm()
        await cluster.engines[0].start(leg)
        assert await cluster.engines[0].in_flight() == [leg.id]
        await cluster.leave()

    in_no_time(calm())


def test_an_event_loop_that_is_closed_leaves_no_leg_behind(caplog: pytest.LogCaptureFixture) -> None:
    async def forget_to_close() -> None:
        async def execute(leg: Leg) -> None:
            await asyncio.Event().wait()

        engine = SeededEngine(0, on_error=lambda *_: None)
        await engine.launch(execute, worker_id="w0", slots=1)
        for n in range(3):
            await engine.start(Leg(subject=f"s{n}", n=1, fence=1))

    asyncio.run(forget_to_close())
    gc.collect()
    assert "was destroyed" not in caplog.text
