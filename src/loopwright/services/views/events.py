"""The events of a plan in order, from any number on, and the row types that services return."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loopwright.core.rows.events import RecordedEvent
from loopwright.core.rows.model import Attempt, Command, Plan, Project, Role, Run, Task
from loopwright.core.rows.waiting_rows import Envelope
from loopwright.ports import Tx
from loopwright.services.homes.read_only_home import Look, find_plan, glancing, looking
from loopwright.services.views.plans import Seen, look_at

if TYPE_CHECKING:
    from loopwright.adapters.store.sql import SqlStore


# Rows that services return unchanged.


__all__ = [
    "Attempt",
    "Command",
    "Envelope",
    "Followed",
    "Plan",
    "Project",
    "RecordedEvent",
    "Role",
    "Run",
    "Task",
    "events_after",
    "followed",
]

_PAGE: Final = 500
_REFRESH_S: Final = 1.0
"""How long to wait for news before looking again."""


class Followed:
    """A plan that is watched: nothing is started and nothing is changed."""

    def __init__(self, look: "Look[SqlStore]", plan_id: str) -> None:
        """Watch a plan of an open home."""
        self._look = look
        self.plan_id = plan_id

    async def seen(self) -> Seen:
        """Return the plan as it is now."""
        return await self._look.store.read(lambda tx: look_at(tx, self._look, self.plan_id))

    async def changed(self, seconds: float = _REFRESH_S) -> None:
        """Wait until something changes in the home, or for this many seconds."""
        await self._look.store.changed(seconds)

    async def events(self, after: int | None = None) -> AsyncIterator[RecordedEvent | Seen]:
        """Yield the plan's events as they come, after number `after`, and the plan itself once it rests.

        Without a number, only new events.
        """
        at = await self._look.store.read(lambda tx: tx.last_event()) if after is None else after
        while True:
            page = await self._look.store.read(lambda tx, since=at: self._page(tx, since))  # type: ignore[misc]
            for event in page.events:
                yield event
            if page.last > at:
                at = page.last
            elif page.seen.at_rest:
                yield page.seen
                return
            else:
                await self.changed()

    def _page(self, tx: Tx, after: int) -> "_Page":
        # Together, in one transaction: a plan that rests without further events has no more to come.
        found, seen = tx.events(after=after, limit=_PAGE), look_at(tx, self._look, self.plan_id)
        mine = [one for one in found if _belongs(one, self.plan_id, seen.view.loop_id)]
        return _Page(events=mine, last=found[-1].n if found else after, seen=seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    events: list[RecordedEvent]
    last: int
    seen: Seen


@contextmanager
def followed(plan: str | None = None) -> Iterator[Followed]:
    """Open the home to watch a plan; None for the newest of this repository."""
    with looking() as look:
        yield Followed(look, look.store.read_sync(lambda tx: find_plan(tx, plan)).id)


def events_after(plan: str | None = None, *, after: int = 0, limit: int = _PAGE) -> tuple[RecordedEvent, ...]:
    """Return the events of a plan that have a higher number than `after`, the oldest first."""
    with glancing() as look:

        def load(tx: Tx) -> tuple[RecordedEvent, ...]:
            row, found, at = find_plan(tx, plan), list[RecordedEvent](), after
            while len(found) < limit and (page := tx.events(after=at, limit=_PAGE)):
                found += [one for one in page if _belongs(one, row.id, row.loop_id)]
                at = page[-1].n
            return tuple(found[:limit])

        return look.store.read_sync(load)


def _belongs(event: RecordedEvent, plan_id: str, loop_id: str) -> bool:
    """Return whether an event is about a plan, or about its loop as a whole."""
    return event.plan == plan_id or (event.plan is None and event.loop == loop_id)
