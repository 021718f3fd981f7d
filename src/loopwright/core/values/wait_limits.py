"""How long a plan waits for what ends by itself: an account that is used up, or the budget of a day."""

from datetime import datetime, time, timedelta
from typing import Final

from loopwright.core.values.policy import Policy

HOUR: Final = r"([01][0-9]|2[0-3]):[0-5][0-9]"
"""What an hour of a day looks like."""


def too_long(policy: Policy, *, since: datetime, until: datetime | None, now: datetime) -> str:
    """Say by which setting a wait that began at `since` takes too long; empty when it does not."""
    last = max(until or now, now)
    if policy.longest_wait is not None:
        longest = timedelta(seconds=policy.longest_wait)
        if max(last - now, now - since) > longest:
            return "longer than `longest_wait`"
    if policy.latest_resume is not None and last > _next(policy.latest_resume, since):
        return "later than `latest_resume`"
    return ""


def _next(hour: str, after: datetime) -> datetime:
    """Return when it is that hour for the next time, by UTC."""
    today = datetime.combine(after.date(), time.fromisoformat(hour), tzinfo=after.tzinfo)
    return today if today >= after else today + timedelta(days=1)
