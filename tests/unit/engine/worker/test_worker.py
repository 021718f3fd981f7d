"""How often a worker looks when there is nothing to do: seldom, whatever its clock says and whoever controls."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from tests.doubles import Home, planned
from tests.fakes.clock import START
from tests.fakes.virtual_loop import VirtualClock, VirtualLoop
from tests.fakes.world import WatchfulStore

from loopwright.adapters.home.membership import LockedMembership
from loopwright.core.rows.model import Task, Worker
from loopwright.engine.worker.worker import WorkerLoop
from loopwright.ports import Tx

T = TypeVar("T")


class NoFiles:
    """State files of projects whose folders do not exist: none is ever written."""

    async def beside(self, write: Callable[[], object]) -> None:
        write()

    def put(self, *_: Any, **__: Any) -> Path:
        raise AssertionError("there is no folder to write it to")

    append_events = put

    def put_private(self, *_: Any) -> None:
        """Nothing reads what is in the home."""


class PatientStore(WatchfulStore):
    """Takes no more reads than a worker needs that only waits."""

    reads = 0

    async def read(self, work: Callable[[Tx], T]) -> T:
        self.reads += 1
        assert self.reads < 100, "it asks all the time"
        return await super().read(work)


def work(loop: VirtualLoop, home: Home, each_pass: Callable[[], Awaitable[None]]) -> None:
    """Let a worker work for 15 seconds, and do something after each of its passes."""

    async def finished() -> bool:
        await each_pass()
        return loop.time() > 15

    loop.run_until_complete(WorkerLoop(home.world, NoFiles()).run(finished))
    loop.close()


def test_a_worker_whose_clock_is_ahead_waits_for_what_is_due_instead_of_asking_all_the_time() -> None:
    loop = VirtualLoop()
    store = PatientStore(VirtualClock(loop))
    home = Home(exclusive=False, clock=VirtualClock(loop, ahead_s=60), store=store)  # type: ignore[arg-type]
    home.submit(planned("a"))
    due = START + timedelta(seconds=20)
    store.transact_sync("later", lambda tx: tx.update(Task, home.task("a").id, not_before=due))

    async def nothing() -> None:
        pass

    work(loop, home, nothing)
    assert store.reads > 3


def test_a_worker_that_controls_no_longer_leaves_the_export_to_whoever_does() -> None:
    loop = VirtualLoop()
    clock = VirtualClock(loop)
    store = PatientStore(clock)
    home = Home(exclusive=False, clock=clock, store=store)  # type: ignore[arg-type]
    passes = 0

    def touch(tx: Tx) -> None:
        [mine] = tx.find(Worker)
        tx.update(Worker, mine.id, hostname="renamed")

    def hand_over(tx: Tx) -> None:
        [mine] = tx.find(Worker)
        tx.update(Worker, mine.id, controls=False)
        far = clock.now() + timedelta(hours=1)
        tx.insert(replace(mine, id="another", host_id="host-b", controls=True, lease_until=far))

    async def lose_control_while_behind() -> None:
        nonlocal passes
        passes += 1
        if passes == 1:
            store.transact_sync("touched", touch)  # so that the next pass comes before the next export
        if passes == 2:
            store.transact_sync("handed over", hand_over)

    work(loop, home, lose_control_while_behind)
    assert passes > 2


def test_a_worker_that_holds_a_home_shows_after_each_pass_that_it_does_not_hang(tmp_path: Path) -> None:
    loop = VirtualLoop()
    home = Home(clock=VirtualClock(loop))  # type: ignore[arg-type]
    holder = LockedMembership(tmp_path)
    assert holder.acquire({})
    home.world = replace(home.world, membership=holder)
    seen = []

    async def look() -> None:
        seen.append(holder.beats())

    work(loop, home, look)
    assert len(seen) > 2
    assert seen == sorted(set(seen))
