"""The same tree is not judged twice side by side, and nobody waits for someone who waits for them."""

import asyncio

from loopwright.engine.memory.slots import Underway


async def test_who_asks_for_a_tree_that_is_being_judged_waits_for_its_end() -> None:
    underway, never = Underway(), asyncio.Event()
    with underway.judging("plan", "a"):
        waiting = asyncio.ensure_future(underway.ended("plan", "a", asked_by="b", interrupt=never))
        await asyncio.sleep(0)
        assert not waiting.done()
    assert await waiting
    assert not await underway.ended("plan", "a", asked_by="b", interrupt=never)


async def test_another_plan_s_tree_is_another_tree() -> None:
    underway = Underway()
    with underway.judging("plan", "a"):
        assert not await underway.ended("other", "a", asked_by="b", interrupt=asyncio.Event())


async def test_two_that_would_wait_for_each_other_do_not() -> None:
    underway, never = Underway(), asyncio.Event()
    with underway.judging("plan", "a"), underway.judging("plan", "b"), underway.judging("plan", "c"):
        waiting = [
            asyncio.ensure_future(underway.ended("plan", of, asked_by=by, interrupt=never))
            for by, of in (("a", "b"), ("b", "c"))
        ]
        await asyncio.sleep(0)
        assert not await underway.ended("plan", "a", asked_by="c", interrupt=never)
    assert all(await asyncio.gather(*waiting))


async def test_who_is_to_stop_does_not_wait_on() -> None:
    underway, stop = Underway(), asyncio.Event()
    with underway.judging("plan", "a"):
        waiting = asyncio.ensure_future(underway.ended("plan", "a", asked_by="b", interrupt=stop))
        await asyncio.sleep(0)
        stop.set()
        assert await waiting
