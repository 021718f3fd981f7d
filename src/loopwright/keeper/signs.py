"""Signs of life: output, input, CPU time of the tree, changes of files. Silence alone is not death."""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from loopwright.keeper.processes import Tree

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
