"""Many writers, many processes: nothing is missed, nothing is lost, and waiting costs nothing."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.contracts.store.rows import event, project
from tests.contracts.store.writer import count_up
from tests.waiting import eventually, eventually_async

from loopwright.adapters.store.chain import verify_chain
from loopwright.adapters.store.sql import SqlStore
from loopwright.adapters.store.wake import Signal, SocketWake
from loopwright.core.rows.model import Cursor, Project

ROOT = Path(__file__).parents[3]
Start = Callable[[str, str], "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def start_writer(address: str, name: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.contracts.store.writer", address, name],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start_writer
    for process in started:
        process.kill()
        process.communicate()


def tell(process: "subprocess.Popen[str]", count: int) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{count}\n")
    process.stdin.flush()


async def told(process: "subprocess.Popen[str]", word: str) -> None:
    assert process.stdout is not None
    assert (await anyio.to_thread.run_sync(process.stdout.readline)).strip() == word


async def follow(store: Any, until: Callable[[], bool]) -> list[Any]:
    """Read events as a stream does: always from the last number seen."""
    seen: list[Any] = []
    while True:
        finished = until()
        last = seen[-1].n if seen else 0
        new = await store.read(lambda tx, last=last: tx.events(after=last, limit=7))
        seen += new
        if finished and not new:
            return seen
        if not new:
            await store.changed(0.5)


@pytest.mark.trap("missed event")
async def test_two_followers_miss_nothing_of_four_writing_processes(shared_home: Any, start: Start) -> None:
    """Each with a connection of its own, as two who watch have."""
    store, other = shared_home.open(), shared_home.open()
    writers = [start(shared_home.address, f"w{n}") for n in range(4)]
    for writer in writers:
        await told(writer, "ready")
    for writer in writers:
        tell(writer, 25)
    done: list[str] = []

    async def wait_for(writer: "subprocess.Popen[str]") -> None:
        await told(writer, "done")
        done.append("one")

    async with anyio.create_task_group() as group:
        for writer in writers:
            group.start_soon(wait_for, writer)
        seen, also = await asyncio.gather(*(follow(one, lambda: len(done) == 4) for one in (store, other)))
    assert [one.n for one in seen] == list(range(1, len(seen) + 1))
    assert also == seen
    assert len(seen) == 4 * sum(1 + n % 3 for n in range(25))
    assert verify_chain(seen) is None
    assert (await store.read(lambda tx: tx.get(Cursor, "shared"))).n == 100


async def test_a_follower_misses_nothing_of_four_writing_tasks(store: Any) -> None:
    left = 4

    async def write(name: str) -> None:
        nonlocal left
        for n in range(20):

            def work(tx: Any, n: int = n) -> None:
                count_up(tx)
                for _ in range(1 + n % 2):
                    tx.append(event(actor=name))

            await store.transact("write", work)
        left -= 1

    async with anyio.create_task_group() as group:
        for n in range(4):
            group.start_soon(write, f"w{n}")
        # The fake clock stands still, so a lost wake-up would hang here.
        with anyio.fail_after(60):
            seen = await follow(store, lambda: left == 0)
    assert [one.n for one in seen] == list(range(1, 121))
    assert (await store.read(lambda tx: tx.get(Cursor, "shared"))).n == 80


async def test_a_reader_sees_one_state_throughout(shared_home: Any) -> None:
    store = shared_home.open()
    inside, committed = threading.Event(), threading.Event()

    def look_twice(tx: Any) -> tuple[int, int]:
        before = tx.count(Project)
        inside.set()
        assert committed.wait(10)
        return before, tx.count(Project)

    async with anyio.create_task_group() as group:

        async def write() -> None:
            await eventually_async(inside.is_set)
            await store.transact("write", lambda tx: tx.insert(project()))
            committed.set()

        group.start_soon(write)
        assert await store.read(look_twice) == (0, 0)
    assert await store.read(lambda tx: tx.count(Project)) == 1


async def test_a_waiter_wakes_when_another_process_commits(shared_home: Any, start: Start) -> None:
    store = shared_home.open()
    await store.read(lambda tx: tx.last_event())
    writer = start(shared_home.address, "w")
    await told(writer, "ready")
    assert not await store.changed(0.05)
    began = time.monotonic()
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.to_thread.run_sync, tell, writer, 1)
        assert await store.changed(60)
    assert time.monotonic() - began < 30
    assert await store.read(lambda tx: tx.last_event()) == 1


async def test_a_commit_of_another_process_between_two_waits_is_not_lost(
    shared_home: Any, start: Start
) -> None:
    store = shared_home.open()
    await store.read(lambda tx: tx.last_event())  # from its first look on, a process is listening
    writer = start(shared_home.address, "w")
    await told(writer, "ready")
    tell(writer, 1)
    await told(writer, "done")
    assert await store.changed(10)
    tell(writer, 1)
    await told(writer, "done")
    assert await store.changed(10)


async def test_a_commit_between_two_waits_is_not_lost(store: Any) -> None:
    await store.transact("one", lambda tx: tx.append(event()))
    with anyio.fail_after(60):
        assert await store.changed(1000)
        await store.transact("two", lambda tx: tx.append(event()))
        assert await store.changed(1000)


async def test_a_commit_between_the_first_look_and_the_first_wait_is_not_lost(store: Any) -> None:
    await store.read(lambda tx: tx.last_event())

    async def other() -> None:
        await store.transact("other", lambda tx: tx.append(event()))
        assert await store.changed(1000)  # that another task was told already changes nothing for this one

    with anyio.fail_after(60):
        await asyncio.create_task(other())
        assert await store.changed(1000)


async def test_every_waiting_task_is_woken_by_each_commit(store: Any) -> None:
    woken: list[int] = []
    begun: list[int] = []

    async def wait(n: int) -> None:
        await store.read(lambda tx: tx.find(Project))  # from here on it is told of every commit
        begun.append(n)
        for _ in range(3):
            assert await store.changed(1000)
            woken.append(n)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for n in range(3):
                group.start_soon(wait, n)
            await eventually_async(lambda: len(begun) == 3)
            for commits in range(1, 4):
                await store.transact("write", lambda tx: tx.append(event()))
                # At least: a listener that connected anew says so too, because it may have missed something.
                await eventually_async(lambda commits=commits: len(woken) >= 3 * commits)
    assert sorted(woken) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


async def test_waiting_in_a_new_task_each_time_neither_misses_a_commit_nor_spins(store: Any) -> None:
    with anyio.fail_after(60):
        await store.transact("write", lambda tx: tx.append(event()))
        assert await asyncio.create_task(store.changed(1000))
        waiting = asyncio.create_task(store.changed(1000))
        for _ in range(10):
            await asyncio.sleep(0.01)
        assert not waiting.done()
        await store.transact("write", lambda tx: tx.append(event()))
        assert await waiting


async def test_a_waiter_sleeps_through_what_it_ignores_and_wakes_for_the_rest(store: Any) -> None:
    ignoring = frozenset({"routine"})
    await store.read(lambda tx: tx.last_event())
    with anyio.fail_after(60):
        for _ in range(3):
            await store.transact("routine", lambda tx: tx.append(event()))
        waiting = asyncio.create_task(store.changed(1000, ignoring=ignoring))
        await store.transact("routine", lambda tx: tx.append(event()))
        for _ in range(10):
            await asyncio.sleep(0.01)
        assert not waiting.done()
        await store.transact("news", lambda tx: tx.append(event()))
        assert await waiting


async def test_what_is_ignored_hides_nothing_that_came_before_it(store: Any) -> None:
    await store.read(lambda tx: tx.last_event())
    with anyio.fail_after(60):
        await store.transact("news", lambda tx: tx.append(event()))
        await store.transact("routine", lambda tx: tx.append(event()))
        assert await store.changed(1000, ignoring=frozenset({"routine"}))


async def test_a_commit_of_another_process_is_never_ignored(shared_home: Any, start: Start) -> None:
    store = shared_home.open()
    await store.read(lambda tx: tx.last_event())
    writer = start(shared_home.address, "w")
    await told(writer, "ready")
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.to_thread.run_sync, tell, writer, 1)
            assert await store.changed(1000, ignoring=frozenset({"w", "write"}))


async def test_whoever_has_not_looked_for_long_is_woken_whatever_it_ignores(store: Any) -> None:
    await store.read(lambda tx: tx.last_event())
    for _ in range(1001):
        store.transact_sync("routine", lambda tx: tx.append(event()))
    with anyio.fail_after(60):
        assert await store.changed(1000, ignoring=frozenset({"routine"}))


async def test_a_transaction_that_changes_nothing_wakes_nobody(home: Any) -> None:
    store = home.open()
    await store.transact("look", lambda tx: tx.last_event())
    waiting = asyncio.create_task(store.changed(0.05))
    if home.kind == "memory":
        await eventually_async(lambda: home.clock.sleepers == 1)
        home.clock.advance(0.05)
    assert await waiting is False


async def test_a_waiter_that_is_cancelled_leaves_nothing_behind(store: Any) -> None:
    with anyio.move_on_after(0.05):
        await store.changed(1000)
    await store.transact("write", lambda tx: tx.append(event()))
    assert await store.read(lambda tx: tx.last_event()) == 1


async def test_a_cancelled_writer_leaves_only_when_its_transaction_is_over(shared_home: Any) -> None:
    store = shared_home.open()
    inside, go_on = threading.Event(), threading.Event()

    def work(tx: Any) -> None:
        tx.append(event())
        inside.set()
        assert go_on.wait(10)

    for cancels in (1, 3):
        inside.clear()
        go_on.clear()
        writing = asyncio.create_task(store.transact("work", work))
        await eventually_async(inside.is_set)
        for _ in range(cancels):
            writing.cancel()
            await asyncio.sleep(0)
        assert not writing.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert store.read_sync(lambda tx: tx.last_event()) == (1 if cancels == 1 else 2)


async def test_the_socket_of_a_process_that_was_killed_is_removed(tmp_path: Path, start: Start) -> None:
    address = tmp_path / "loopwright.db"
    dead = tmp_path / "wake"
    dead.mkdir()
    script = "import socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind(sys.argv[1])"
    subprocess.run([sys.executable, "-c", script, "w-1-dead"], cwd=dead, check=True)
    assert [path.name for path in dead.iterdir()] == ["w-1-dead"]
    store = SqlStore.open(address)
    await store.transact("write", lambda tx: tx.append(event()))
    assert [path for path in dead.iterdir() if path.name == "w-1-dead"] == []
    assert len(list(dead.iterdir())) == 1
    await store.close()
    assert list(dead.iterdir()) == []


@pytest.mark.parametrize("proc_fd", [Path("/proc/self/fd"), Path("/nowhere")], ids=["descriptor", "stand-in"])
def test_a_home_with_a_long_path_wakes_too(tmp_path: Path, proc_fd: Path) -> None:
    if proc_fd != Path("/nowhere") and not proc_fd.is_dir():
        pytest.skip("this system has no /proc/self/fd")
    directory = tmp_path / ("long" * 20) / ("longer" * 20) / "wake"
    waiter, sender = SocketWake(directory, proc_fd=proc_fd), SocketWake(directory, proc_fd=proc_fd)
    sender.send()  # nobody waits yet, and that is no error
    signal = Signal()
    waiter.listen(signal)
    waiter.listen(signal)
    sender.send()
    eventually(lambda: signal._commits >= 1)
    for wake in (waiter, sender):
        wake.close()
    elsewhere = directory / "elsewhere"
    if elsewhere.exists():
        stand_in = Path(elsewhere.read_text())
        assert list(stand_in.iterdir()) == []
        stand_in.rmdir()


def test_a_waiter_that_does_not_read_never_blocks_a_commit(tmp_path: Path) -> None:
    import socket

    (tmp_path / "wake").mkdir()
    deaf = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    descriptor = os.open(tmp_path / "wake", os.O_RDONLY)
    deaf.bind(f"/proc/self/fd/{descriptor}/w-1-deaf")
    with deaf:
        wake = SocketWake(tmp_path / "wake")
        for _ in range(2000):
            wake.send()
        wake.close()
    os.close(descriptor)


async def test_waiting_costs_nothing(shared_home: Any) -> None:
    store = shared_home.open()
    await store.read(lambda tx: tx.last_event())
    before = time.process_time()
    assert not await store.changed(1.0)
    assert time.process_time() - before < 0.1
