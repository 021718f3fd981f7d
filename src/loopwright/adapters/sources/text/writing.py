"""Replacing files of a source in the user's checkout: whole or not at all, and never over what a person just wrote."""

import os
import tempfile
from pathlib import Path

from loopwright.ports import Files


def put_files(folder: Path, files: Files, seen: Files) -> bool:
    """Replace files unless one of them is no longer what was seen; then nothing is written, and False returned.

    Between the look and the change a few microseconds remain in which an editor could save: no lock would stop it.
    """
    drafts: list[tuple[Path, Path]] = []
    try:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            drafts.append((_draft(path, content), path))
        if any(_content(path) != seen.get(name) for name, (_, path) in zip(files, drafts, strict=True)):
            return False
        for draft, path in drafts:
            draft.replace(path.resolve())
        return True
    finally:
        for draft, _ in drafts:
            draft.unlink(missing_ok=True)


def _draft(path: Path, content: bytes) -> Path:
    # A link stays a link: what it leads to is replaced.
    target = path.resolve()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{path.name[:100]}.")
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        os.fchmod(file.fileno(), target.stat().st_mode & 0o777 if target.exists() else 0o644)
        file.flush()
        os.fsync(file.fileno())
    return Path(name)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
