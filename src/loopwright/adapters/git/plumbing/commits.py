"""Writing commits whose ids depend on nothing but what they say."""

import hashlib
import os
import re
import tempfile
import zlib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from loopwright.adapters.git.plumbing.private_git import Depot
from loopwright.core.policy.finishing import RECEIPT_TRAILER
from loopwright.ports import Trailers

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
