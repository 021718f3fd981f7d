"""The line in which a plan's attempts wait to land.

Several candidates are checked at once, each on top of those before it. One at a time would make a slow gate
the speed of the whole plan. If the first lands, the verdict on the next is about exactly the tree that lands
next. If it does not, those behind it are built and checked again without it. Only a tree that was checked
lands.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.rows.model import Attempt, Plan, Project, Task
from loopwright.core.values.errors import FenceLost
from loopwright.engine.memory.interrupts import Interrupted, call_off
from loopwright.engine.rows.world import World
from loopwright.ports import Repository, Tx


class Outdated(Exception):
    """The base of a candidate will not be the branch: it is built again."""


class Line:
    """The attempts of one plan that are being checked or about to land, in this process, in order.

    It only saves time. Across processes, and after a crash, the compare-and-swap of the branch decides.
    """

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.tip: str | None = None
        """The last known tip of the branch."""
        self._changed = asyncio.Event()

    def tell(self) -> None:
        """Wake every attempt in the line."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def change(self, interrupt: asyncio.Event) -> None:
        """Wait until something changed in the line, or the leg should stop."""
        waits = [asyncio.ensure_future(event.wait()) for event in (self._changed, interrupt)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await call_off(*waits)


class Place:
    """The place of one attempt in a plan's landing line."""

    def __init__(self, line: Line, task_id: str = "") -> None:
        self._line = line
        self.task_id = task_id
        self.ground: str | None = None
        """The base of its candidate."""
        self.built: str | None = None
        """Its candidate, once it exists: the base of those behind it."""
        self.lands = True
        """Whether it may still land on its base; if not, those behind it skip it."""
        self._stop = asyncio.Event()

    @property
    def _ahead(self) -> "list[Place]":
        line = self._line.places
        return line[: line.index(self)] if self in line else []

    @property
    def _before(self) -> "Place | None":
        """Return the place ahead that lands directly before this one."""
        return next((one for one in reversed(self._ahead) if one.lands), None)

    @property
    def is_outdated(self) -> bool:
        """Return whether the candidate's base will no longer be the branch."""
        if self not in self._line.places:
            return False
        before = self._before
        return self.ground != (before.built if before is not None else self._line.tip)

    async def turn(self, most: int, interrupt: asyncio.Event) -> str | None:
        """Wait until fewer than `most` are being checked; return what to build on, None for the branch itself."""
        while True:
            before = self._before
            # The same leg may run twice, or an earlier one may still run: a task does not build on its own candidate.
            twin = any(one.task_id == self.task_id for one in self._ahead)
            ready = before is None or (before.built is not None and not before.is_outdated)
            if len(self._ahead) < most and ready and not twin:
                return before.built if before is not None else None
            await self._line.change(interrupt)
            if interrupt.is_set():
                raise Interrupted

    def stand_on(self, ground: str, *, is_tip: bool) -> None:
        """Begin a candidate on this base."""
        self.ground, self.built, self.lands = ground, None, True
        if is_tip:
            self._line.tip = ground
        self._line.tell()

    def build(self, candidate: str, *, lands: bool) -> None:
        """Let those behind build on the candidate; one that changes nothing is skipped."""
        self.built, self.lands = candidate, lands
        self._line.tell()

    async def first(self, *, lands: bool) -> None:
        """Wait until no attempt is ahead, so that the verdict counts; raise `Outdated` if it never will."""
        if self.is_outdated:
            raise Outdated  # the verdict is about a tree that cannot land any more
        self.lands = lands
        self._line.tell()
        while self._ahead and not self.is_outdated:
            await self._line.change(self._stop)
            if self._stop.is_set():
                raise Interrupted
        if self.is_outdated:
            raise Outdated

    def landed(self, sha: str) -> None:
        """Record that the branch is now at this place's candidate."""
        self._line.tip = sha

    def leave(self) -> None:
        """Leave the line; a second call does nothing."""
        if self in self._line.places:
            self._line.places.remove(self)
            self._line.tell()

    @asynccontextmanager
    async def stopping(self, interrupt: asyncio.Event) -> AsyncIterator[asyncio.Event]:
        """Return an event that is set when the leg has to stop, or the candidate's base is outdated."""
        self._stop = stop = asyncio.Event()

        async def watch() -> None:
            while not interrupt.is_set() and not self.is_outdated:
                await self._line.change(interrupt)
            stop.set()

        watching = asyncio.ensure_future(watch())
        try:
            yield stop
        finally:
            await call_off(watching)


class LandingLines:
    """The lines of all plans of this process."""

    def __init__(self) -> None:
        self._lines: dict[str, Line] = {}

    @contextmanager
    def place(self, plan_id: str, task_id: str) -> Iterator[Place]:
        """Hold a place at the end of a plan's landing line."""
        line = self._lines.setdefault(plan_id, Line())
        place = Place(line, task_id)
        line.places.append(place)
        try:
            yield place
        finally:
            place.leave()
            if not line.places:
                self._lines.pop(plan_id, None)


# One attempt on its way to the plan branch, as a value.


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """One attempt on its way to the plan branch."""

    world: World
    repository: Repository
    project: Project
    plan: Plan
    task: Task
    attempt: Attempt
    fence: int
    place: Place = field(default_factory=lambda: Place(Line()))
    """Its place in the plan's landing line."""

    def still_mine(self, tx: Tx) -> None:
        """Raise if another worker took the attempt over."""
        current = tx.get(Attempt, self.attempt.id)
        if current is None or current.fence != self.fence:
            raise FenceLost(f"{self.attempt.id} was taken over")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What an attempt was checked on, as its row records it."""

    parent: str
    tree: str
    verdict_id: str | None
    files: GateFiles | None = None

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of the attempt."""
        found = {
            "candidate_parent": self.parent,
            "candidate_tree": self.tree,
            "verdict_id": self.verdict_id,
        }
        return found if self.files is None else {**found, "gate_files": self.files}
