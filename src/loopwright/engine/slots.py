"""Which agents of this worker may run now. A workspace is made ready while others still work; its agent waits here."""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from loopwright.engine.calling_off import call_off


@dataclass(slots=True, eq=False)
class _Waiting:
    priority: int
    plan_id: str
    parallel: int
    turn: "asyncio.Future[None]"


class Slot:
    """The right to run one agent, until it is given back."""

    def __init__(self, slots: "AgentSlots", plan_id: str) -> None:
        self._slots: AgentSlots | None = slots
        self._plan_id = plan_id

    def keep_for(self, attempt_id: str) -> None:
        """Leave it to whoever carries the attempt on: its agent may or may not have been started."""
        if self._slots is not None:
            self._slots.expected(attempt_id, self._plan_id)
            self._slots = None

    def release(self) -> None:
        """Give it back; a second time does nothing."""
        if self._slots is not None:
            self._slots.give_back(self._plan_id)
            self._slots = None


class AgentSlots:
    """Counts agents: in all, and for each plan. Whoever waits is served by the priority of its loop, then in turn."""

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._used: Counter[str] = Counter()
        self._waiting: list[_Waiting] = []
        self._expected: dict[str, str] = {}

    def expect(self, running: Mapping[str, str]) -> None:
        """Keep room for agents that an earlier worker left: attempts and their plans. Nobody has taken them up yet."""
        for attempt_id, plan_id in running.items():
            self._count(plan_id)
            self.expected(attempt_id, plan_id)

    def expected(self, attempt_id: str, plan_id: str) -> None:
        """Keep a slot that is counted already for this attempt."""
        if attempt_id in self._expected:
            self.give_back(plan_id)
        self._expected[attempt_id] = plan_id

    def expect_only(self, attempts: Collection[str]) -> None:
        """Give up the room of expected agents that nobody is about to take up."""
        for attempt_id in self._expected.keys() - set(attempts):
            self.give_back(self._expected.pop(attempt_id))

    def take_now(self, attempt_id: str, plan_id: str) -> Slot:
        """Count an agent that runs already, whether there is room for it or not."""
        if self._expected.pop(attempt_id, None) is None:
            self._count(plan_id)
        return Slot(self, plan_id)

    async def take(
        self, attempt_id: str, plan_id: str, *, parallel: int, priority: int, unless: asyncio.Event
    ) -> Slot | None:
        """Wait for room in this worker and in the plan; None when `unless` is set first."""
        if self._expected.pop(attempt_id, None) is not None:
            return Slot(self, plan_id)
        waiting = _Waiting(priority, plan_id, parallel, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._waiting.sort(key=lambda one: one.priority)
        self._serve()
        stopping = asyncio.ensure_future(unless.wait())
        try:
            either: set[asyncio.Future[Any]] = {waiting.turn, stopping}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if waiting.turn.done() and not unless.is_set():
                return Slot(self, plan_id)
            self._withdraw(waiting)
            return None
        except asyncio.CancelledError:
            self._withdraw(waiting)
            raise
        finally:
            await call_off(stopping)

    def give_back(self, plan_id: str) -> None:
        """Let the next one run."""
        self._free += 1
        self._used[plan_id] -= 1
        self._serve()

    def _count(self, plan_id: str) -> None:
        self._free -= 1
        self._used[plan_id] += 1

    def _withdraw(self, waiting: _Waiting) -> None:
        if waiting.turn.done():
            self.give_back(waiting.plan_id)
        else:
            self._waiting.remove(waiting)

    def _serve(self) -> None:
        for one in list(self._waiting):
            if self._free > 0 and self._used[one.plan_id] < one.parallel:
                self._count(one.plan_id)
                self._waiting.remove(one)
                one.turn.set_result(None)
