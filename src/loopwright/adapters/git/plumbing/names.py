"""Which texts may become refs, branches and object ids."""

import re

from loopwright.core.values.errors import GitFailed

_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
_PIN = re.compile(rf"refs/loopwright(?:/{_PART})+")
_BRANCH = re.compile(rf"loopwright(?:/{_PART})+")


def is_sha(text: str) -> bool:
    """Return whether `text` is a full object id."""
    return _SHA.fullmatch(text) is not None


def sha(text: str) -> str:
    """Return a full object id unchanged, or raise."""
    if not is_sha(text):
        raise GitFailed(f"{text!r} is not a full commit id")
    return text


def pin(ref: str) -> str:
    """Return a ref in our own namespace unchanged, or raise."""
    if _PIN.fullmatch(ref) is None or _malformed(ref):
        raise GitFailed(f"{ref!r} is not a ref under refs/loopwright/")
    return ref


def branch(name: str) -> str:
    """Return the full ref of one of our branches, or raise: no other branch is ever written."""
    if _BRANCH.fullmatch(name) is None or _malformed(name):
        raise GitFailed(f"{name!r} is not a branch under loopwright/")
    return f"refs/heads/{name}"


def _malformed(name: str) -> bool:
    return ".." in name or any(part.endswith((".", ".lock")) for part in name.split("/"))


def display(path: bytes) -> str:
    """Return a path as text that every database and terminal can hold."""
    return path.decode("utf-8", "replace")


def printable(text: str) -> str:
    """Return git's words without bytes that are no text."""
    return text.encode("utf-8", "replace").decode("utf-8").strip()
