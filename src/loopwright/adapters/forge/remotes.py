"""What the address of a git remote says: which host, and which repository there."""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

_SCP: Final = re.compile(r"(?:[^@/\s]+@)?(?P<host>\[[^\]]+\]|[^:/\s]+):(?P<path>[^/\s].*)")
_SCHEMES: Final = frozenset({"https", "http", "ssh", "git", "git+ssh"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A repository on a host. Logins and ports of the address are left out: the interface has its own."""

    host: str
    path: str
    """Owner and name, or a longer path of groups; without `.git`."""

    @property
    def owner(self) -> str:
        """Everything before the name."""
        return self.path.rpartition("/")[0]


def parse_remote(address: str) -> Remote | None:
    """Read the address of a remote, of any form that git takes; None for a folder or a file."""
    if "://" in address:
        parts = urlsplit(address)
        if parts.scheme not in _SCHEMES or not parts.hostname:
            return None
        return _remote(parts.hostname, unquote(parts.path))
    found = _SCP.fullmatch(address)
    return _remote(found["host"], found["path"]) if found else None


def _remote(host: str, path: str) -> Remote | None:
    whole = path.strip("/").removesuffix(".git").strip("/")
    odd = "/" not in whole or any(part in ("", ".", "..") for part in whole.split("/"))
    return None if odd else Remote(host=host.strip("[]").lower(), path=whole)
