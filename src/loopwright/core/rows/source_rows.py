"""What a home knows about the source of a plan, apart from the plan."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceMarks:
    """How the items of a plan's source were marked: separate from the plan, because it grows with the tasks."""

    id: str
    """The plan's."""
    marks: Mapping[str, Any]
    """Two marks by key: those last read from the source, and those last written to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDebt:
    """Status that could not be written back to a plan's source: a row, so that a later write survives a kill."""

    id: str
    """The plan's."""
    items: tuple[str, ...]
    """Tasks whose status the source lacks; none if that is unknown."""
    reason: str
    gone: bool = False
    """Whether the source was missing at the last write-back: the status is written if it returns."""
    asked_at: datetime | None = None
    """When the user last requested an immediate write-back; None once that was tried."""
    created_at: datetime
