"""Sees the processes of a run and signals them. Linux through /proc and prctl; elsewhere only the process group."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

from loopwright.keeper.places import MARKER

SEES_PROCESSES = os.path.exists("/proc/self/stat")
_TICKS = os.sysconf("SC_CLK_TCK")
_PIECE = 1 << 13
"""More than nearly every file of /proc has: setting aside more for each of them takes longer than to read it."""
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    if _libc is not None:
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with(parent: int) -> None:
    """Have this process killed when its parent ends, also when that has happened already."""
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)


class Process:
    """One line of /proc/<pid>/stat."""

    __slots__ = ("_times", "group", "parent", "pid", "session", "started", "zombie")

    def __init__(self, pid: int, stat: bytes) -> None:
        fields = stat.rpartition(b")")[2].split(None, 20)
        self.pid = pid
        self.zombie = fields[0] in b"ZX"
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.session = int(fields[3])
        self._times = fields[11:15]
        self.started = int(fields[19])

    @property
    def cpu_s(self) -> float:
        """Its CPU time, with that of the children it waited for: their work is a sign of life too."""
        return sum(map(int, self._times)) / _TICKS

    @property
    def key(self) -> tuple[int, int]:
        """The pid with its start time: unique, where a pid alone is used again."""
        return (self.pid, self.started)


def look(pid: int) -> Process | None:
    """Return one process, if it is there and can be seen."""
    try:
        return Process(pid, content(f"/proc/{pid}/stat"))
    except (OSError, IndexError, ValueError):
        return None


def content(path: str) -> bytes:
    """Return what is in a file of /proc."""
    # Of every process of the machine, at the end of every run: a file object costs more than the reading.
    fd = os.open(path, os.O_RDONLY)
    try:
        content = piece = os.read(fd, _PIECE)
        while len(piece) == _PIECE:
            piece = os.read(fd, _PIECE)
            content += piece
        return content
    finally:
        os.close(fd)


def numbers_of(pid: int) -> str:
    """Return what names the process numbers that a process sees; nothing where that cannot be known."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""


def everything() -> dict[int, Process]:
    """Return every process that can be seen now."""
    if not SEES_PROCESSES:
        return {}
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            process = look(int(name))
            if process is not None:
                found[process.pid] = process
    return found


def descendants(root: int, seen: dict[int, Process]) -> list[Process]:
    """Return the children of `root`, their children, and so on."""
    children: dict[int, list[Process]] = {}
    for process in seen.values():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = list(children.get(root, ()))
    for process in found:
        found.extend(children.get(process.pid, ()))
    return found


class Tree:
    """All processes of one run: by descent, session, group or inherited marker."""

    def __init__(self, run_id: str, *, spares_child: bool = False) -> None:
        self._entry = b"\0" + f"{MARKER}={run_id}".encode() + b"\0"
        self._unmarked: set[tuple[int, int]] = set()
        self.keeper = os.getpid()
        ourselves = look(self.keeper)
        self._since = ourselves.started if ourselves is not None else 0
        self._spares_child = spares_child
        """The direct child keeps a sandbox: asked to end, it would kill everything in there without a word."""
        self._numbers = numbers_of(self.keeper) if spares_child else ""
        self.child: int | None = None
        """The pid of the direct child. It is reaped last, so no other process can get it."""

    def living(self) -> list[Process]:
        """Return what still runs, and wait for those that ended."""
        seen = everything()
        found = {process.pid: process for process in descendants(self.keeper, seen)}
        for process in seen.values():
            if process.pid not in found and (self._is_ours(process) or self._is_marked(process)):
                found[process.pid] = process
        found.pop(self.keeper, None)
        self._unmarked &= {process.key for process in seen.values()}
        for process in found.values():
            if process.zombie and process.parent == self.keeper and process.pid != self.child:
                os.waitpid(process.pid, os.WNOHANG)
        return [process for process in found.values() if not process.zombie]

    def has(self, pid: int) -> bool:
        """Return whether a process is one of the run; one that is gone already may have been."""
        process = caller = look(pid)
        if caller is None or self._is_ours(caller) or self._is_marked(caller):
            return True
        while process is not None and process.pid != self.keeper:
            process = look(process.parent)
        return process is not None

    def cpu(self) -> dict[tuple[int, int], float]:
        """Return the CPU time of each process that descends from the keeper."""
        return {process.key: process.cpu_s for process in descendants(self.keeper, everything())}

    def signal(self, processes: list[Process], number: int) -> None:
        """Send a signal to these processes, as far as they are still the same."""
        for process in processes:
            if self._spares_child and number != signal.SIGKILL and self._keeps_sandbox(process):
                continue
            self._send(process, number)

    @staticmethod
    def _send(process: Process, number: int) -> None:
        now = look(process.pid)
        if now is not None and now.key == process.key:
            try:
                os.kill(process.pid, number)
            except (ProcessLookupError, PermissionError):
                return

    def signal_group(self, number: int) -> None:
        """Send a signal to the child's own process group, as a terminal would."""
        if self._spares_child and number != signal.SIGKILL:
            for process in everything().values():
                if process.group == self.child and process.pid != self.child:
                    self._send(process, number)
        elif self.child is not None:
            try:
                os.killpg(self.child, number)
            except (ProcessLookupError, PermissionError):
                return

    def _keeps_sandbox(self, process: Process) -> bool:
        """Return whether a process is outside the sandbox of the run: the child, or one that helps it."""
        return process.pid == self.child or numbers_of(process.pid) == self._numbers != ""

    def _is_ours(self, process: Process) -> bool:
        return self.child is not None and self.child in {process.session, process.group}

    def _is_marked(self, process: Process) -> bool:
        # What was there before the child cannot have inherited the marker from it. Without a child it is an earlier
        # keeper's processes that are looked for.
        if process.key in self._unmarked or (self.child is not None and process.started < self._since):
            return False
        try:
            marked = self._entry in b"\0" + content(f"/proc/{process.pid}/environ") + b"\0"
        except OSError:
            marked = False
        if not marked:
            self._unmarked.add(process.key)
        return marked
