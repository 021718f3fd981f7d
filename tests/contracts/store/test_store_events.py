"""What a transaction does with events: numbered without gaps, chained per plan, all or nothing."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.contracts.store.rows import event, project
from tests.contracts.store.writer import count_up

from loopwright.adapters.store.chain import HOME, event_hash, verify_chain
from loopwright.core.rows.events import Importance
from loopwright.core.rows.model import Cursor, Project


def append(*events: Any) -> Any:
    def work(tx: Any) -> None:
        for one in events:
            tx.append(one)

    return work


async def all_events(store: Any, **filters: Any) -> list[Any]:
    return await store.read(lambda tx: tx.events(**filters))


async def test_events_are_numbered_from_one_without_gaps(store: Any) -> None:
    for size in (1, 3, 2):
        await store.transact("append", append(*[event()] * size))
    assert [one.n for one in await all_events(store)] == [1, 2, 3, 4, 5, 6]
    assert await store.read(lambda tx: tx.last_event()) == 6


async def test_an_event_comes_back_whole(store: Any) -> None:
    given = event(
        project="p",
        loop="l",
        plan="pl",
        task="t",
        attempt="a",
        run="r",
        importance=Importance.HIGH,
        version=4,
        payload={"ünïcode": ["漢", {"x": 1.5, "none": None}], "big": "y" * 1_000_000},
    )
    await store.transact("append", append(given))
    (found,) = await all_events(store)
    for name in (
        "type",
        "actor",
        "project",
        "loop",
        "plan",
        "task",
        "attempt",
        "run",
        "importance",
        "version",
        "payload",
    ):
        assert getattr(found, name) == getattr(given, name)
    assert found.id.startswith("evt_")
    assert found.at.utcoffset() is not None


async def test_an_event_carries_the_time_of_its_transaction(store: Any) -> None:
    def work(tx: Any) -> Any:
        tx.append(event())
        return tx.now()

    at = await store.transact("append", work)
    assert [one.at for one in await all_events(store)] == [at]


async def test_the_events_of_a_transaction_are_not_seen_before_it_commits(store: Any) -> None:
    def work(tx: Any) -> Any:
        tx.append(event())
        return tx.events(), tx.last_event()

    assert await store.transact("append", work) == ([], 0)


async def test_work_that_raises_changes_nothing_and_uses_no_number(store: Any) -> None:
    await store.transact("make", lambda tx: tx.insert(project(id="proj_kept")))

    def work(tx: Any) -> None:
        tx.insert(project())
        tx.update(Project, "proj_kept", name="changed")
        tx.insert(Cursor(id="c", n=1))
        tx.append(event())
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        await store.transact("work", work)
    await store.transact("append", append(event(type="After")))
    assert [(one.n, one.type) for one in await all_events(store)] == [(1, "After")]
    assert [row.name for row in await store.read(lambda tx: tx.find(Project))] == ["demo"]
    assert await store.read(lambda tx: tx.count(Cursor)) == 0


async def test_a_payload_that_is_no_json_is_refused_where_it_is_appended(store: Any) -> None:
    def work(tx: Any) -> None:
        for wrong in ({"at": object()}, {"cost": float("nan")}):
            with pytest.raises((TypeError, ValueError)):
                tx.append(event(payload=wrong))

    await store.transact("append", work)
    assert await all_events(store) == []


FILTERS: list[tuple[dict[str, Any], list[int]]] = [
    ({}, [1, 2, 3, 4, 5]),
    ({"after": 3}, [4, 5]),
    ({"after": 99}, []),
    ({"limit": 2}, [1, 2]),
    ({"after": 1, "limit": 2}, [2, 3]),
    ({"plan": "P1"}, [1, 2, 4]),
    ({"plan": "P1", "after": 1}, [2, 4]),
    ({"task": "T1"}, [2]),
    ({"run": "R1"}, [4]),
    ({"types": ["B"]}, [3, 4]),
    ({"types": ("A", "B"), "plan": "P1"}, [1, 4]),
    ({"newest": True, "limit": 2}, [4, 5]),
    ({"newest": True, "limit": 2, "plan": "P1"}, [2, 4]),
    ({"newest": True, "after": 4}, [5]),
]


async def test_events_are_filtered(store: Any) -> None:
    made = [
        event(type="A", plan="P1"),
        event(type="C", plan="P1", task="T1"),
        event(type="B"),
        event(type="B", plan="P1", run="R1"),
        event(type="D", plan="P2"),
    ]
    await store.transact("append", append(*made))
    for filters, numbers in FILTERS:
        assert (filters, [one.n for one in await all_events(store, **filters)]) == (filters, numbers)


async def test_each_plan_has_its_own_chain_and_the_home_has_one(store: Any) -> None:
    for plans in (["P1", None], ["P2", "P1"], [None, "P1"]):
        await store.transact("append", append(*[event(plan=plan) for plan in plans]))
    found = await all_events(store)
    assert verify_chain(found) is None
    for plan in ("P1", "P2", None):
        chain = [one for one in found if one.plan == plan]
        assert [one.prev_hash for one in chain] == ["", *[one.hash for one in chain[:-1]]]
    assert verify_chain(await all_events(store, plan="P1")) is None
    assert (
        verify_chain([found[1], found[0]]) == 1
    )  # each is fine in its own chain, but they did not happen so
    rest = [one for one in found if one.n > 2]
    assert verify_chain(rest) == 4  # P2's first is fine; P1 and the home need their beginnings
    assert verify_chain(rest, start={"P1": found[0].hash, HOME: found[1].hash}) is None


async def test_a_changed_a_missing_and_a_moved_event_are_noticed(store: Any) -> None:
    for n in range(5):
        await store.transact("append", append(event(plan="P", payload={"n": n})))
    good = await all_events(store, as_stored=True)
    assert verify_chain(good) is None
    later = good[2].at + timedelta(microseconds=1)
    for changes in ({"payload": {"n": 9}}, {"actor": "mallory"}, {"at": later}, {"id": "evt_x"}):
        bad = [*good[:2], replace(good[2], **changes), *good[3:]]
        assert verify_chain(bad) == 3
    forged = replace(good[2], payload={"n": 9})
    assert verify_chain([*good[:2], replace(forged, hash=event_hash(forged)), *good[3:]]) == 4
    assert verify_chain([*good[:2], *good[3:]]) == 4
    assert verify_chain(good[1:]) == 2
    assert verify_chain([good[1], good[0]]) == 2


async def test_old_events_are_lifted_on_reading_and_stay_as_they_are(home: Any) -> None:
    def from_1(payload: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"name": payload["nmae"]}

    def from_2(payload: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**payload, "kind": "old"}

    store = home.open(upcasters={("Named", 1): from_1, ("Named", 2): from_2})
    made = [
        event(type="Named", version=1, payload={"nmae": "x"}),
        event(type="Named", version=3, payload={"name": "y", "kind": "new"}),
        event(type="Other", version=1, payload={"nmae": "z"}),
    ]
    await store.transact("append", append(*made))
    lifted = [(one.version, one.payload) for one in await all_events(store)]
    assert lifted == [
        (3, {"name": "x", "kind": "old"}),
        (3, {"name": "y", "kind": "new"}),
        (1, {"nmae": "z"}),
    ]
    stored = await all_events(store, as_stored=True)
    assert [one.payload for one in stored] == [one.payload for one in made]
    assert verify_chain(stored) is None


async def test_odd_text_in_an_event_does_not_break_its_chain(store: Any) -> None:
    await store.transact("append", append(event(actor="a\x00\ud800", payload={"t": "\x00\ud800 ü"})))
    (found,) = await all_events(store)
    assert found.payload == {"t": "\x00\ud800 ü"}
    assert verify_chain([found]) is None


async def test_failpoints_stand_right_before_and_right_after_the_commit(home: Any) -> None:
    seen: list[tuple[str, int]] = []
    writer = home.open(
        failpoint=lambda name: seen.append((name, writer.read_sync(lambda tx: tx.last_event())))
    )
    await writer.transact("plan.start", append(event()))
    assert seen == [("store.plan.start.before", 0), ("store.plan.start.after", 1)]


@pytest.mark.trap("crash at a write")
async def test_a_crash_before_the_commit_loses_all_of_it_and_after_it_nothing(home: Any) -> None:
    class Crash(BaseException):
        pass

    armed: list[str] = []

    def failpoint(name: str) -> None:
        if name in armed:
            raise Crash

    store = home.open(failpoint=failpoint)
    for point, after in (("store.work.before", 0), ("store.work.after", 1)):
        armed[:] = [point]
        with pytest.raises(Crash):
            store.transact_sync("work", append(event()))
        assert store.read_sync(lambda tx: tx.last_event()) == after


async def test_transactions_of_one_process_never_overlap(store: Any) -> None:
    results = await asyncio.gather(*[store.transact("count", count_up) for _ in range(40)])
    assert sorted(results) == list(range(1, 41))


async def test_now_is_one_aware_moment_for_a_whole_transaction(home: Any) -> None:
    store = home.open()
    first, again = await store.transact("now", lambda tx: (tx.now(), tx.now()))
    assert first == again
    assert first.utcoffset().total_seconds() == 0
    if home.kind == "memory":
        assert first == home.clock.now()
    later = await store.read(lambda tx: tx.now())
    assert later >= first


async def test_events_that_were_lost_are_put_back_once_and_the_chains_hold(store: Any) -> None:
    await store.transact("append", append(*[event(plan=one) for one in ("kept", "lost", "kept", "lost")]))
    lost = [one for one in await all_events(store, as_stored=True) if one.plan == "lost"]

    # The rows of one plan are lost, and the numbers of its events were given to others since.
    for name in ("known already", "numbers are free", "numbers are taken"):
        events = [replace(one, id=f"{one.id}-{name}", plan=name, n=one.n + 100) for one in lost]
        if name == "known already":
            events = lost
        if name == "numbers are taken":
            events = [replace(one, n=one.n - 100) for one in events]
        for _ in range(2):
            await store.transact("put back", lambda tx, given=events: tx.put_back(given))
    await store.transact("append", append(event(plan="numbers are taken"), event(plan="kept")))

    found = await all_events(store, as_stored=True)
    assert [one.plan for one in found] == [
        *("kept", "lost", "kept", "lost", "numbers are free", "numbers are free"),
        *("numbers are taken", "numbers are taken", "numbers are taken", "kept"),
    ]
    assert [one.at for one in found[4:6]] == [one.at for one in lost]
    assert [one.n for one in found] == sorted({one.n for one in found})
    assert found[-1].n == await store.read(lambda tx: tx.last_event())
