"""The processes that carry a run's marker in their environment: what a lost keeper left behind."""

import os
import time
from collections.abc import Collection
from typing import TYPE_CHECKING

from loopwright.core.values.errors import CannotRun
from loopwright.keeper import places
from loopwright.keeper.processes import content

if TYPE_CHECKING:  # it takes a megabyte, and nearly always nothing is found
    import psutil

SWEEP_S = 10.0
PROC = "/proc"


def kill_marked(run_ids: Collection[str]) -> int:
    """Kill them until none is found; return how many there were."""
    killed: set[int] = set()
    until = time.monotonic() + SWEEP_S
    # Again until nothing is found: a process may have forked between being seen and being killed.
    while (pids := _perhaps_marked(run_ids)) and (found := _marked(pids, run_ids)):
        # Only what was left behind needs it.
        import psutil

        for process in found:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
            killed.add(process.pid)
        psutil.wait_procs(found, timeout=0.5)
        if time.monotonic() > until:
            numbers = ", ".join(str(process.pid) for process in found)
            raise CannotRun(f"these processes of {', '.join(run_ids)} could not be killed: {numbers}")
    return len(killed)


def _marked(pids: Collection[int], run_ids: Collection[str]) -> "list[psutil.Process]":
    # Only what was left behind needs it.
    import psutil

    found = []
    for pid in pids:
        try:
            process = psutil.Process(pid)
            marked = process.environ().get(places.MARKER) in run_ids
            if marked and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
            continue
    if not found:
        return found
    ourselves = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    return [process for process in found if process.pid not in ourselves]


def _perhaps_marked(run_ids: Collection[str]) -> list[int]:
    """Return the processes to look at: where /proc is, only those whose environment names one of the runs."""
    if not os.path.isdir(PROC):  # noqa: PTH112 - a text, as below
        # Systems with /proc do without it.
        import psutil

        return psutil.pids()
    names = [run_id.encode() for run_id in run_ids]
    found = []
    # After every agent, among all processes of the machine: psutil's own way and pathlib's take many times as long.
    for pid in filter(str.isdigit, os.listdir(PROC)):  # noqa: PTH208
        try:
            environment = content(f"{PROC}/{pid}/environ")
        except OSError:
            continue
        if any(name in environment for name in names):
            found.append(int(pid))
    return found
