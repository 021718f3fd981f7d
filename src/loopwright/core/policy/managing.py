"""When the manager of a project looks at its loops."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

WAKING: Final = ("task_failed", "plan_held", "question_asked", "trouble_found")
"""The events on which it looks."""
DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """How often a manager looks."""

    every: float | None = None
    """Seconds; None without a schedule."""
    on_events: bool = True
    per_day: int = 24


def due(looks: Looks, before: Sequence[datetime], happened: Sequence[str], now: datetime) -> str:
    """Return why it should look now; empty if it should not.

    `before` has the beginnings of its earlier looks, `happened` the types of the events since the newest one.
    """
    if sum(one > now - DAY for one in before) >= looks.per_day:
        return ""
    if looks.on_events and (found := sorted({one for one in happened if one in WAKING})):
        return ", ".join(found)
    last = max(before, default=None)
    if looks.every is not None and (last is None or now - last >= timedelta(seconds=looks.every)):
        return "schedule"
    return ""
