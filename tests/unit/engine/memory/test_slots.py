"""Which agent may run now."""

import asyncio
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest

from loopwright.core.policy.share import AGING, SlotLimits
from loopwright.core.rows.model import Leg
from loopwright.core.rows.turns import Turn
from loopwright.engine.memory.slots import AgentSlots, Slot, Use

NUMBERS = count(1)
THEN = datetime(2026, 1, 1, tzinfo=UTC)


def turn(
    plan: str,
    *,
    parallel: int = 9,
    loop: int = 5,
    priority: int = 50,
    position: int = 0,
    project: str = "",
    agent: str = "",
) -> Turn:
    rank = (loop, THEN, "", priority, position, THEN)
    return Turn(plan_id=plan, parallel=parallel, rank=rank, project_id=project, agent=agent)


def leg(plan: str = "a", subject: str = "", **more: Any) -> Leg:
    return Leg(subject=subject or f"new_{next(NUMBERS)}", n=1, fence=1, turn=turn(plan, **more))


async def given(slots: AgentSlots, one: Leg) -> Slot:
    """Wait for a slot that is bound to come."""
    assert one.turn is not None
    async with asyncio.timeout(5):
        slot = await slots.take(one, one.turn, unless=asyncio.Event())
    assert slot is not None
    return slot


async def taken(slots: AgentSlots, plan: str, **more: Any) -> Slot:
    return await given(slots, leg(plan, **more))


def waiting(slots: AgentSlots, plan: str, **more: Any) -> "asyncio.Task[Slot]":
    return asyncio.ensure_future(taken(slots, plan, **more))


def event() -> asyncio.Event:
    already = asyncio.Event()
    already.set()
    return already


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


async def test_agents_start_by_loop_then_by_task_priority_then_by_position() -> None:
    slots = AgentSlots(1)
    held = await taken(slots, "a")
    places = {
        "last loop": {"loop": 9, "priority": 0},
        "third": {"priority": 60, "position": 1},
        "fourth": {"priority": 60, "position": 2},
        "first loop": {"loop": 1, "priority": 99},
        "second": {"priority": 10, "position": 7},
        "with the second, but later": {"priority": 10, "position": 7},
    }
    order: list[str] = []
    tasks = []
    for name, place in places.items():
        task = waiting(slots, "a", **place)
        task.add_done_callback(lambda done, name=name: (order.append(name), done.result().release()))
        tasks.append(task)
        await settle()
    held.release()
    await asyncio.gather(*tasks)
    await settle()
    assert order == ["first loop", "second", "with the second, but later", "third", "fourth", "last loop"]


async def test_a_slot_is_kept_for_the_first_in_line_while_its_workspace_is_made() -> None:
    slots = AgentSlots(2)
    slow, quick, last = (leg(position=place) for place in range(3))
    for one in (slow, quick, last):
        slots.line_up(one)
    later = asyncio.ensure_future(given(slots, last))
    await settle()
    assert not later.done(), "two are before it"
    (await given(slots, quick)).release()
    await later
    mine = await given(slots, slow)
    mine.release()
    mine.release()


async def test_who_needs_no_agent_after_all_keeps_nobody_back() -> None:
    slots = AgentSlots(1)
    failed, full = leg("a"), leg("b", parallel=0)
    slots.line_up(failed)
    slots.line_up(full)
    slots.line_up(Leg(subject="att_judged", n=1, fence=1))
    next_one = waiting(slots, "c", position=9)
    await settle()
    assert not next_one.done()
    slots.leave(failed)
    await next_one
    assert (await asyncio.wait_for(slots.take(full, turn("b"), unless=event()), 5)) is None


async def test_who_is_stopped_or_dropped_while_waiting_takes_nothing() -> None:
    slots = AgentSlots(1)
    held = await taken(slots, "a")
    stop = asyncio.Event()
    stopped = asyncio.ensure_future(slots.take(leg(), turn("a"), unless=stop))
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
    slots.expect({"att_1": Use("a"), "att_2": Use("b")})
    fresh = waiting(slots, "a")
    await settle()
    assert not fresh.done()
    adopted = slots.take_now("att_1", Use("a"))
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
    first, second = slots.take_now("att_1", Use("a")), slots.take_now("att_2", Use("a"))
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
        mine = await slots.take(leg("a", "att_1"), turn("a", parallel=1), unless=asyncio.Event())
    await settle()
    assert not other.done()
    assert mine is not None
    mine.release()
    await other


async def test_agents_and_projects_have_no_more_than_their_slots() -> None:
    slots = AgentSlots(9, SlotLimits(agents={"claude": 1}, project=2))
    first = await taken(slots, "a", project="p", agent="claude")
    second = waiting(slots, "b", project="q", agent="claude")
    await taken(slots, "c", project="p", agent="codex")
    third = waiting(slots, "d", project="p", agent="codex")
    await settle()
    assert (second.done(), third.done()) == (False, False)
    first.release()
    await asyncio.gather(second, third)


async def test_a_loop_that_waits_gets_more_urgent_until_it_has_an_agent() -> None:
    time = [0.0]
    slots = AgentSlots(1, now=lambda: time[0])
    held = await taken(slots, "a")
    low = waiting(slots, "low", loop=9)
    await settle()
    time[0] = 5 * AGING.total_seconds()
    high = waiting(slots, "high", loop=5)
    await settle()
    held.release()
    (await low).release()
    await high


@pytest.mark.capability("C074", "C077")
async def test_twenty_loops_share_three_slots_and_an_urgent_one_gets_the_next() -> None:
    slots = AgentSlots(3)
    running, most, order = 0, 0, list[str]()
    steps = asyncio.Semaphore(0)

    async def loop(name: str, tasks: int, **more: Any) -> None:
        nonlocal running, most

        async def work(position: int) -> None:
            nonlocal running, most
            slot = await taken(slots, name, position=position, **more)
            running += 1
            most = max(most, running)
            order.append(name)
            await steps.acquire()
            running -= 1
            slot.release()

        await asyncio.gather(*(work(position) for position in range(tasks)))

    first = [await taken(slots, "first") for _ in range(3)]
    loops = [asyncio.create_task(loop(f"loop {n}", 3)) for n in range(20)]
    await settle()
    for slot in first:
        slot.release()
    await settle()
    for done in range(30):
        steps.release()
        await settle()
        if done == 9:
            urgent = asyncio.create_task(loop("urgent", 1, loop=1))
            await settle()
            before = len(order)
            steps.release()
            await settle()
            assert order[before] == "urgent", "it gets the next free slot"
    counts = [order.count(f"loop {n}") for n in range(20)]
    assert most == 3
    assert max(counts) - min(counts) <= 1, "equals have equal shares"
    for _ in range(61):
        steps.release()
    await asyncio.gather(*loops, urgent)
    assert len(order) == 61
