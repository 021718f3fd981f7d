"""The line in which a plan's attempts wait to land. Several are judged at once, each on top of those before it.

One after the other would make a slow gate the speed of the whole plan. So while the first is judged, the next is
judged already, on top of it, as if it had landed. If it lands, that verdict is about exactly the tree that lands next.
If it does not, those behind it are built and judged again without it. What lands was judged as exactly that tree.
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
    """What a candidate was built on will not be the branch: it is built again."""


class Line:
    """The attempts of one plan that are judged or about to land, in this process; the first is served first.

    It only saves time. Across processes, and after a crash, the compare-and-swap of the branch decides.
    """

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.tip: str | None = None
        """Where the branch was when it was last looked at or moved."""
        self._changed = asyncio.Event()

    def tell(self) -> None:
        """Wake every attempt in the line."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def change(self, interrupt: asyncio.Event) -> None:
        """Wait until something changed in the line, or until the leg is to stop."""
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
        """What its candidate is built on."""
        self.built: str | None = None
        """Its candidate, once there is one: what those behind it build on."""
        self.lands = True
        """Off once it is known that it will not land on its ground: then those behind it pass it over."""
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
        """Return whether the candidate's ground is no longer what will be the branch."""
        if self not in self._line.places:
            return False
        before = self._before
        return self.ground != (before.built if before is not None else self._line.tip)

    async def turn(self, most: int, interrupt: asyncio.Event) -> str | None:
        """Wait until fewer than `most` are judged; return what to build on, None for the branch itself."""
        while True:
            before = self._before
            # The same leg may run twice, or an earlier one linger: a task does not build on its own candidate.
            twin = any(one.task_id == self.task_id for one in self._ahead)
            ready = before is None or (before.built is not None and not before.is_outdated)
            if len(self._ahead) < most and ready and not twin:
                return before.built if before is not None else None
            await self._line.change(interrupt)
            if interrupt.is_set():
                raise Interrupted

    def stand_on(self, ground: str, *, is_tip: bool) -> None:
        """Begin a candidate on this ground."""
        self.ground, self.built, self.lands = ground, None, True
        if is_tip:
            self._line.tip = ground
        self._line.tell()

    def build(self, candidate: str, *, lands: bool) -> None:
        """Let those behind build on the candidate; one that changes nothing is passed over."""
        self.built, self.lands = candidate, lands
        self._line.tell()

    async def first(self, *, lands: bool) -> None:
        """Wait until no attempt is ahead, so that the verdict counts; raise `Outdated` when it never will."""
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
        """Make way for those behind; a second time does nothing."""
        if self in self._line.places:
            self._line.places.remove(self)
            self._line.tell()

    @asynccontextmanager
    async def stopping(self, interrupt: asyncio.Event) -> AsyncIterator[asyncio.Event]:
        """Return an event that is set when the leg has to stop, or when the candidate's base is outdated."""
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
        """Raise when another worker took the attempt over."""
        current = tx.get(Attempt, self.attempt.id)
        if current is None or current.fence != self.fence:
            raise FenceLost(f"{self.attempt.id} was taken over")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What an attempt was judged on, as its row records it."""

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
