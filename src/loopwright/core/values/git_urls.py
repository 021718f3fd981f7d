"""Which addresses of git repositories are cloned: https and ssh, and nothing that git could take for something else."""

import hashlib
import re
from typing import Final

from loopwright.core.values.errors import Refused

_HTTPS: Final = re.compile(r"https://(?P<host>[A-Za-z0-9][A-Za-z0-9.-]*)(?::\d{1,5})?/(?P<path>[^?#]+)")
_SSH: Final = re.compile(
    r"ssh://(?:[A-Za-z0-9_][\w.-]*@)?(?P<host>[A-Za-z0-9][A-Za-z0-9.-]*)(?::\d{1,5})?/(?P<path>[^?#]+)"
)
_SCP: Final = re.compile(r"[A-Za-z0-9_][\w.-]*@(?P<host>[A-Za-z0-9][A-Za-z0-9.-]*):(?P<path>[^:?#]+)")
_FORMS: Final = (_HTTPS, _SSH, _SCP)
_PART: Final = re.compile(r"[A-Za-z0-9_.~][\w.~-]*")


def clone_name(url: str) -> str:
    """Return the name of the folder for a clone of an address; raise `Refused` unless it may be cloned."""
    found = next((match for form in _FORMS if (match := form.fullmatch(url))), None)
    parts = found["path"].strip("/").removesuffix(".git").split("/") if found else []
    if not parts or any(not _PART.fullmatch(one) or one in (".", "..") for one in parts):
        raise Refused(
            f"{url!r} is not an address that is cloned",
            code="git_url_not_allowed",
            hint="give https://HOST/PATH without a login, ssh://USER@HOST/PATH, or USER@HOST:PATH",
        )
    name = re.sub(r"[^A-Za-z0-9_-]", "-", parts[-1]).strip("-") or "project"
    return f"{name[:60]}-{hashlib.sha256(url.encode()).hexdigest()[:8]}"
