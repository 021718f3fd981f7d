"""The processes that carry a run's marker in their environment: what a lost keeper left behind."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from loopwright.core.errors import CannotRun
from loopwright.keeper import places

SWEEP_S = 10.0
PROC = Path("/proc/self").parent


def kill_marked(run_id: str) -> int:
    """Kill them until none is found; return how many there were."""
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
