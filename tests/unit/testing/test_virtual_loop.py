"""Time that costs nothing, and processes that die in the middle of a line."""

import asyncio

import pytest
from tests.fakes.clock import START
from tests.fakes.virtual_loop import Process, Stuck, VirtualClock, VirtualLoop


@pytest.fixture
def loop():
    loop = VirtualLoop()
    yield loop
    loop.close()


def test_a_year_passes_at_once_and_sleepers_wake_in_order(loop: VirtualLoop) -> None:
    woken: list[str] = []

    async def sleep(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        woken.append(name)

    async def everyone() -> None:
        await asyncio.gather(sleep("late", 31e6), sleep("early", 1), sleep("noon", 500))

    loop.run_until_complete(everyone())
    assert woken == ["early", "noon", "late"]
    assert loop.time() == 31e6


def test_what_waits_for_nothing_that_comes_is_said_to_be_stuck(loop: VirtualLoop) -> None:
    async def wait() -> None:
        await loop.create_future()

    waiting = loop.create_task(wait())
    with pytest.raises(Stuck):
        loop.run_until_complete(waiting)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(waiting)


def test_a_killed_process_runs_no_further_line_and_no_finally(loop: VirtualLoop) -> None:
    story: list[str] = []

    async def work() -> None:
        try:
            child = asyncio.create_task(count("child"))
            await count("parent")
            await child
        finally:
            story.append("tidied")

    async def count(name: str) -> None:
        for n in range(10):
            story.append(f"{name} {n}")
            await asyncio.sleep(1)

    async def kill() -> None:
        process = Process("p")
        task = process.start(work())
        await asyncio.sleep(1.5)
        process.kill()
        await asyncio.sleep(100)
        assert story == ["parent 0", "child 0", "parent 1", "child 1"]
        assert len(loop.unfinished()) == 3
        process.raise_from_the_dead()
        task.cancel()
        await asyncio.wait([task])
        assert "tidied" in story
        await asyncio.sleep(100)

    loop.run_until_complete(kill())
    assert loop.unfinished() == []


def test_a_frozen_process_goes_on_where_it_stood_after_its_time_has_passed(loop: VirtualLoop) -> None:
    seen: list[float] = []

    async def count() -> None:
        for _ in range(4):
            seen.append(loop.time())
            await asyncio.sleep(1)

    async def freeze() -> None:
        process = Process("p")
        task = process.start(count())
        await asyncio.sleep(1.5)
        assert process.running
        process.freeze()
        assert not process.running
        await asyncio.sleep(100)
        process.thaw()
        await task

    loop.run_until_complete(freeze())
    assert seen == [0.0, 1.0, 101.5, 102.5]


def test_thawing_does_not_bring_a_dead_process_back(loop: VirtualLoop) -> None:
    seen: list[float] = []

    async def count() -> None:
        while True:
            seen.append(loop.time())
            await asyncio.sleep(1)

    async def freeze_and_kill() -> None:
        process = Process("p")
        task = process.start(count())
        await asyncio.sleep(0.5)
        process.freeze()
        process.kill()
        process.thaw()
        await asyncio.sleep(10)
        assert seen == [0.0]
        process.raise_from_the_dead()
        task.cancel()
        await asyncio.wait([task])

    loop.run_until_complete(freeze_and_kill())


def test_tasks_know_their_process_and_outsiders_have_none(loop: VirtualLoop) -> None:
    async def who() -> Process | None:
        return await asyncio.create_task(ask())

    async def ask() -> Process | None:
        return Process.current()

    async def compare() -> None:
        process = Process("p")
        assert await process.start(who()) is process
        assert await who() is None

    loop.run_until_complete(compare())


def test_an_exception_that_nobody_awaits_is_reported_or_raised(loop: VirtualLoop) -> None:
    def break_it() -> None:
        raise ValueError("oh")

    async def nap() -> None:
        await asyncio.sleep(1)

    loop.call_soon(break_it)
    with pytest.raises(RuntimeError):
        loop.run_until_complete(nap())
    heard: list[str] = []
    loop.set_exception_handler(lambda _loop, context: heard.append(repr(context["exception"])))
    loop.call_soon(break_it)
    loop.run_until_complete(nap())
    assert heard == ["ValueError('oh')"]


def test_a_wrong_clock_is_wrong_by_as_much_as_it_should_be(loop: VirtualLoop) -> None:
    right, wrong = VirtualClock(loop), VirtualClock(loop, ahead_s=30, rate=2.0)

    async def look() -> None:
        await wrong.sleep(10)
        assert loop.time() == 5
        assert (right.now() - START).total_seconds() == 5
        assert (wrong.now() - right.now()).total_seconds() == 30
        assert (right.monotonic(), wrong.monotonic()) == (5, 10)

    loop.run_until_complete(look())


def test_an_exception_that_nobody_asked_for_is_known_in_the_end_but_for_those_of_the_dead(
    loop: VirtualLoop,
) -> None:
    async def fail() -> None:
        raise ValueError("lost")

    async def everyone() -> None:
        asked, living, dead = Process("asked"), Process("living"), Process("dead")
        heard = asked.start(fail())
        living.start(fail())
        dead.start(fail())
        await asyncio.sleep(1)
        dead.kill()
        assert isinstance(heard.exception(), ValueError)

    loop.set_exception_handler(lambda _loop, _about: None)
    loop.run_until_complete(everyone())
    assert [task.get_name() for task in loop.lost()] == ["living"]
