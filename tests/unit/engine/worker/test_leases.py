"""A worker's lease: renewed in time or lost for good, and one controller among many workers."""

import asyncio

import pytest
from tests.doubles import Home

from loopwright.core.rows.model import Cursor, Worker
from loopwright.core.values.errors import LeaseLost
from loopwright.core.values.ids import Kind, is_id
from loopwright.engine.worker.leases import Lease

SECONDS = 15.0


async def joined(home: Home) -> Lease:
    lease = home.lease(seconds=SECONDS)
    await lease.join()
    return lease


async def controls(lease: Lease) -> bool:
    """Ask as a worker does: with what it has just seen."""
    return await lease.controls(await lease._store.read(lease.holder))


def shared() -> Home:
    return Home(exclusive=False)


async def test_joining_writes_down_a_new_worker_with_a_lease_by_the_databases_clock() -> None:
    home = shared()
    worker = await home.lease(seconds=SECONDS).join()
    assert is_id(worker.id, Kind.WORKER)
    assert home.all(Worker) == [worker]
    assert (worker.lease_until - worker.started_at).total_seconds() == SECONDS
    [told] = home.events("worker_joined")
    assert told.payload == {"worker": worker.id, "hostname": home.host, "pid": 7}


async def test_a_lease_that_is_renewed_in_time_lasts() -> None:
    home = shared()
    lease = await joined(home)
    for _ in range(10):
        home.clock.advance(SECONDS * 0.7)
        assert lease.valid()
        await lease.renew()
    assert (home.all(Worker)[0].lease_until - home.clock.now()).total_seconds() == SECONDS


async def test_a_worker_stops_acting_before_others_can_take_over() -> None:
    home = shared()
    lease = await joined(home)
    home.clock.advance(SECONDS * 0.8)
    assert not lease.valid()
    assert home.all(Worker)[0].lease_until > home.clock.now()
    await lease.renew()
    assert lease.valid()


async def test_a_lapsed_lease_is_never_renewed() -> None:
    home = shared()
    lease = await joined(home)
    lapsed = lease.worker
    home.clock.advance(SECONDS)
    with pytest.raises(LeaseLost, match=lapsed.id):
        await lease.renew()
    assert home.all(Worker) == [lapsed]
    assert not lease.valid()


async def test_a_worker_that_lost_its_lease_comes_back_as_someone_new() -> None:
    home = shared()
    lease = await joined(home)
    first = lease.worker.id
    home.clock.advance(SECONDS)
    second = await lease.join()
    assert second.id != first
    assert lease.valid()
    await lease.renew()


async def test_a_worker_that_was_declared_lost_or_is_gone_cannot_renew() -> None:
    home = shared()
    buried, gone = await joined(home), await joined(home)
    home.store.transact_sync("bury", lambda tx: tx.update(Worker, buried.worker.id, slots=0))
    home.store.transact_sync("gone", lambda tx: tx.delete(Worker, gone.worker.id))
    for lease in (buried, gone):
        with pytest.raises(LeaseLost):
            await lease.renew()


async def test_a_clock_that_is_set_back_does_not_make_a_worker_trust_an_old_lease() -> None:
    home = shared()
    lease = await joined(home)
    home.clock.advance(SECONDS)
    home.clock.step(-3600)
    assert not lease.valid()


async def test_a_slow_database_shortens_what_the_worker_may_trust() -> None:
    """What counts is when the renewal was asked for, not when the answer came."""
    home = shared()
    lease = home.lease(seconds=SECONDS)
    inner = home.store.transact

    class Slow:
        async def transact(self, name, work):  # type: ignore[no-untyped-def]
            result = await inner(name, work)
            home.clock.advance(SECONDS * 0.7)
            return result

    slow = Lease(Slow(), home.clock, home.ids, home.membership, me=lease.worker, seconds=SECONDS)  # type: ignore[arg-type]
    await slow.join()
    assert slow.valid()
    home.clock.advance(SECONDS * 0.1)
    assert not slow.valid()


# --- the controller ----------------------------------------------------------------------------------


async def test_of_two_claims_one_wins_and_keeps_it() -> None:
    home = shared()
    one, other = await joined(home), await joined(home)
    assert [await controls(one), await controls(other), await controls(one)] == [True, False, True]
    assert [worker.controls for worker in home.all(Worker, order_by=("id",))] == [True, False]


@pytest.mark.trap("two controllers")
async def test_two_claims_that_saw_the_same_state_are_one_win() -> None:
    """The claim reads again in its own transaction, whatever was seen before."""
    home = shared()
    leases = [await joined(home) for _ in range(4)]
    assert sum(await asyncio.gather(*(controls(lease) for lease in leases))) == 1
    assert sum(worker.controls for worker in home.all(Worker)) == 1
    assert home.all(Cursor) == [Cursor(id="controller", n=1)]


async def test_an_idle_controller_does_not_write() -> None:
    written: list[str] = []
    home = Home(exclusive=False, failpoint=written.append)
    one, other = await joined(home), await joined(home)
    await controls(one)
    written.clear()
    assert [await controls(one), await controls(other)] == [True, False]
    assert written == []


async def test_when_the_controllers_lease_lapses_another_takes_over() -> None:
    home = shared()
    one = await joined(home)
    assert await controls(one)
    home.clock.advance(SECONDS)
    other = await joined(home)
    assert await controls(other)
    assert not await controls(one)


async def test_a_worker_whose_lease_lapsed_does_not_become_controller() -> None:
    """It may have slept: whoever declares it dead would find two controllers."""
    home = shared()
    sleeper = await joined(home)
    home.clock.advance(SECONDS)
    assert not await controls(sleeper)
    assert home.all(Cursor) == []
    awake = await joined(home)
    assert await controls(awake)


async def test_a_worker_that_was_declared_lost_does_not_become_controller() -> None:
    home = shared()
    lease = await joined(home)
    home.store.transact_sync("bury", lambda tx: tx.update(Worker, lease.worker.id, slots=0))
    assert not await controls(lease)


async def test_the_controllers_seat_is_free_as_soon_as_it_leaves() -> None:
    home = shared()
    one, other = await joined(home), await joined(home)
    assert await controls(one)
    await one.leave()
    assert await controls(other)
    assert [worker.id for worker in home.all(Worker)] == [other.worker.id]
    await one.leave()
    assert home.told("worker_left") == ["worker_left"]


# --- one worker by a held lock -----------------------------------------------------------------------


async def test_in_an_exclusive_home_whoever_holds_the_lock_is_worker_and_controller() -> None:
    home = Home(exclusive=True)
    first = await joined(home)
    dead = first.worker
    second = await joined(home)
    assert home.all(Worker) == [second.worker]
    assert dead.id != second.worker.id
    home.clock.advance(24 * 3600)
    assert second.valid()
    assert await controls(second)


async def test_a_new_incarnation_takes_nothing_over_from_the_row_before() -> None:
    home = shared()
    lease = await joined(home)
    assert await controls(lease)
    reborn = await lease.join()
    assert (reborn.controls, reborn.slots, reborn.pid) == (False, home.slots, 7)
