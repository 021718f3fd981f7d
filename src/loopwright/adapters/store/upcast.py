"""Old events, read by a newer program: each upcaster lifts one type of event by one version.

Events are never rewritten, because their hashes prove them; they are lifted on the way out instead.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from loopwright.core.values.event_values import RecordedEvent

Upcaster = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Takes the payload of version n and returns the payload of version n + 1."""

UPCASTERS: Final[Mapping[tuple[str, int], Upcaster]] = MappingProxyType({})
"""By event type and the version that is lifted. Empty while every event is at version 1."""


def upcast(event: RecordedEvent, upcasters: Mapping[tuple[str, int], Upcaster] = UPCASTERS) -> RecordedEvent:
    """Return the event at the newest version that is known for its type."""
    while (lift := upcasters.get((event.type, event.version))) is not None:
        event = replace(event, version=event.version + 1, payload=lift(event.payload))
    return event
