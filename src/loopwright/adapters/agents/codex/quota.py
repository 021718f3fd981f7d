"""What the service says of its quota."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from loopwright.adapters.agents.output import readable, whole_number
from loopwright.core.rows.waiting_rows import QuotaKind
from loopwright.ports import QuotaWindow

Windows = tuple[QuotaWindow, ...]

_ALLOWED: Final = "individualLimit"
"""What a company allows one of its people to spend."""
_DEPLETED: Final = "credits_depleted"
_BY_COMPANY: Final = "workspace_"
"""How limits begin that the user has to raise: used-up credits, and spending limits."""
_LONG_MINUTES: Final = 6 * 24 * 60
_PAID_BY_CALL: Final = ("apiKey", "amazonBedrock")


def updated(known: Windows, limits: Mapping[str, Any]) -> Windows:
    """Return the newest word on each window; what is not mentioned stays as it was."""
    fresh = {one.name: one for one in known}
    limit = readable(limits.get("limitId"), 100)
    prefix = f"{limit}/" if limit not in ("", "codex") else ""
    model = readable(limits.get("normalModelSlug"), 100)
    for name in ("primary", "secondary", _ALLOWED):
        facts = limits.get(name)
        if isinstance(facts, dict):
            window = replace(_window(prefix + name, facts), model=model)
            earlier = fresh.get(window.name, window)
            # How long it is need not be said each time.
            kind = earlier.kind if window.kind is QuotaKind.UNKNOWN else window.kind
            fresh[window.name] = replace(window, kind=kind)
    facts, depleted = limits.get("credits"), _DEPLETED in _reached(limits)
    if isinstance(facts, dict) or depleted:
        fresh["credits"] = _credits(facts if isinstance(facts, dict) else {}, depleted=depleted)
    return tuple(fresh.values())


def unpaid(known: bool, limits: Mapping[str, Any]) -> bool:
    """Return whether it is money that is missing, which no waiting brings; what is not mentioned stays as it was."""
    reached = _reached(limits)
    return reached.startswith(_BY_COMPANY) if reached else known


def _reached(limits: Mapping[str, Any]) -> str:
    return readable(limits.get("rateLimitReachedType"), 100)


def of_account(known: Windows, account: Mapping[str, Any]) -> Windows:
    """Return what the login says of how an account pays: with a key, call by call."""
    paid = QuotaWindow(name="api_key", kind=QuotaKind.DOLLARS)
    return (*known, paid) if account.get("type") in _PAID_BY_CALL and paid not in known else known


def _credits(facts: Mapping[str, Any], *, depleted: bool) -> QuotaWindow:
    left = "unlimited" if facts.get("unlimited") is True else readable(facts.get("balance"), 50)
    if not left and facts.get("hasCredits") is False:
        left = "none"
    return QuotaWindow(name="credits", kind=QuotaKind.CREDITS, left=left, used=1.0 if depleted else None)


def _window(name: str, facts: Mapping[str, Any]) -> QuotaWindow:
    used, left = whole_number(facts.get("usedPercent")), whole_number(facts.get("remainingPercent"))
    if used is None and left is not None:
        used = 100 - min(left, 100)
    spent, limit = readable(facts.get("used"), 50), readable(facts.get("limit"), 50)
    return QuotaWindow(
        name=name,
        kind=_kind(name, whole_number(facts.get("windowDurationMins"))),
        left=f"{spent} of {limit} used" if spent and limit else "",
        used=None if used is None else min(used, 100) / 100,
        resets_at=_moment(facts.get("resetsAt")),
    )


def _kind(name: str, minutes: int | None) -> QuotaKind:
    if name.endswith(_ALLOWED):
        return QuotaKind.CREDITS
    if minutes is None:
        return QuotaKind.UNKNOWN
    return QuotaKind.WEEKLY if minutes >= _LONG_MINUTES else QuotaKind.SUBSCRIPTION


def rejected(windows: Windows, model: str | None) -> Windows:
    """Mark the windows that are used up: it is because of these that a request was refused.

    One of another model is not a reason, unless there is no other.
    """
    full = [one for one in windows if one.used is not None and one.used >= 1]
    own = [one for one in full if one.model in ("", model)] or full
    return tuple(replace(one, rejected=one in own) for one in windows)


def free_at(windows: Windows, model: str | None) -> datetime | None:
    """Return when all windows that are used up can be used again, if the service said so."""
    times = [one.resets_at for one in rejected(windows, model) if one.rejected]
    known = [one for one in times if one is not None]
    return max(known) if known and len(known) == len(times) else None


def _moment(epoch: object) -> datetime | None:
    seconds = whole_number(epoch)
    # Year 2001 to 2286: anything else is not a time in seconds.
    return datetime.fromtimestamp(seconds, UTC) if seconds and 10**9 <= seconds < 10**10 else None
