"""Keepers are forked from a process that has the program loaded, and none of them can be told from one that was not."""

import gc
import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import anyio
import psutil
import pytest
from tests.integration.keeper.conftest import MakeSpec, first_line, is_running, keeper_of, text_of
from tests.waiting import eventually, eventually_async

from loopwright.adapters.processes.keepers import ProcessKeepers
from loopwright.adapters.processes.nursery import PROGRAM, Nursery
from loopwright.core.values.errors import CannotRun
from loopwright.keeper import nursery, places
from loopwright.ports import RunSpec

UP = "echo up; read x; echo $x"
OF_OTHERS: set[int] = set()


@pytest.fixture(autouse=True)
def _leave_out_those_of_other_tests() -> None:
    OF_OTHERS.clear()
    OF_OTHERS.update(one.pid for one in nurseries())


@pytest.fixture
def keepers() -> ProcessKeepers:
    """Keepers that have not started anything yet."""
    return ProcessKeepers()


def nurseries(of: int | None = None) -> list[psutil.Process]:
    """Return the nurseries among the children of a process."""
    found = []
    for child in psutil.Process(of).children():
        try:
            if child.pid not in OF_OTHERS and child.cmdline()[-1:] == [nursery.OPTION]:
                found.append(child)
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return found


def the_nursery() -> psutil.Process:
    # Those of keepers that earlier tests left to the collector end with it.
    gc.collect()
    (found,) = nurseries()
    return found


def in_json(spec: RunSpec) -> bytes:
    return json.dumps({**asdict(spec), "directory": ""}, default=os.fspath).encode()


