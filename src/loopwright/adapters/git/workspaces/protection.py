"""Paths that no snapshot changes, whatever was done to them in a workspace."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

STATE_FOLDER: Final = ".loopwright"
"""The project's state directory: ours, at any depth."""

_SPELLED_OUT_LIMIT: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """Paths that keep what the base has there, or stay absent."""

    copied: frozenset[bytes] = frozenset()
    """Files that were copied from the user's checkout."""
    gitlinks: frozenset[bytes] = frozenset()
    """Submodules, which are looked at separately: git must never look inside by itself."""

    def covers(self, path: bytes) -> bool:
        """Return whether a path, or a folder above it, is protected."""
        parts = path.split(b"/")
        if STATE_FOLDER.encode() in parts:
            return True
        heads = (b"/".join(parts[:end]) for end in range(1, len(parts) + 1))
        return any(head in self.copied or head in self.gitlinks for head in heads)

    def pathspecs(self, also: Iterable[bytes] = ()) -> bytes:
        """Return what `git add` is to look at, NUL-separated.

        A long list of copied files would cost time for every path, so it is left out: the tree is checked
        afterwards in any case.
        """
        state = STATE_FOLDER.encode()
        specs = [b".", *(b":(exclude,glob,top)**/" + state + end for end in (b"", b"/**"))]
        listed = self.gitlinks.union(also)
        if len(self.copied) <= _SPELLED_OUT_LIMIT:
            listed |= self.copied
        return b"\0".join(specs + [b":(exclude,literal,top)" + path for path in sorted(listed)])
