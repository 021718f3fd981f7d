"""Links that sign a browser in."""

import secrets
import time
from typing import Final

_LINK_S: Final = 120.0


class LoginLinks:
    """Codes that sign in one browser, once, within two minutes. A link can leak, so it does not contain the token."""

    def __init__(self) -> None:
        self._codes: dict[str, tuple[str, float]] = {}

    def make(self, token: str) -> str:
        """Return a code for the holder of a token."""
        now = time.monotonic()
        self._codes = {code: kept for code, kept in self._codes.items() if kept[1] > now}
        code = secrets.token_urlsafe(24)
        self._codes[code] = (token, now + _LINK_S)
        return code

    def take(self, code: str) -> str | None:
        """Return the token of a code, once."""
        token, until = self._codes.pop(code, ("", 0.0))
        return token if until > time.monotonic() else None
