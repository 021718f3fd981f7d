"""The keeper of one run: its start, its memory, and how fast it records an agent that prints a lot."""

import asyncio
import os
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Measurement, Setting, Target, taken_in_turn
from bench.yard import Job, Yard
from loopwright.adapters.processes.keepers import ProcessKeepers
from loopwright.core.values.policy import Limits
from loopwright.ports import RunSpec

CASE = "keeper"
KEEPER_MB = 15.0
GROWTH_MB = 20.0
LINE = "what an agent says while it works, one line of many"


def spec(directory: Path, argv: tuple[str, ...]) -> RunSpec:
    """Return how to keep a command."""
    return RunSpec(
        run_id=directory.name,
        directory=directory,
        argv=argv,
        cwd=directory.parent,
        env={"PATH": os.environ["PATH"]},
        limits=Limits(),
    )


def starter_cpu_s(folder: Path, count: int) -> float:
    """Return the processor time of the starting half of a keeper, on average, with its share of loading it once."""
    keepers = ProcessKeepers()

    async def start() -> float:
        before = _children_s()
        for n in range(count):
            await keepers.start(spec(folder / f"run_starter_{n}", ("/bin/true",)))
        # The process that they are forked from counts when it is waited for.
        keepers.close()
        took = _children_s() - before
        for n in range(count):
            await keepers.wait(folder / f"run_starter_{n}")
        return took

    return asyncio.run(start()) / count


def case(setting: Setting) -> Iterator[Measurement]:
    """Start keepers, weigh them, and let them record."""
    folder = setting.place("keepers")
    count = setting.pick(30, 8)
    starts, sizes, shared = asyncio.run(_started(folder, count))
    plain = tuple(_plain_start_s() for _ in range(count))
    yield Measurement(
        case=CASE,
        name="start of a keeper",
        unit="ms",
        values=tuple(value * 1000 for value in starts),
        against="starting /bin/true",
        baseline=tuple(value * 1000 for value in plain),
    )
    yield Measurement(
        case=CASE,
        name="resident memory of a keeper",
        unit="MB",
        values=tuple(value / 1e6 for value in sizes),
        target=Target(limit=KEEPER_MB, of="value"),
    )
    yield Measurement(
        case=CASE,
        name="the same, pages that keepers share counted once",
        unit="MB",
        values=tuple(value / 1e6 for value in shared),
    )
    yield _recording(setting, folder)
    yield _growth(setting)


async def _started(folder: Path, count: int) -> tuple[list[float], list[int], list[int]]:
    keepers = ProcessKeepers()
    starts = []
    directories = [folder / f"run_kept_{n}" for n in range(count)]
    for directory in directories:
        began = time.monotonic()
        await keepers.start(spec(directory, ("/bin/sleep", "600")))
        starts.append(time.monotonic() - began)
    await asyncio.sleep(1.0)  # past the first turns of the last one
    pids = [keepers.look(directory).pid for directory in directories]
    memory = [_memory(pid) for pid in pids if pid]
    for directory in directories:
        await keepers.end(directory, polite=False)
    return starts, [one[0] for one in memory], [one[1] for one in memory]


def _memory(pid: int) -> tuple[int, int]:
    """Return the resident and the proportional size of a process."""
    fields = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, _, rest = line.partition(":")
        fields[name] = int(rest.split()[0]) * 1024
    return fields["Rss"], fields["Pss"]


def _plain_start_s() -> float:
    began = time.monotonic()
    subprocess.run(["/bin/true"], check=True)
    return time.monotonic() - began


def _recording(setting: Setting, folder: Path) -> Measurement:
    size = setting.pick(100_000_000, 20_000_000)
    line = f"yes '{LINE}' | head -c {size}"

    def kept(n: int) -> float:
        keepers = ProcessKeepers()
        directory = folder / f"run_printing_{n}"

        async def record() -> float:
            began = time.monotonic()
            await keepers.start(spec(directory, ("/bin/sh", "-c", line)))
            ended = await keepers.wait(directory)
            if ended.code != 0 or ended.output_bytes < size:
                raise RuntimeError(f"not recorded: {ended}")
            return time.monotonic() - began

        return asyncio.run(record())

    def plain(n: int) -> float:
        began = time.monotonic()
        with (folder / f"plain-{n}").open("wb") as file:
            subprocess.run(["/bin/sh", "-c", line], stdout=file, check=True)
            os.fsync(file.fileno())
        return time.monotonic() - began

    ours, theirs = taken_in_turn(setting.repeats, (kept, plain))
    return Measurement(
        case=CASE,
        name=f"recording an agent that prints {size // 1_000_000} MB",
        unit="MB/s",
        values=tuple(size / 1e6 / took for took in ours),
        against="the same into a file",
        baseline=tuple(size / 1e6 / took for took in theirs),
    )


def _growth(setting: Setting) -> Measurement:
    size = setting.pick(200_000_000, 20_000_000)

    def peak(prints: int) -> float:
        jobs = (Job(key="loud", seconds=0.1, prints=prints),)
        yard = Yard(root=setting.folder / f"loud-{prints}-{time.monotonic_ns()}", jobs=jobs).make()
        took = yard.run()
        yard.remove()
        return took.main.peak_bytes / 1e6

    loud, silent = taken_in_turn(setting.repeats, (lambda _: peak(size), lambda _: peak(0)))
    return Measurement(
        case=CASE,
        name=f"growth of the orchestrator's memory over an agent that prints {size // 1_000_000} MB",
        unit="MB",
        values=tuple(mine - other for mine, other in zip(loud, silent, strict=True)),
        target=Target(limit=GROWTH_MB, of="value"),
    )


def _children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def end_keepers(home: Path) -> None:
    """End every agent of a home: its keeper sees to its tree. For a home whose orchestrator was killed on purpose."""
    keepers = ProcessKeepers()
    alive = [one for one in (home / "runs").glob("*") if keepers.look(one).state == "alive"]
    for directory in alive:
        pid = keepers.look(directory).pid
        if pid:
            os.kill(pid, signal.SIGTERM)

    async def gone() -> None:
        for directory in alive:
            await keepers.wait(directory)

    asyncio.run(gone())