def held(spec: RunSpec) -> list[str]:
    """Return what a keeper holds open, without the names and numbers that differ between any two."""
    links = []
    for link in Path(f"/proc/{keeper_of(spec).pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since they were listed
            links.append(link.readlink())
    return sorted(str(link).replace(str(spec.directory), "RUN").partition(":[")[0] for link in links)


async def test_one_process_starts_every_keeper_and_leaves_no_zombie(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    specs = [make_spec(sh=UP, stdin="pipe") for _ in range(3)]
    for spec in specs:
        await keepers.start(spec)
    process = the_nursery()
    for spec in specs:
        await first_line(keepers, spec)
        assert keeper_of(spec).cmdline() == process.cmdline()
        assert keeper_of(spec).ppid() != process.pid
        assert os.getsid(keeper_of(spec).pid) == keeper_of(spec).pid
    await eventually_async(lambda: not process.children())
    assert {link.name for link in Path(f"/proc/{process.pid}/fd").iterdir()} == {"0", "1", "2"}
    assert os.getsid(process.pid) == process.pid
    assert process.cwd() == "/"


async def test_a_keeper_holds_what_one_that_was_started_alone_holds(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    before, forked, alone = (make_spec(sh=UP, stdin="pipe") for _ in range(3))
    for spec in (before, forked):
        await keepers.start(spec)
    alone.directory.mkdir(mode=0o700)
    subprocess.run([sys.executable, "-I", "-S", PROGRAM, alone.directory], input=in_json(alone), check=True)
    for spec in (forked, alone):
        await first_line(keepers, spec)

    def alike() -> bool:
        # The connection of whoever read that line comes and goes a moment later.
        first, second = held(forked), held(alone)
        return first == second and first.count("socket") == 1

    await eventually_async(alike)
    assert keeper_of(forked).cmdline() != keeper_of(alone).cmdline()


async def test_a_killed_nursery_is_replaced_and_no_start_fails(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    specs = [make_spec(sh=UP, stdin="pipe") for _ in range(3)]
    await keepers.start(specs[0])
    first = the_nursery()
    first.kill()
    await keepers.start(specs[1])
    assert not nurseries()
    assert not is_running(first.pid)
    await keepers.start(specs[2])
    assert the_nursery().pid != first.pid
    for spec in specs:
        await keepers.write(spec.directory, 1, "still here\n")
        assert await text_of(keepers, spec) == ["up", "still here"]


async def test_a_nursery_that_does_not_answer_is_given_up_and_the_keeper_started_without_it(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    impatient = Nursery()
    first, second = make_spec(sh="echo up"), make_spec(sh="echo up too", stdin_data="x" * 1_000_000)
    for spec in (first, second):
        spec.directory.mkdir()
    impatient.start(first.directory, in_json(first))
    process = the_nursery()
    process.suspend()
    impatient._answer_s = 0.3  # not from the start on: a busy machine takes longer than that to answer at all
    assert impatient.start(second.directory, in_json(second)).status == places.STARTED
    assert not psutil.pid_exists(process.pid)
    assert await text_of(keepers, second) == ["up too"]


async def test_a_nursery_that_stands_still_is_not_waited_for_when_it_is_closed(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    await keepers.start(make_spec(sh="true"))
    process = the_nursery()
    process.suspend()
    keepers.close()
    assert not psutil.pid_exists(process.pid)


async def test_starts_at_once_do_not_mix(keepers: ProcessKeepers, make_spec: MakeSpec) -> None:
    specs = [make_spec(sh=f"echo {n}", stdin_data="x" * 300_000) for n in range(6)]
    async with anyio.create_task_group() as group:
        for spec in specs:
            group.start_soon(keepers.start, spec)
    assert [await text_of(keepers, spec) for spec in specs] == [[str(n)] for n in range(6)]
    the_nursery()


async def test_what_a_start_failed_of_is_told_and_the_next_one_works(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    bad, locked, good = make_spec(), make_spec(sh="true"), make_spec(sh="echo up")
    locked.directory.mkdir()
    (locked.directory / places.LOCK).mkdir()
    with pytest.raises(CannotRun, match="names no program"):
        await keepers.start(bad)
    with pytest.raises(CannotRun, match="IsADirectoryError"):
        await keepers.start(locked)
    process = the_nursery()
    await keepers.start(good)
    assert await text_of(keepers, good) == ["up"]
    assert the_nursery() == process


async def test_a_nursery_may_be_ready_before_the_first_keeper(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    keepers.get_ready()
    process = the_nursery()
    spec = make_spec(sh="echo up")
    await keepers.start(spec)
    assert await text_of(keepers, spec) == ["up"]
    assert the_nursery() == process


async def test_closing_ends_the_nursery_and_no_keeper(keepers: ProcessKeepers, make_spec: MakeSpec) -> None:
    spec, later = make_spec(sh=UP, stdin="pipe"), make_spec(sh="echo later")
    await keepers.start(spec)
    process = the_nursery()
    keepers.close()
    keepers.close()
    assert not psutil.pid_exists(process.pid)
    assert keepers.look(spec.directory).state == "alive"
    await keepers.start(later)
    assert await text_of(keepers, later) == ["later"]


async def test_keepers_that_nobody_closed_leave_no_nursery_behind(make_spec: MakeSpec) -> None:
    """A warning about something left open would fail this test."""
    keepers = ProcessKeepers()
    await keepers.start(make_spec(sh="true"))
    process = the_nursery()
    del keepers
    gc.collect()
    assert not psutil.pid_exists(process.pid)


async def test_a_nursery_is_of_the_run_that_its_worker_is_part_of(
    keepers: ProcessKeepers, make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside, inside = make_spec(sh=UP, stdin="pipe"), make_spec(sh=UP, stdin="pipe")
    await keepers.start(outside)
    monkeypatch.setenv(places.MARKER, "run_around-us")
    await keepers.start(inside)
    assert keeper_of(outside).environ() == {}
    assert keeper_of(inside).environ() == {places.MARKER: "run_around-us"}
    assert the_nursery().environ() == {places.MARKER: "run_around-us"}


async def test_a_fork_of_the_worker_has_a_nursery_of_its_own(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    ours, theirs = make_spec(sh="true"), make_spec(sh="true")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORKING, *map(str, (ours.directory, theirs.directory))],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    mine, other, again = done.stdout.split()
    assert mine == again != other
    for spec in (ours, theirs):
        assert (await keepers.wait(spec.directory)).code == 0


FORKING = """
import json, os, sys
from pathlib import Path
from loopwright.adapters.processes.nursery import Nursery
from loopwright.core.values.policy import (Limits)
from dataclasses import asdict
from loopwright.ports import RunSpec
nursery = Nursery()
def start(directory):
    directory = Path(directory)
    directory.mkdir(exist_ok=True)
    spec = asdict(RunSpec(run_id=directory.name, directory=directory, argv=("/bin/true",), cwd=Path("/"), env={}))
    done = nursery.start(directory, json.dumps(spec, default=os.fspath).encode())
    assert done.status in {0, 10, 11}, done
    print(nursery._process.pid, flush=True)
start(sys.argv[1])
child = os.fork()
if not child:
    start(sys.argv[2])
    nursery.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
start(sys.argv[1])
"""

WORKER = """
import sys, anyio
from pathlib import Path
from loopwright.adapters.processes.keepers import ProcessKeepers
from loopwright.ports import RunSpec
async def main(directory):
    keepers = ProcessKeepers()
    await keepers.start(RunSpec(run_id=sys.argv[2], directory=directory, argv=("/bin/sh", "-c", sys.argv[3]),
        cwd=directory, env={"PATH": "/bin"}, stdin="pipe"))
    print("started", flush=True)
    await anyio.sleep_forever()
anyio.run(main, Path(sys.argv[1]))
"""


async def test_a_killed_worker_takes_its_nursery_along_and_the_keeper_is_adopted(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec(sh="true")
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, spec.directory, spec.run_id, UP], stdout=subprocess.PIPE
    )
    assert worker.stdout is not None
    guard = threading.Timer(30, worker.kill)
    guard.start()
    assert worker.stdout.readline() == b"started\n"
    guard.cancel()
    (process,) = nurseries(worker.pid)
    worker.kill()
    worker.communicate()
    await eventually_async(lambda: not is_running(process.pid))
    assert keepers.look(spec.directory).state == "alive"
    await keepers.write(spec.directory, 1, "adopted\n")
    assert await text_of(keepers, spec) == ["up", "adopted"]


def test_a_request_that_is_cut_off_anywhere_starts_nothing(make_spec: MakeSpec) -> None:
    spec = make_spec(sh="true")
    spec.directory.mkdir()
    asked = os.fsencode(spec.directory) + nursery.END + in_json(spec)
    line, theirs = socket.socketpair()
    with line:
        process = subprocess.Popen([sys.executable, "-I", "-S", PROGRAM, nursery.OPTION], stdin=theirs)
        theirs.close()
        for cut in (0, 5, len(os.fsencode(spec.directory)), len(asked) // 2, len(asked) - 1):
            answer = _answer(line, asked[:cut])
            assert b"spec cannot be used" in answer, cut
            assert answer.endswith(nursery.END + b"1")
        line.send(b"garbage")
        assert not list(spec.directory.iterdir())
        assert _answer(line, asked).endswith(nursery.END + b"0")
    assert process.wait(10) == 0
    eventually((spec.directory / places.EXIT).exists)


def _answer(line: socket.socket, asked: bytes) -> bytes:
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            socket.send_fds(line, [nursery.NOTE], [theirs.fileno()])
        ours.settimeout(30)
        ours.sendall(asked)
        ours.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: ours.recv(65536), b""))
