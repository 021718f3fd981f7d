"""The numbered log of events of a home."""

from loopwright.core.rows.events import RecordedEvent
from loopwright.services.homes.session import Session


async def last(at: Session) -> int:
    """Return the number of the newest event."""
    return await at.home.store.read(lambda tx: tx.last_event())


async def page(at: Session, after: int, limit: int) -> list[RecordedEvent]:
    """Return the next events after a number, of all projects."""
    return await at.home.store.read(lambda tx: tx.events(after=after, limit=limit))


async def changed(at: Session, timeout: float) -> bool:
    """Wait until a process commits something, at most `timeout` seconds."""
    return await at.home.store.changed(timeout)
