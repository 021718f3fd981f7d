"""The numbered log of events of a home."""

from collections.abc import Collection
from dataclasses import dataclass

from loopwright.core.rows.events import RecordedEvent
from loopwright.core.values.access import Caller
from loopwright.services.homes.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which events a caller asks for."""

    caller: Caller
    project: str | None = None
    loop: str | None = None
    plan: str | None = None
    types: Collection[str] = ()

    def __call__(self, event: RecordedEvent) -> bool:
        """Return whether the caller asks for this event."""
        return (
            self.caller.sees(event.project)
            and (self.project is None or event.project == self.project)
            and (self.loop is None or event.loop == self.loop)
            and (self.plan is None or event.plan == self.plan)
            and (not self.types or event.type in self.types)
        )

    @property
    def projects(self) -> tuple[str, ...] | None:
        """The projects of the events; None for any, and for events without a project."""
        if self.project is not None:
            return (self.project,) if self.caller.sees(self.project) else ()
        return None if self.caller.projects is None else tuple(sorted(self.caller.projects))


async def last(at: Session) -> int:
    """Return the number of the newest event."""
    return await at.home.store.read(lambda tx: tx.last_event())


async def page(
    at: Session, after: int, limit: int, *, upto: int | None = None, wanted: Wanted | None = None
) -> list[RecordedEvent]:
    """Return the next events after a number: those that the caller asks for, or all."""
    if wanted is None:
        return await at.home.store.read(lambda tx: tx.events(after=after, upto=upto, limit=limit))
    return await at.home.store.read(
        lambda tx: tx.events(
            after=after,
            upto=upto,
            limit=limit,
            projects=wanted.projects,
            loop=wanted.loop,
            plan=wanted.plan,
            types=tuple(wanted.types),
        )
    )


async def changed(at: Session, timeout: float) -> bool:
    """Wait until a process commits something, at most `timeout` seconds."""
    return await at.home.store.changed(timeout)
