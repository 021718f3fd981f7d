"""A control group for each run, where the system lets us make one: a process cannot hide in it.

Processes are told apart by their parents and by a marker in their environment. One that clears its environment and
kills the keeper has neither, but it stays in its group. It could leave that too, as any process of the same user can:
only a sandbox contains an agent that is out to do harm.
"""

from __future__ import annotations

import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME = "loopwright-"
_KILL_S = 5.0
_PAUSE_S = 0.01


def make(run_id: str) -> str:
    """Make the group of a run below our own; return its path, nothing where that is not possible."""
    ours = _ours()
    if not ours:
        return ""
    path = os.path.join(ours, _NAME + run_id)
    try:
        os.makedirs(path, exist_ok=True)
    except OSError:
        # Not ours to divide: no login session, a container, or an older system.
        return ""
    return path


def enter(path: str) -> None:
    """Put this process, and all that it starts, into a group."""
    try:
        with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write("0")
    except OSError:
        # The run is worth more than its group: it is found by its parents and its marker then.
        return


def end(path: str, run_id: str) -> int:
    """Kill whatever is left in the group of a run and remove it; return how many processes there were."""
    if os.path.basename(path) != _NAME + run_id or not os.path.exists(os.path.join(path, "cgroup.procs")):
        return 0
    killed: set[int] = set()
    until = time.monotonic() + _KILL_S
    while (living := list(_members(path))) and time.monotonic() < until:
        for pid in living:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            killed.add(pid)
        time.sleep(_PAUSE_S)
    remove(path)
    return len(killed)


def remove(path: str) -> None:
    """Remove a group that nothing is in any more."""
    for folder, _, _ in os.walk(path, topdown=False):
        try:
            os.rmdir(folder)
        except OSError:
            # Something is left in it: it stays until that has ended.
            return


def _members(path: str) -> Iterator[int]:
    for folder, _, _ in os.walk(path):
        try:
            with open(os.path.join(folder, "cgroup.procs"), encoding="ascii") as file:
                pids = file.read().split()
        except OSError:
            continue  # removed since it was listed
        # 0 is a process that we cannot see from here.
        yield from (int(pid) for pid in pids if pid != "0")


def _ours() -> str:
    """Return where our own group is, nothing where the system has no such groups."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            group = next((line[4:].rstrip("\n") for line in file if line.startswith("0::/")), None)
        with open("/proc/self/mountinfo", encoding="utf-8") as file:
            mounts = [line.split() for line in file if " - cgroup2 " in line]
    except OSError:
        return ""
    if group is None or not mounts:
        return ""
    root, place = mounts[0][3], mounts[0][4]
    inside = os.path.relpath("/" + group, root)
    return "" if inside.startswith("..") else os.path.normpath(os.path.join(place, inside))
