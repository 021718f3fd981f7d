"""Starts processes that outlive us, each under its own keeper, and finds them again."""

import json
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread

from loopwright.adapters.processes import keeper_files
from loopwright.adapters.processes.keeper_calls import NoAnswer, Watch, call
from loopwright.adapters.processes.keeper_files import evidence_hash
from loopwright.adapters.processes.marked_processes import kill_marked
from loopwright.adapters.processes.nursery import START_S, Nursery
from loopwright.adapters.sandbox.container import remove_of_run
from loopwright.core.values.documents import document
from loopwright.core.values.errors import CannotRun
from loopwright.keeper import cgroup, places
from loopwright.ports import Exit, Failpoint, OutputLine, RunSpec, Sighting, no_failpoint


class ProcessKeepers:
    """Keepers as processes of this machine."""

    def __init__(
        self,
        failpoint: Failpoint = no_failpoint,
        *,
        loads: Path | None = None,
        containers: Path | None = None,
    ) -> None:
        """Start keepers; runs of the Python program `loads`, with one argument, start without loading it again.

        `containers` is the folder with the names of those that runs may have left.
        """
        self._failpoint = failpoint
        self._containers = containers
        self._nursery = Nursery(loads=loads)

    def get_ready(self) -> None:
        """Load the keeper's program beside whatever we do until the first one is needed."""
        self._nursery.get_ready()

    async def start(self, spec: RunSpec) -> None:
        """Start a keeper unless there is a live one or an exit file already."""
        if self.look(spec.directory).state in {"alive", "exited"}:
            return
        self._failpoint("keeper.start.before")
        spec.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, text in spec.files.items():
            (spec.directory / name).write_text(text)
        problem = await anyio.to_thread.run_sync(_leave_a_keeper, self._nursery, spec)
        if problem:
            raise CannotRun(f"no keeper could be started in {spec.directory}: {problem}")
        self._failpoint("keeper.start.after")

    def look(self, directory: Path) -> Sighting:
        """Return what can be seen of a run now."""
        return keeper_files.look(directory)

    async def follow(self, directory: Path, offset: int = 0) -> AsyncIterator[OutputLine]:
        """Yield complete output lines from `offset`, waiting for more, until the run has ended.

        Where output was left out because of its limit or a full disk, one line on `err` says how much.
        """
        reader = keeper_files.OutputReader(directory, offset)
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
        return keeper_files.lost_exit(directory)

    async def write(
        self, directory: Path, n: int, data: str, *, close: bool = False, stops: bool = False
    ) -> None:
        """Write to the process's stdin; the same number twice writes once.

        With `stops` the keeper ends the process when it has not left by itself within its grace time.
        A run that has ended takes no more input, which its exit tells better than an error here.
        """
        try:
            asked = {"op": "write", "n": n, "data": data, "close": close, "stops": stops}
            answer = await call(directory, asked)
        except NoAnswer as problem:
            if self.look(directory).state == "alive":
                raise CannotRun(f"write {n} got no answer; the run in {directory} continues") from problem
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
        status = keeper_files.read_status(directory) or {}
        run_id = status.get("run_id")
        if run_id is not None:
            await self.sweep(run_id)
            await anyio.to_thread.run_sync(cgroup.end, status.get("cgroup", ""), run_id)
        await anyio.to_thread.run_sync(keeper_files.settle_lost, directory)

    async def sweep(self, *run_ids: str) -> int:
        """Kill every process that carries the marker of one of these runs; return how many there were."""
        killed = await anyio.to_thread.run_sync(kill_marked, run_ids)
        if self._containers is not None and self._containers.is_dir():
            for run_id in run_ids:
                await anyio.to_thread.run_sync(remove_of_run, self._containers, run_id)
        return killed

    def evidence(self, directory: Path) -> str:
        """Return one hash for all that is written down of a run that has ended, its output and its prompt apart."""
        return evidence_hash(directory)

    def close(self) -> None:
        """Let go of what is kept only to start the next keeper sooner; the keepers continue."""
        self._nursery.close()


async def _asked_to_end(directory: Path, *, polite: bool) -> bool:
    try:
        await call(directory, {"op": "end", "polite": polite})
    except NoAnswer:
        return False
    return True


def _leave_a_keeper(nursery: Nursery, spec: RunSpec) -> str:
    """Run the starting half of a keeper; return what went wrong, or nothing."""
    value = document(spec)
    del value["files"]  # they are written already
    try:
        started = nursery.start(spec.directory.absolute(), json.dumps(value, default=os.fspath).encode())
    except OSError as problem:
        return str(problem)
    except subprocess.TimeoutExpired:
        return f"it did not take its lock within {START_S:.0f} s"
    if started.status in {places.STARTED, places.HELD, places.ENDED_ALREADY}:
        return ""
    return started.said.strip()[-2000:] or f"exit status {started.status}"
