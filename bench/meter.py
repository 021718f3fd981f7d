"""Run a command and account for every process of it.

`python -m bench.meter RESULT COMMAND...` makes itself the subreaper of the command, so that keepers, which outlive
their starter on purpose, end as children of the meter. The meter reads each ended child before it waits for it. At
that point the kernel still has the child's processor time (`/proc/PID/schedstat`, nanoseconds; `/proc/PID/stat` for
the main process, which has threads). `wait4` adds the time of everything that the child waited for.
The meter samples memory four times a second. It does not sample time, so it misses none.
"""

import ctypes
import json
import os
import platform
import resource
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from subprocess import run
from typing import Any

_PR_SET_CHILD_SUBREAPER = 36
_TICKS = os.sysconf("SC_CLK_TCK")
_LATE_S = 10.0
_LIBC = ctypes.CDLL(None, use_errno=True)
_KCMP, _KCMP_VM = {"x86_64": 312, "aarch64": 272}, 1
"""The number of the system call kcmp, which compares two processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """One process that ended as a child of the meter."""

    pid: int
    own_cpu_s: float
    below_cpu_s: float
    """The processor time of everything that it waited for."""
    peak_bytes: int
    """Its largest resident size, or that of the largest process that it waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metered:
    """What a command took."""

    code: int
    wall_s: float
    main: Ended
    others: tuple[Ended, ...]
    out: str
    memory_bytes: int = 0
    """The largest memory of everything that ran at a time; pages that processes share count once."""
    memory_parts: tuple[tuple[str, int], ...] = ()
    """What that memory was made of: the command of each process and its bytes, largest first."""

    @property
    def cpu_s(self) -> float:
        """Return the processor time of all processes together."""
        return sum(one.own_cpu_s + one.below_cpu_s for one in (self.main, *self.others))


def metered(command: Sequence[str], *, cwd: Path, env: dict[str, str], result: Path) -> Metered:
    """Run a command under its own meter."""
    done = run(
        [sys.executable, "-m", "bench.meter", str(result), *command],
        cwd=cwd,
        env={**env, "PYTHONPATH": str(Path(__file__).parent.parent)},
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the meter failed with {done.returncode}")
    raw = json.loads(result.read_text())
    return Metered(
        code=raw["code"],
        wall_s=raw["wall_s"],
        main=Ended(**raw["main"]),
        others=tuple(Ended(**one) for one in raw["others"]),
        out=result.with_suffix(".out").read_text(),
        memory_bytes=raw["memory_bytes"],
        memory_parts=tuple((command, size) for command, size in raw["memory_parts"]),
    )


def _main(result: Path, command: Sequence[str]) -> int:
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    out = os.open(result.with_suffix(".out"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    began = time.monotonic()
    places = [(os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, out, 2)]
    pid = os.posix_spawnp(command[0], list(command), env, file_actions=places)
    raw: dict[str, Any] = {"others": []}
    weighing = _Weighing()
    weighing.start()
    signal.signal(signal.SIGALRM, lambda *_: None)
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        except (ChildProcessError, InterruptedError):
            break
        assert found is not None
        at = time.monotonic()
        ended, status = _reaped(found.si_pid, has_threads=found.si_pid == pid)
        if ended.pid == pid:
            raw |= {"main": asdict(ended), "code": os.waitstatus_to_exitcode(status), "wall_s": at - began}
            signal.setitimer(signal.ITIMER_REAL, _LATE_S)
        else:
            raw["others"].append(asdict(ended))
    weighing.over.set()
    weighing.join()
    result.write_text(json.dumps({**raw, "memory_bytes": weighing.largest, "memory_parts": weighing.parts}))
    return 0


class _Weighing(threading.Thread):
    """Adds up the memory of everything below this process, four times a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.over = threading.Event()
        self.largest = 0
        self.parts: list[tuple[str, int]] = []

    def run(self) -> None:
        while not self.over.wait(0.25):
            parts = memory_below(os.getpid())
            if (total := sum(size for _, size in parts)) > self.largest:
                self.largest, self.parts = total, sorted(parts, key=lambda one: -one[1])


def memory_below(top: int) -> list[tuple[str, int]]:
    """Return the command and the proportional memory in bytes of each descendant of a process.

    A child between vfork and exec uses its parent's memory, so it does not count.
    """
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                parent = int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found = []
    waiting = [(pid, top) for pid in children.get(top, ())]
    while waiting:
        pid, parent = waiting.pop()
        with suppress(OSError):
            # Ask first. A child that shares memory now may call exec before the next line reads its size.
            shared = _share_memory(pid, parent)
            mapped = Path(f"/proc/{pid}/smaps_rollup").read_bytes()
            if mapped and not shared:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
                size = int(mapped.partition(b"Pss:")[2].split()[0]) * 1024
                found.append((" ".join(words[:6]).strip(), size))
        waiting += [(one, pid) for one in children.get(pid, ())]
    return found


def _share_memory(one: int, other: int) -> bool:
    """Return whether two processes use the same memory, as between vfork and exec."""
    number = _KCMP.get(platform.machine())
    return number is not None and _LIBC.syscall(number, one, other, _KCMP_VM, 0, 0) == 0


def _reaped(pid: int, *, has_threads: bool) -> tuple[Ended, int]:
    if has_threads:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        own = (int(fields[11]) + int(fields[12])) / _TICKS
    else:
        own = int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    _, status, usage = os.wait4(pid, 0)
    both = usage.ru_utime + usage.ru_stime
    ended = Ended(
        pid=pid,
        own_cpu_s=own,
        below_cpu_s=max(0.0, both - own),
        peak_bytes=usage.ru_maxrss * 1024,
    )
    return ended, status


def children_cpu_s() -> float:
    """Return the processor time of everything that this process has waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    sys.exit(_main(Path(sys.argv[1]), sys.argv[2:]))
