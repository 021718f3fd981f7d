"""The hash chain over events: each event carries the hash of the one before it in the same plan.

The hash is SHA-256 over the event as canonical JSON (sorted keys, no spaces, ASCII only) without the hash itself,
so that anyone can compute it again with a few lines in any language.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, Final

from loopwright.core.rows.events import Event, RecordedEvent

HOME: Final = "home"
"""The chain of events that belong to no plan."""

FIRST: Final = ""
"""The previous hash of the first event of a chain."""

_HASHED: Final = tuple(sorted(field.name for field in fields(RecordedEvent) if field.name != "hash"))


def canonical(value: Any) -> str:
    """Return the one JSON text of a value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def moment_text(at: datetime) -> str:
    """Return a moment as UTC text of fixed width, so that text order is time order."""
    if at.tzinfo is None:
        raise TypeError(f"{at!r} has no time zone: every moment in a home is aware")
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def chain_of(event: Event) -> str:
    """Return the name of the chain that an event belongs to."""
    return event.plan or HOME


def event_hash(event: RecordedEvent) -> str:
    """Return the hash that the event must carry."""
    return hash_of({name: getattr(event, name) for name in _HASHED})


def hash_of(facts: Mapping[str, Any]) -> str:
    """Return the hash of an event that has these facts, which are all of it but the hash."""
    facts = {**facts, "at": moment_text(facts["at"])}
    return hashlib.sha256(canonical(facts).encode("ascii")).hexdigest()


def verify_chain(events: Iterable[RecordedEvent], *, start: Mapping[str, str] | None = None) -> int | None:
    """Return the number of the first event that was changed, moved or torn out of its chain, or None.

    The events must be as stored (not upcast), in order and complete for each chain they touch. `start` names the
    hash that a chain continues from when its first events are not among them.
    """
    heads = dict(start or {})
    last = 0
    for event in events:
        chain = chain_of(event)
        if event.n <= last or event.prev_hash != heads.get(chain, FIRST) or event.hash != event_hash(event):
            return event.n
        heads[chain] = event.hash
        last = event.n
    return None
