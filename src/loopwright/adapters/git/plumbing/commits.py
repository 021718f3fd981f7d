"""Writing commits whose ids depend on nothing but what they say, and checking the content of objects."""

import hashlib
import os
import re
import tempfile
import zlib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from loopwright.adapters.git.plumbing.private_git import Depot
from loopwright.adapters.git.plumbing.runner import Git
from loopwright.core.policy.finishing import RECEIPT_TRAILER
from loopwright.core.values.errors import GitFailed
from loopwright.ports import Trailers

# Whether git's objects still have the content that they are named after; git itself believes their names.


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


_SUBJECT_LIMIT = 200


def message_of(subject: str, trailers: Trailers | None) -> str:
    """Return a commit message: one line, then who the commit belongs to."""
    line = re.sub(r"[\x00-\x20\x7f]+", " ", subject).strip()[:_SUBJECT_LIMIT] or "Loopwright"
    line = line.encode("utf-8", "replace").decode("utf-8")
    if trailers is None:
        return line
    return (
        f"{line}\n\n"
        f"Loopwright-Plan: {trailers.plan}\n"
        f"Loopwright-Task: {trailers.task}\n"
        f"Loopwright-Attempt: {trailers.attempt}\n"
        f"Loopwright-Run: {trailers.run}"
        + (f"\n{RECEIPT_TRAILER}: {trailers.receipt}" if trailers.receipt else "")
    )


def write_commit(
    depot: Depot, tree: str, *, parents: Sequence[str], message: str, at: datetime, into: Path | None = None
) -> str:
    """Write a commit into our own git dir, or into another folder of objects; the same arguments give the same id.

    Without git: a commit is a few lines of text, and a process costs a hundred times as much.
    """
    who = f"{depot.settings.name} <{depot.settings.email}> {int(at.timestamp())} +0000"
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents), f"author {who}", f"committer {who}"]
    text = ("\n".join(lines) + f"\n\n{message}\n").encode("utf-8", "replace")
    return _write_loose(into or depot.objects, depot.source.object_format, b"commit", text)


def write_blob(depot: Depot, content: bytes, *, into: Path | None = None) -> str:
    """Write a file's content into our own git dir, or into another folder of objects."""
    return _write_loose(into or depot.objects, depot.source.object_format, b"blob", content)


def write_tree(depot: Depot, entries: bytes) -> str:
    """Write a folder, as git keeps it, into our own git dir."""
    return _write_loose(depot.objects, depot.source.object_format, b"tree", entries)


def _write_loose(objects: Path, object_format: str, kind: bytes, content: bytes) -> str:
    """Put an object where git looks for it, whole or not at all."""
    data = b"%b %d\0%b" % (kind, len(content), content)
    name = hashlib.new(object_format, data, usedforsecurity=False).hexdigest()
    path = objects / name[:2] / name[2:]
    if path.exists():
        return name
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix="tmp_obj_")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(zlib.compress(data, 1))
            os.fchmod(file.fileno(), 0o444)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    return name
