"""Which agents and gates of this worker may run now. An agent waits here after its workspace is prepared."""

import asyncio
import time
from bisect import insort
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from loopwright.core.policy.share import SlotLimits, Used, aged, next_in_line
from loopwright.core.rows.model import Leg
from loopwright.core.rows.turns import Turn
from loopwright.engine.memory.interrupts import call_off

# Which gates of this process may run in parallel: all of them, unless one has to run alone.


class GateTurns:
    """Lets gates run in parallel, or one by itself. While one waits to be alone, no other begins."""

    def __init__(self) -> None:
        self._running = 0
        self._alone = 0
        """How many run alone, or wait to."""
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def turn(self, *, alone: bool, unless: asyncio.Event) -> AsyncIterator[None]:
        """Wait for a turn and hold it; once `unless` is set, do not wait."""
        if alone:
            self._alone += 1
        try:
            while (self._running if alone else self._alone) and not unless.is_set():
                changed, stopped = (asyncio.ensure_future(one.wait()) for one in (self._changed, unless))
                try:
                    await asyncio.wait((changed, stopped), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    await call_off(changed, stopped)
            self._running += 1
            try:
                yield
            finally:
                self._running -= 1
        finally:
            self._alone -= alone
            # Those that wait now check again; those that come later wait for the next change.
            self._changed.set()
            self._changed = asyncio.Event()


# Trees that are being checked in this process, so that the same tree is not checked twice at once.


class Underway:
    """The trees that are being checked now. This only saves work: verdicts are in the rows."""

    def __init__(self) -> None:
        self._ends: dict[tuple[str, str], asyncio.Event] = {}
        self._waits: dict[tuple[str, str], tuple[str, str]] = {}

    @contextmanager
    def judging(self, plan_id: str, tree: str) -> Iterator[None]:
        """Mark a tree as being checked while the block runs."""
        key = (plan_id, tree)
        if key in self._ends:
            yield  # requested twice at the same time: the first one reports
            return
        self._ends[key] = asyncio.Event()
        try:
            yield
        finally:
            self._ends.pop(key).set()

    async def ended(self, plan_id: str, tree: str, *, asked_by: str, interrupt: asyncio.Event) -> bool:
        """Wait until another check of a tree has ended; False if there is none.

        Two that wait for each other would wait forever, so neither does.
        """
        key, mine = (plan_id, tree), (plan_id, asked_by)
        end = self._ends.get(key)
        if end is None or interrupt.is_set() or self._leads_to(key, mine):
            return False
        self._waits[mine] = key
        waits = [asyncio.ensure_future(event.wait()) for event in (end, interrupt)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._waits.pop(mine, None)
            await call_off(*waits)
        return True

    def _leads_to(self, start: tuple[str, str], goal: tuple[str, str]) -> bool:
        at: tuple[str, str] | None = start
        while at is not None and at != goal:
            at = self._waits.get(at)
        return at == goal


class Use(NamedTuple):
    """For which project an agent works, and which agent it is."""

    plan_id: str
    project_id: str = ""
    agent: str = ""


@dataclass(slots=True, eq=False)
class _InLine:
    leg_id: str
    turn: Turn
    since: float
    """When it came, by the monotonic clock."""
    called: "asyncio.Future[None] | None" = None
    """Set once its workspace is ready and it waits for its turn."""

    @property
    def use(self) -> Use:
        return use_of(self.turn)


def use_of(turn: Turn) -> Use:
    """Return the project and agent of a turn."""
    return Use(turn.plan_id, turn.project_id, turn.agent)


class Slot:
    """The right to run one agent, until it is given back."""

    def __init__(self, slots: "AgentSlots", use: Use) -> None:
        self._slots: AgentSlots | None = slots
        self._use = use

    def keep_for(self, attempt_id: str) -> None:
        """Keep it for the leg that continues the attempt: its agent may or may not have been started."""
        if self._slots is not None:
            self._slots.expected(attempt_id, self._use)
            self._slots = None

    def release(self) -> None:
        """Release it; a second call does nothing."""
        if self._slots is not None:
            self._slots.give_back(self._use)
            self._slots = None


class AgentSlots:
    """Counts agents: in total, and for each plan, project and agent.

    The legs that need an agent stand in line from their start. The most urgent loop goes first, and a waiting
    loop gets more urgent (`core.policy.share`). Among equals, the loop with the fewest agents goes first,
    then the one served longest ago. A slot is kept for the first in line while its workspace is still being
    prepared: a later task that is ready sooner does not overtake it.
    """

    def __init__(
        self,
        slots: int,
        limits: SlotLimits | None = None,
        now: Callable[[], float] = time.monotonic,
        served: dict[str, int] | None = None,
    ) -> None:
        self._free = slots
        self._served = {} if served is None else served
        """By plan, the number of the last slot that it got."""
        self._grants = 0
        self._limits = limits or SlotLimits()
        self._now = now
        self._used: Counter[tuple[str, str]] = Counter()
        self._line: list[_InLine] = []
        self._expected: dict[str, Use] = {}

    def expect(self, running: Mapping[str, Use]) -> None:
        """Keep slots for agents that an earlier worker left, by attempt. No leg has adopted them yet."""
        for attempt_id, use in running.items():
            self._count(use)
            self.expected(attempt_id, use)

    def expected(self, attempt_id: str, use: Use) -> None:
        """Reserve a slot that is already counted for this attempt."""
        if attempt_id in self._expected:
            self.give_back(use)
        self._expected[attempt_id] = use

    def expect_only(self, attempts: Collection[str]) -> None:
        """Release the slots of expected agents that no leg is about to adopt."""
        for attempt_id in self._expected.keys() - set(attempts):
            self.give_back(self._expected.pop(attempt_id))

    def take_now(self, attempt_id: str, use: Use) -> Slot:
        """Count an agent that already runs, even if no slot is free."""
        known = self._expected.pop(attempt_id, None)
        if known is None:
            self._count(use)
        return Slot(self, known or use)

    def line_up(self, leg: Leg) -> None:
        """Give a leg its place in line before its workspace is ready, if it needs an agent."""
        if leg.turn is not None and leg.subject not in self._expected:
            self._add(_InLine(leg.id, leg.turn, self._now()))

    def leave(self, leg: Leg) -> None:
        """Remove the place of a leg that takes no agent after all."""
        self._line = [one for one in self._line if one.leg_id != leg.id or one.called is not None]
        self._serve()

    async def take(self, leg: Leg, turn: Turn, *, unless: asyncio.Event) -> Slot | None:
        """Wait for a slot in this worker and in the plan; None if `unless` is set first."""
        known = self._expected.pop(leg.subject, None)
        if known is not None:
            self.leave(leg)
            return Slot(self, known)
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        placed = [one for one in self._line if one.leg_id == leg.id and one.called is None]
        since = min((one.since for one in placed), default=self._now())
        waiting = _InLine(leg.id, turn, since, called)
        self._line = [one for one in self._line if one not in placed]
        self._add(waiting)
        self._serve()
        stopping = asyncio.ensure_future(unless.wait())
        try:
            either: set[asyncio.Future[Any]] = {called, stopping}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if called.done() and not unless.is_set():
                return Slot(self, waiting.use)
            self._withdraw(waiting)
            return None
        except asyncio.CancelledError:
            self._withdraw(waiting)
            raise
        finally:
            await call_off(stopping)

    def give_back(self, use: Use) -> None:
        """Release a slot, and let the next agent run."""
        self._free += 1
        self._used.subtract(_keys(use))
        self._serve()

    def _add(self, one: _InLine) -> None:
        insort(self._line, one, key=lambda each: each.turn.rank)

    def _count(self, use: Use) -> None:
        self._free -= 1
        self._used.update(_keys(use))

    def _withdraw(self, waiting: _InLine) -> None:
        if waiting.called is not None and waiting.called.done():
            self.give_back(waiting.use)
        else:
            self._line.remove(waiting)
            self._serve()

    def _serve(self) -> None:
        now, free, used, line = self._now(), self._free, self._used.copy(), list(self._line)

        def key(one: _InLine) -> tuple[int, int, int]:
            has = used["plan", one.turn.plan_id]
            waited = timedelta(seconds=0 if has else now - one.since)
            return aged(one.turn.rank[0], waited), has, self._served.get(one.turn.plan_id, 0)

        def fits(one: _InLine) -> bool:
            use = one.use
            has = Used(agent=used["agent", use.agent], account=0, project=used["project", use.project_id])
            return used["plan", use.plan_id] < one.turn.parallel and not self._limits.full(
                agent=use.agent, account="", used=has
            )

        while free > 0 and (one := next_in_line(line, key, fits)) is not None:
            line.remove(one)
            free -= 1
            used.update(_keys(one.use))
            if one.called is not None:
                self._count(one.use)
                self._grants += 1
                self._served[one.turn.plan_id] = self._grants
                self._line.remove(one)
                one.called.set_result(None)


def _keys(use: Use) -> list[tuple[str, str]]:
    return [("plan", use.plan_id), ("project", use.project_id), ("agent", use.agent)]
