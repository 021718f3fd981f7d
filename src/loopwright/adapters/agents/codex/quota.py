"""What the service says of its quota."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from loopwright.adapters.agents.output import readable, whole_number
from loopwright.ports import QuotaWindow

Windows = tuple[QuotaWindow, ...]


def updated(known: Windows, limits: Mapping[str, Any]) -> Windows:
    """Return the newest word on each window; what is not mentioned stays as it was."""
    fresh = {one.name: one for one in known}
    limit = readable(limits.get("limitId"), 100)
    prefix = f"{limit}/" if limit not in ("", "codex") else ""
    for name in ("primary", "secondary", "individualLimit"):
        facts = limits.get(name)
        if isinstance(facts, dict):
            window = _window(prefix + name, facts)
            fresh[window.name] = window
    return tuple(fresh.values())


def _window(name: str, facts: Mapping[str, Any]) -> QuotaWindow:
    used, left = whole_number(facts.get("usedPercent")), whole_number(facts.get("remainingPercent"))
    if used is None and left is not None:
        used = 100 - min(left, 100)
    return QuotaWindow(
        name=name,
        used=None if used is None else min(used, 100) / 100,
        resets_at=_moment(facts.get("resetsAt")),
    )


def rejected(windows: Windows) -> Windows:
    """Mark the windows that are used up: it is because of these that a request was refused."""
    return tuple(replace(one, rejected=one.used is not None and one.used >= 1) for one in windows)


def free_at(windows: Windows) -> datetime | None:
    """Return when all windows that are used up can be used again, if the service said so."""
    times = [one.resets_at for one in rejected(windows) if one.rejected]
    known = [one for one in times if one is not None]
    return max(known) if known and len(known) == len(times) else None


def _moment(epoch: object) -> datetime | None:
    seconds = whole_number(epoch)
    # Year 2001 to 2286: anything else is no time in seconds.
    return datetime.fromtimestamp(seconds, UTC) if seconds and 10**9 <= seconds < 10**10 else None
