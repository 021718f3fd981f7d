"""Being the worker of a home, and what it exports."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from loopwright.core.happenings import RecordedEvent


class Membership(Protocol):
    """Who may work in a home at the same time."""

    exclusive: bool
    """True: one worker at a time, known by a held lock. False: many, known by their leases."""

    def acquire(self, note: Mapping[str, Any]) -> bool:
        """Become a worker, leaving a note for others; False when one is there already."""

    def holder(self) -> Mapping[str, Any] | None:
        """Return the note of the live holder, None when nobody holds it."""

    def release(self) -> None:
        """Let others in."""


class StateFiles(Protocol):
    """Files in a project's `.loopwright/`: an export of the rows, never read back as the truth."""

    def put(
        self, project: Path, kind: str, id: str, document: Mapping[str, Any], *, durably: bool = True
    ) -> Path:
        """Write one document atomically; an unsafe id is refused. What is only of the moment need not be durable."""

    def put_text(self, project: Path, kind: str, name: str, text: str, *, durably: bool = True) -> Path:
        """Write one file of text atomically; an unsafe name is refused."""

    def append_events(self, project: Path, events: Sequence[RecordedEvent]) -> None:
        """Append events to the day's file; those that are there already are not written again."""
