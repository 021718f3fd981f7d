"""Events in words, for the pages of plans and tasks."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from loopwright.core.rows.events import CATALOGUE, Importance, RecordedEvent
from loopwright.ports import Tx

MOST: Final = 60
"""How many events a page shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailEvent:
    """One event in words."""

    n: int
    at: datetime
    type: str
    meaning: str
    actor: str
    task: str
    importance: Importance


def trail(
    tx: Tx, keys: Mapping[str, str], *, plan: str | None = None, task: str | None = None
) -> tuple[TrailEvent, ...]:
    """Return the newest events of a plan or a task, the newest first; `keys` are the tasks' names by their ids."""
    found = tx.events(plan=plan, task=task, limit=MOST, newest=True)
    return tuple(_event(one, keys) for one in reversed(found))


def _event(event: RecordedEvent, keys: Mapping[str, str]) -> TrailEvent:
    kind = CATALOGUE.get(event.type)
    return TrailEvent(
        n=event.n,
        at=event.at,
        type=event.type,
        meaning=kind.meaning if kind else event.type.replace("_", " "),
        actor=event.actor,
        task=keys.get(event.task or "", ""),
        importance=event.importance,
    )
