"""Ends a process tree in order: a polite word, then TERM, then KILL of everything that can be found."""

from __future__ import annotations

import signal
import time

from loopwright.keeper.processes import SEES_PROCESSES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from loopwright.keeper.processes import Process, Tree

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
