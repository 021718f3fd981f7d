"""Settings of agents that lie in a workspace: read without following a link, because an agent may have put it there."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

MOST_FILES: Final = 500
MOST_BYTES: Final = 1024 * 1024


def settings_in(root: Path, names: Sequence[str]) -> dict[str, str | None]:
    """Return the files at these places below a folder, with their text; None for what is not a plain, small text file.

    A name that ends in `/` is a folder, and everything in it counts.
    """
    found: dict[str, str | None] = {}
    for name in names:
        for path in _files(root, name):
            if len(found) >= MOST_FILES:
                found[name] = None
                break
            found[path] = _text(root, path)
    return found


def _files(root: Path, name: str) -> Iterator[str]:
    place = root / name
    if not os.path.lexists(place):
        return
    if _is_linked(root, name) or not place.is_dir():
        yield name
        return
    for folder, folders, files in os.walk(place):
        linked = [one for one in folders if Path(folder, one).is_symlink()]
        yield from (Path(folder, one).relative_to(root).as_posix() for one in sorted((*files, *linked)))


def _is_linked(root: Path, name: str) -> bool:
    """Return whether a link is on the way: then it shows something else than what the commit has there."""
    parts = Path(name).parts
    return any(root.joinpath(*parts[:n]).is_symlink() for n in range(1, len(parts) + 1))


def _text(root: Path, name: str) -> str | None:
    path = root / name
    try:
        if _is_linked(root, name) or not path.is_file() or path.stat().st_size > MOST_BYTES:
            return None
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
