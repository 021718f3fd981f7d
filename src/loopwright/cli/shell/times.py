"""Times as people read them: on the clock of this machine. JSON has them in UTC."""

import re
from datetime import UTC, datetime
from typing import Final

_SAID: Final = re.compile(r"\b(\d{4}-\d\d-\d\d \d\d:\d\d)(:\d\d)? UTC\b")


def local_time(at: datetime, *, seconds: bool = True) -> str:
    """Return a time on the clock of this machine."""
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S}" if seconds else f"{at.astimezone():%Y-%m-%d %H:%M}"


def in_local_time(text: str) -> str:
    """Return a text with its UTC times on the clock of this machine."""

    def there(found: re.Match[str]) -> str:
        at = datetime.fromisoformat(found[1] + (found[2] or "")).replace(tzinfo=UTC)
        return local_time(at, seconds=found[2] is not None)

    return _SAID.sub(there, text)
