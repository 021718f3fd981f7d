"""Sees the processes of a run, their signs of life, and ends them. Linux through /proc; elsewhere the process group."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time

from loopwright.keeper.places import MARKER

TYPE_CHECKING = False


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


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


# Ends a process tree in order: a polite word, then TERM, then KILL of everything that can be found.

STEP_S = 0.05
KILL_PATIENCE_S = 10.0


class Ending:
    """Goes through the stages, one step at a time, so that output is read in the meantime."""

    def __init__(self, tree: Tree, *, grace_s: float, ask: Callable[[], bool] | None, now_at: str) -> None:
        self._tree = tree
        self._grace_s = grace_s
        self._ask = ask
        self._stage = now_at
        self._until = 0.0
        self._told: set[tuple[int, int]] = set()
        self.due = 0.0
        self.survivors: list[Process] = []
        self._enter(now_at)

    def hurry(self) -> None:
        """Skip what is polite."""
        if self._stage != "kill":
            self._enter("kill")

    def step(self, *, child_gone: bool) -> bool:
        """Do what is due; return whether nothing is left to end."""
        now = time.monotonic()
        if now < self.due:
            return False
        self.due = now + STEP_S
        if self._stage == "polite":
            if child_gone or now >= self._until:
                self._enter("term")
            return False
        living = self._tree.living()
        if not living and child_gone:
            if not SEES_PROCESSES:
                self._tree.signal_group(signal.SIGKILL)
            return True
        if self._stage == "term":
            fresh = [process for process in living if process.key not in self._told]
            self._told.update(process.key for process in fresh)
            self._tree.signal(fresh, signal.SIGTERM)
            if now >= self._until:
                self._enter("kill")
            return False
        self._tree.signal(living, signal.SIGKILL)
        self._tree.signal_group(signal.SIGKILL)
        if now >= self._until:
            self.survivors = living
            return True
        return False

    def _enter(self, stage: str) -> None:
        if stage == "polite" and (self._ask is None or not self._ask()):
            stage = "term"
        if stage == "term" and not SEES_PROCESSES:
            self._tree.signal_group(signal.SIGTERM)
        self._stage = stage
        self._until = time.monotonic() + (KILL_PATIENCE_S if stage == "kill" else self._grace_s)
        self.due = 0.0


# Signs of life: output, input, CPU time of the tree, changes of files. Silence alone is not death.

SAMPLE_S = 15.0
ENTRIES_PER_STEP = 2000
CPU_SHARE = 0.002
"""Less than this share of one core is the ticking of timers in a program that hangs."""
TICK_S = 0.01


class Signs:
    """Remembers when each sign was last seen; looks for the costly ones only as often as the limit needs."""

    def __init__(self, tree: Tree, paths: list[str], idle_s: float | None, *, sees_cpu: bool) -> None:
        self._tree = tree
        self._paths = paths
        # Where CPU time cannot be seen, a silent run cannot be told from a dead one: it is left to the hard limit.
        self.idle_s = idle_s if sees_cpu else None
        self._every = SAMPLE_S if idle_s is None else min(SAMPLE_S, idle_s / 4)
        now = time.monotonic()
        self.last = now
        self._due = now + self._every
        self.seen_at: dict[str, float] = {}
        self._cpu: dict[tuple[int, int], float] = {}  # nothing yet: the child was started just now
        self._cpu_at = now
        self._files: tuple[int, int] | None = None
        self._walk: Iterator[tuple[int, int] | None] | None = self._walking() if paths else None

    def mark(self, kind: str) -> None:
        """Note a sign of life."""
        self.last = time.monotonic()
        self.seen_at[kind] = time.time()

    def excuse(self, seconds: float) -> None:
        """Leave out a time in which the keeper itself did not run."""
        self.last = min(self.last + seconds, time.monotonic())
        self._cpu_at += seconds

    def next_due(self) -> float:
        """Return when `sample` should be called next, on the monotonic clock."""
        return 0.0 if self._walk is not None else self._due

    def sample(self, now: float) -> bool:
        """Look for signs of life if it is time to; return whether the run has been idle for too long."""
        if self._walk is None:
            if now < self._due:
                return False
            self._sample_cpu(now)
            if self._paths:
                self._walk = self._walking()
        if self._walk is not None:
            result = next(self._walk)
            if result is None:
                return False
            self._walk = None
            if self._files is not None and result != self._files:
                self.mark("files")
            self._files = result
        self._due = now + self._every
        return self.idle_s is not None and time.monotonic() - self.last >= self.idle_s

    def _sample_cpu(self, now: float) -> None:
        cpu = self._tree.cpu()
        used = sum(max(0.0, spent - self._cpu.get(key, 0.0)) for key, spent in cpu.items())
        if used >= max(TICK_S, CPU_SHARE * (now - self._cpu_at)):
            self.mark("cpu")
        self._cpu = cpu
        self._cpu_at = now

    def _walking(self) -> Iterator[tuple[int, int] | None]:
        """Walk through the folders in small steps, and yield a fingerprint of sizes and times at the end."""
        entries = fingerprint = 0
        folders = list(self._paths)
        while folders:
            folder = folders.pop()
            try:
                with os.scandir(folder) as listing:
                    for entry in listing:
                        found = entry.stat(follow_symlinks=False)
                        fingerprint += hash((entry.name, found.st_mtime_ns, found.st_size, found.st_ino))
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
                        entries += 1
                        if entries % ENTRIES_PER_STEP == 0:
                            yield None
            except OSError:
                # A folder that vanishes under the walk has changed, and that shows in the count.
                continue
        yield (entries, fingerprint)
