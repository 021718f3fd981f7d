"""Many loops in one home: what a worker costs while nothing happens, and how long it takes to list them."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from bench.cases.keeper import end_keepers
from bench.instant import submission
from bench.measure import Measurement, Setting, Target
from bench.yard import Job, Yard
from loopwright.adapters.machine.host import new_id
from loopwright.adapters.store.sql import SqlStore
from loopwright.core.rows.model import Attempt, Cursor
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import AttemptState
from loopwright.engine.intake.submit import submit
from loopwright.engine.people import commands
from loopwright.ports import Base, PlannedTask, Tx

CASE = "loops"
REGISTERED = 1000
ACTIVE = 20
IDLE_PERCENT = 1.0
MEMORY_MB = 220.0
_TICKS = os.sysconf("SC_CLK_TCK")


def case(setting: Setting) -> Iterator[Measurement]:
    """Register the loops, let a few work on agents that sleep, and watch the worker do nothing."""
    registered = setting.pick(REGISTERED, 200)
    active = setting.pick(ACTIVE, 5)
    yard = Yard(root=setting.folder / "loops", jobs=(), slots=active).make()
    yard.home.mkdir()
    store = SqlStore.open(yard.home / "loopwright.db")
    register(yard, store, range(registered), active=active, seconds=900)
    worker = subprocess.Popen(
        yard.command("worker", "--slots", str(active)),
        cwd=yard.repository,
        env=yard.env(),
        stdout=subprocess.DEVNULL,
    )
    try:
        until(lambda: working(store) == active and _exported(store), 300)
        percent, memory = _idle(worker.pid, setting)
        lists = [_listing_s(yard) for _ in range(setting.repeats)]
        versions = [_version_s(yard) for _ in range(setting.repeats)]
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(60)
        end_keepers(yard.home)
        store.close_sync()
    yard.remove()
    told = f"{registered} loops registered, {active} active"
    yield Measurement(
        case=CASE,
        name=f"CPU of an idle worker, {told}",
        unit="% of a core",
        values=tuple(percent),
        target=Target(limit=IDLE_PERCENT, of="value"),
    )
    yield Measurement(
        case=CASE,
        name=f"resident memory of the worker, {told}",
        unit="MB",
        values=tuple(memory),
        target=Target(limit=MEMORY_MB, of="value"),
    )
    yield Measurement(
        case=CASE,
        name=f"`status --all --json`, {told}",
        unit="s",
        values=tuple(lists),
        against="the same program printing its version",
        baseline=tuple(versions),
    )


def register(yard: Yard, store: SqlStore, numbers: range, *, active: int, seconds: float) -> None:
    """Give the home loops, each with a plan of one task; all but the first few are stopped at once."""
    sha = yard.git("rev-parse", "HEAD") if yard.repository.is_dir() else ""

    def one(tx: Tx, n: int) -> None:
        job = Job(key="t0", seconds=seconds)
        asked = submission(yard.repository, f"loop-{n}", 1)
        task = PlannedTask(
            key="t0", title="Sleep", description=job.order, acceptance=asked.work.tasks[0].acceptance
        )
        options = {"command": {"command": f"/bin/sh {yard.agent} {{prompt_file}}", "prompt": "file"}}
        asked = replace(
            asked,
            base=Base(ref="trunk", sha=sha),
            work=replace(asked.work, tasks=(task,)),
            policy=Policy(agent="command", parallel=1, agents=options),
        )
        made = submit(tx, new_id, asked)
        if n - numbers.start >= active:
            command = commands.request(
                tx, new_id, actor="bench", verb="stop", target=made.plan.id, arguments={}
            )
            commands.apply(tx, new_id, command)

    for n in numbers:
        store.transact_sync("register", lambda tx, n=n: one(tx, n))  # type: ignore[misc]


def working(store: SqlStore) -> int:
    """Count the attempts whose agent should be running."""
    return store.read_sync(lambda tx: tx.count(Attempt, state=AttemptState.WORKING))


def until(condition: Callable[[], bool], patience_s: float) -> None:
    """Wait for something that is going to happen."""
    end = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError("it did not happen in time")
        time.sleep(0.05)


def _exported(store: SqlStore) -> bool:
    """Say whether the state files have everything: a worker that still writes them is not idle."""

    def load(tx: Tx) -> bool:
        cursor = tx.get(Cursor, "state-files")
        return cursor is not None and cursor.n >= tx.last_event()

    return store.read_sync(load)


def _idle(pid: int, setting: Setting) -> tuple[list[float], list[float]]:
    time.sleep(setting.pick(10, 6))  # past the first exports
    found, resident = [], []
    window = setting.pick(20, 10)
    for _ in range(setting.repeats if not setting.quick else 1):
        before = _cpu_s(pid)
        time.sleep(window)
        found.append((_cpu_s(pid) - before) / window * 100)
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        resident.append(pages * os.sysconf("SC_PAGE_SIZE") / 1e6)
    return found, resident


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _listing_s(yard: Yard) -> float:
    began = time.monotonic()
    done = subprocess.run(
        yard.command("status", "--all", "--json"),
        cwd=yard.repository,
        env=yard.env(),
        capture_output=True,
        check=True,
    )
    took = time.monotonic() - began
    if not json.loads(done.stdout)["plans"]:
        raise RuntimeError("nothing was listed")
    return took


def _version_s(yard: Yard) -> float:
    began = time.monotonic()
    subprocess.run(
        yard.command("--version"), cwd=yard.repository, env=yard.env(), capture_output=True, check=True
    )
    return time.monotonic() - began
