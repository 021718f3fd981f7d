"""kill -9 with many agents at work: how long until all are adopted and new work is started again."""

import subprocess
import time
from collections.abc import Iterator, Sequence

from bench.cases.keeper import end_keepers
from bench.cases.loops import register, until, working
from bench.measure import Measurement, Setting, Target
from bench.yard import Yard
from loopwright.adapters.store.sql import SqlStore

CASE = "recovery"
IN_FLIGHT = 50
LIMIT_S = 1.5


def case(setting: Setting) -> Iterator[Measurement]:
    """Start agents, kill the worker, hand in one more plan while nobody is there, and start a new worker."""
    flying = setting.pick(IN_FLIGHT, 10)
    adopted, scheduling = [], []
    for n in range(1 if setting.quick else setting.repeats):
        first, second = once(setting, flying, n, ("worker",))
        adopted.append(first)
        scheduling.append(second)
    yield Measurement(
        case=CASE,
        name=f"kill -9 with {flying} agents at work: until all are adopted, start of the process included",
        unit="s",
        values=tuple(adopted),
    )
    yield Measurement(
        case=CASE,
        name=f"the same until new work is started ({flying} in flight)",
        unit="s",
        values=tuple(scheduling),
        target=Target(limit=LIMIT_S, of="value"),
    )


def once(setting: Setting, flying: int, n: int, program: Sequence[str]) -> tuple[float, float]:
    """Do it with a worker or a daemon; return the seconds until all agents are adopted, and until new work starts."""
    yard = Yard(root=setting.folder / f"recovery-{n}", jobs=(), slots=flying + 5).make()
    yard.home.mkdir()
    store = SqlStore.open(yard.home / "loopwright.db")
    register(yard, store, range(flying), active=flying, seconds=900)
    command = yard.command(*program, "--slots", str(flying + 5))

    def worker() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, cwd=yard.repository, env=yard.env(), stdout=subprocess.DEVNULL)

    first = worker()
    try:
        until(lambda: working(store) == flying and _alive(yard) == flying, 300)
    finally:
        first.kill()
        first.wait()
    register(yard, store, range(flying, flying + 1), active=1, seconds=900)
    seen = store.read_sync(lambda tx: tx.last_event())
    began = time.monotonic()
    second = worker()
    adopted = scheduling = 0.0
    try:
        while not (adopted and scheduling):
            events = store.read_sync(
                lambda tx: tx.events(after=seen, types=("attempt_leg_started", "task_started"))
            )
            legs = {event.attempt for event in events if event.type == "attempt_leg_started"}
            if not adopted and len(legs) >= flying:
                adopted = time.monotonic() - began
            if not scheduling and any(event.type == "task_started" for event in events):
                scheduling = time.monotonic() - began
            if time.monotonic() - began > 120:
                raise RuntimeError("nobody took over")
            time.sleep(0.005)
    finally:
        second.kill()
        second.wait()
        end_keepers(yard.home)
        store.close_sync()
    yard.remove()
    return adopted, scheduling


def _alive(yard: Yard) -> int:
    return sum(1 for _ in (yard.home / "runs").glob("*/socket"))
