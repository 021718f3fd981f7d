"""Who may run an agent now."""

import asyncio

from loopwright.engine.slots import AgentSlots, Slot


async def taken(slots: AgentSlots, plan: str, *, parallel: int = 9, priority: int = 5) -> Slot:
    """Wait for a slot that is bound to come."""
    async with asyncio.timeout(5):
        slot = await slots.take("new", plan, parallel=parallel, priority=priority, unless=asyncio.Event())
    assert slot is not None
    return slot


def waiting(slots: AgentSlots, plan: str, **more: int) -> "asyncio.Task[Slot]":
    return asyncio.ensure_future(taken(slots, plan, **more))


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_no_more_agents_than_slots_and_each_that_ends_lets_one_in() -> None:
    slots = AgentSlots(2)
    first, _ = await taken(slots, "a"), await taken(slots, "a")
    third = waiting(slots, "a")
    await settle()
    assert not third.done()
    first.release()
    first.release()
    fourth = waiting(slots, "a")
    await third
    await settle()
    assert not fourth.done(), "a slot that is given back twice is one slot"
    fourth.cancel()


async def test_a_plan_has_no_more_than_it_may_and_others_go_past_it() -> None:
    slots = AgentSlots(3)
    await taken(slots, "a", parallel=1)
    second = waiting(slots, "a", parallel=1)
    await taken(slots, "b")
    await settle()
    assert not second.done()
    second.cancel()


async def test_the_more_urgent_loop_goes_first() -> None:
    slots = AgentSlots(1)
    held = await taken(slots, "a")
    order: list[str] = []
    tasks = []
    for name, priority in (("late", 9), ("first", 1), ("second", 1)):
        task = waiting(slots, name, priority=priority)
        task.add_done_callback(lambda done, name=name: (order.append(name), done.result().release()))
        tasks.append(task)
        await settle()
    held.release()
    await asyncio.gather(*tasks)
    await settle()
    assert order == ["first", "second", "late"]


async def test_who_is_stopped_or_dropped_while_waiting_takes_nothing() -> None:
    slots = AgentSlots(1)
    held = await taken(slots, "a")
    stop = asyncio.Event()
    stopped = asyncio.ensure_future(slots.take("new", "a", parallel=9, priority=5, unless=stop))
    dropped = waiting(slots, "a")
    await settle()
    stop.set()
    assert await stopped is None
    dropped.cancel()
    await settle()
    held.release()
    await taken(slots, "a")


async def test_who_is_dropped_in_the_moment_of_its_turn_gives_it_on() -> None:
    slots = AgentSlots(1)
    held = await taken(slots, "a")
    dropped, next_one = waiting(slots, "a"), waiting(slots, "a")
    await settle()
    held.release()
    dropped.cancel()
    await next_one


async def test_room_is_kept_for_agents_that_an_earlier_worker_left() -> None:
    slots = AgentSlots(2)
    slots.expect({"att_1": "a", "att_2": "b"})
    fresh = waiting(slots, "a")
    await settle()
    assert not fresh.done()
    adopted = slots.take_now("att_1", "a")
    await settle()
    assert not fresh.done(), "the one that was expected is the one that came"
    slots.expect_only(["att_2"])
    await settle()
    assert not fresh.done()
    slots.expect_only([])
    await fresh
    adopted.release()
    await taken(slots, "a")


async def test_an_agent_that_runs_already_counts_even_if_there_is_no_room() -> None:
    slots = AgentSlots(1)
    first, second = slots.take_now("att_1", "a"), slots.take_now("att_2", "a")
    fresh = waiting(slots, "a")
    first.release()
    await settle()
    assert not fresh.done()
    second.release()
    await fresh


async def test_a_slot_that_is_kept_for_an_attempt_is_given_to_nobody_else() -> None:
    slots = AgentSlots(1)
    held = await taken(slots, "a")
    held.keep_for("att_1")
    held.release()
    other = waiting(slots, "a")
    await settle()
    assert not other.done()
    async with asyncio.timeout(5):
        mine = await slots.take("att_1", "a", parallel=1, priority=5, unless=asyncio.Event())
    await settle()
    assert not other.done()
    assert mine is not None
    mine.release()
    await other
