"""Whether git's objects still have the content that they are named after; git itself believes their names."""

import hashlib
import tempfile
from collections.abc import Sequence
from typing import Any

from loopwright.adapters.git.plumbing.private_git import Depot
from loopwright.adapters.git.plumbing.runner import Git
from loopwright.core.values.errors import GitFailed


async def damaged(git: Git, depot: Depot, *, since: str, tips: Sequence[str]) -> str | None:
    """Return what is wrong with an object that came after `since` and is part of a tip; None when all are whole."""
    try:
        listed = await git.run("rev-list", "--objects", *tips, f"^{since}", env=depot.env())
        names = [line.partition(b" ")[0] for line in listed.out.splitlines()]
        reader = _Reader()
        with tempfile.TemporaryFile() as asked:
            asked.write(b"".join(name + b"\n" for name in names))
            asked.seek(0)
            await git.run("cat-file", "--batch", env=depot.env(), stdin=asked, sink=reader.feed)
    except GitFailed as failed:
        return str(failed)
    if reader.wrong is not None:
        return f"object {reader.wrong} has another content than its name says"
    return None if reader.whole == len(names) else "git did not answer for every object"


class _Reader:
    """Hashes each object of a stream as git names it: a line with its name, kind and size, then its content."""

    def __init__(self) -> None:
        self.whole = 0
        self.wrong: str | None = None
        self._rest = b""
        self._name = ""
        self._left = -1
        """Bytes of the content that are still to come; -1 between two objects."""
        self._hash: Any = None

    def feed(self, piece: bytes) -> None:
        """Take in a piece of the stream."""
        self._rest += piece
        while self._rest:
            if self._left < 0 and not self._begin():
                return
            taken = self._rest[: self._left]
            self._hash.update(taken)
            self._left -= len(taken)
            self._rest = self._rest[len(taken) :]
            if self._left or not self._rest:
                return
            self._rest = self._rest[1:]  # the line break behind the content
            self._left = -1
            self.whole += 1
            if self._hash.hexdigest() != self._name:
                self.wrong = self.wrong or self._name

    def _begin(self) -> bool:
        head, newline, rest = self._rest.partition(b"\n")
        if not newline:
            return False
        words = head.decode("ascii", "replace").split(" ")
        if len(words) != 3 or not words[2].isdigit():
            raise GitFailed(f"git says of an object: {' '.join(words)[:200]}")
        self._name, kind, size = words
        self._hash = hashlib.sha1(usedforsecurity=False) if len(self._name) == 40 else hashlib.sha256()
        self._hash.update(f"{kind} {size}\0".encode())
        self._left, self._rest = int(size), rest
        return True
