"""Starts processes that outlive us, each under a keeper of its own, and finds them again."""

import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import psutil

from loopwright.adapters import keeping_files
from loopwright.adapters.keeping_calls import NoAnswer, Watch, call
from loopwright.core.errors import CannotRun
from loopwright.keeper import places
from loopwright.ports import Exit, Failpoint, OutputLine, RunSpec, Sighting, no_failpoint

PROGRAM = Path(places.__file__).with_name("__main__.py")
START_S = 30.0
SWEEP_S = 10.0
PROC = Path("/proc/self").parent


class ProcessKeepers:
    """Keepers as processes of this machine."""

    def __init__(self, failpoint: Failpoint = no_failpoint) -> None:
        self._failpoint = failpoint

    async def start(self, spec: RunSpec) -> None:
        """Start a keeper unless there is a live one or an exit file already."""
        if self.look(spec.directory).state in {"alive", "exited"}:
            return
        self._failpoint("keeper.start.before")
        spec.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        problem = await anyio.to_thread.run_sync(_leave_a_keeper, spec)
        if problem:
            raise CannotRun(f"no keeper could be started in {spec.directory}: {problem}")
        self._failpoint("keeper.start.after")

    def look(self, directory: Path) -> Sighting:
        """Say what can be seen of a run now."""
        return keeping_files.look(directory)

    async def follow(self, directory: Path, offset: int = 0) -> AsyncIterator[OutputLine]:
        """Yield complete output lines from `offset`, waiting for more, until the run has ended.

        Where output was left out because of its limit or a full disk, one line on `err` says how much.
        """
        reader = keeping_files.OutputReader(directory, offset)
        async with Watch(directory) as watch:
            while True:
                # Asked before reading: a run that had ended by then can add nothing to what is read now.
                ended = self.look(directory).state != "alive"
                nothing = True
                for line in reader.lines():
                    nothing = False
                    yield line
                if not nothing:
                    await anyio.lowlevel.checkpoint()
                elif ended:
                    return
                else:
                    await watch.changed()

    async def wait(self, directory: Path) -> Exit:
        """Wait for the end of the run; a lost one is told as such, and nothing of it is touched."""
        async with Watch(directory) as watch:
            while (seen := self.look(directory)).state == "alive":
                await watch.changed()
        if seen.exit is not None:
            return seen.exit
        if seen.state == "absent":
            raise CannotRun(f"nothing was ever started in {directory}")
        return keeping_files.lost_exit(directory)

    async def write(self, directory: Path, n: int, data: str, *, close: bool = False) -> None:
        """Write to the process's stdin; the same number twice writes once.

        A run that has ended takes no more input, which its exit tells better than an error here.
        """
        try:
            answer = await call(directory, {"op": "write", "n": n, "data": data, "close": close})
        except NoAnswer as problem:
            if self.look(directory).state == "alive":
                raise CannotRun(f"write {n} got no answer; the run in {directory} goes on") from problem
            return
        if not answer["ok"]:
            raise CannotRun(f"write {n} was refused: {answer['error']}")

    async def end(self, directory: Path, *, polite: bool = True) -> Exit:
        """End the whole process tree, politely first, and return how it ended.

        A lost run is settled here: what carries its marker is killed, and an exit file says so from now on.
        """
        while (seen := self.look(directory)).exit is None:
            if seen.state == "absent":
                raise CannotRun(f"nothing was ever started in {directory}")
            if seen.state == "lost":
                await self._settle(directory)
            elif await _asked_to_end(directory, polite=polite):
                await self.wait(directory)
            else:
                # Only just started, or on its way out: its socket is not there yet, or no longer.
                await anyio.sleep(0.05)
        return seen.exit

    async def _settle(self, directory: Path) -> None:
        run_id = (keeping_files.read_status(directory) or {}).get("run_id")
        if run_id is not None:
            await self.sweep(run_id)
        await anyio.to_thread.run_sync(keeping_files.settle_lost, directory)

    async def sweep(self, run_id: str) -> int:
        """Kill every process that carries this run's marker; return how many there were."""
        return await anyio.to_thread.run_sync(_kill_marked, run_id)


async def _asked_to_end(directory: Path, *, polite: bool) -> bool:
    try:
        await call(directory, {"op": "end", "polite": polite})
    except NoAnswer:
        return False
    return True


def _leave_a_keeper(spec: RunSpec) -> str:
    """Run the starting half of a keeper; return what went wrong, or nothing."""
    value = {
        **asdict(spec),
        "directory": str(spec.directory),
        "cwd": str(spec.cwd),
        "env": dict(spec.env),
        "activity_paths": [str(path) for path in spec.activity_paths],
    }
    # Only the marker of a run that we are part of ourselves goes on: then our keepers end with that run.
    environment = {name: value for name, value in os.environ.items() if name == places.MARKER}
    try:
        # Over a pipe, so that no secret is ever in a file, and half a spec is never used.
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(PROGRAM), str(spec.directory)],
            input=json.dumps(value).encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
            cwd="/",
            timeout=START_S,
            start_new_session=True,
        )
    except OSError as problem:
        return str(problem)
    except subprocess.TimeoutExpired:
        return f"it did not take its lock within {START_S:.0f} s"
    if done.returncode in {places.STARTED, places.HELD, places.ENDED_ALREADY}:
        return ""
    return done.stderr.decode(errors="replace").strip()[-2000:] or f"exit status {done.returncode}"


def _kill_marked(run_id: str) -> int:
    ourselves = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    killed: set[psutil.Process] = set()
    until = time.monotonic() + SWEEP_S
    # Again until nothing is found: a process may have forked between being seen and being killed.
    while found := [process for process in _marked(run_id) if process.pid not in ourselves]:
        for process in found:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
            killed.add(process)
        psutil.wait_procs(found, timeout=0.5)
        if time.monotonic() > until:
            pids = ", ".join(str(process.pid) for process in found)
            raise CannotRun(f"these processes of run {run_id} could not be killed: {pids}")
    return len(killed)


def _marked(run_id: str) -> list[psutil.Process]:
    found = []
    for process in _perhaps_marked(run_id):
        try:
            if process.environ().get(places.MARKER) == run_id and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
            continue
    return found


def _perhaps_marked(run_id: str) -> Iterator[psutil.Process]:
    """Yield the processes to look at: where /proc is, only those whose environment names the run."""
    if not PROC.is_dir():
        yield from psutil.process_iter()
        return
    # Several times per attempt, among all processes of the machine: psutil's own way takes ten times as long.
    for folder in PROC.glob("[0-9]*"):
        try:
            if run_id.encode() in (folder / "environ").read_bytes():
                yield psutil.Process(int(folder.name))
        except (OSError, psutil.NoSuchProcess):
            continue
