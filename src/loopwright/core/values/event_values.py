"""An event as a value: before the store numbers it, and after."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class Importance(StrEnum):
    """How much a person should care."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened, before the store numbers it."""

    type: str
    actor: str
    project: str | None = None
    loop: str | None = None
    plan: str | None = None
    task: str | None = None
    attempt: str | None = None
    run: str | None = None
    importance: Importance = Importance.NORMAL
    version: int = 1
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedEvent(Event):
    """An event as stored: numbered without gaps, hash-chained per plan."""

    n: int
    id: str
    at: datetime
    prev_hash: str
    hash: str
