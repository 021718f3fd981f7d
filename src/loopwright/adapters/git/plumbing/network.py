"""What git needs to reach other machines with the user's own logins."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Final

KEYS: Final = ("SSH_AUTH_SOCK", "GNUPGHOME", "GPG_TTY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
"""How git reaches what holds the user's keys."""
_NETWORK: Final = (
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_ASKPASS",
    "GIT_SSL_CAINFO",
    "SSL_CERT_FILE",
    *(name for word in ("http", "https", "all", "no") for name in (f"{word}_proxy", f"{word.upper()}_PROXY")),
)
LOGIN: Final = re.compile(r"(?<=://)[^/@\s]+@")
"""A login in an address, which no message shows."""


def network_env() -> Mapping[str, str]:
    """Return the variables for a git command that reaches another machine and asks nothing."""
    return {**present((*KEYS, *_NETWORK)), "SSH_ASKPASS_REQUIRE": "never"}


def present(wanted: Sequence[str]) -> dict[str, str]:
    """Return those of these variables that are set."""
    return {name: os.environ[name] for name in wanted if name in os.environ}
