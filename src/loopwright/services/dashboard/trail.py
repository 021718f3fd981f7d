"""Events in words, for the pages of plans and tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from loopwright.core.rows.events import CATALOGUE, Importance, RecordedEvent
from loopwright.ports import Tx

MOST: Final = 60
"""How many events a page shows."""
IMPORTANT: Final = tuple(name for name, kind in CATALOGUE.items() if kind.importance is Importance.HIGH)
"""The types of events that the user should know about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailWish:
    """Which events of a plan to show."""

    task: str = ""
    """The key of a task; empty for all."""
    important: bool = False
    before: int | None = None
    """Only events with a smaller number."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """Events, the newest first."""

    events: tuple[TrailEvent, ...]
    before: int | None = None
    """The number for the next request for older events; None if there are none."""


def plan_trail(tx: Tx, plan_id: str, keys: Mapping[str, str], wish: TrailWish) -> Trail:
    """Return events of a plan; `keys` are the tasks' names by their ids."""
    ids = [one for one, key in keys.items() if key == wish.task]
    if wish.task and not ids:
        return Trail(events=())
    found = _newest(
        tx,
        plan_id,
        keys,
        task=ids[0] if ids else None,
        types=IMPORTANT if wish.important else (),
        upto=None if wish.before is None else wish.before - 1,
        limit=MOST + 1,
    )
    return Trail(events=found[:MOST], before=found[MOST - 1].n if len(found) > MOST else None)


def task_trail(tx: Tx, plan_id: str, task_id: str) -> tuple[TrailEvent, ...]:
    """Return the newest events of a task, the newest first."""
    return _newest(tx, plan_id, {}, task=task_id, limit=MOST)


def _newest(
    tx: Tx,
    plan_id: str,
    keys: Mapping[str, str],
    *,
    task: str | None,
    limit: int,
    types: Sequence[str] = (),
    upto: int | None = None,
) -> tuple[TrailEvent, ...]:
    found = tx.events(plan=plan_id, task=task, types=types, upto=upto, limit=limit, newest=True)
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
