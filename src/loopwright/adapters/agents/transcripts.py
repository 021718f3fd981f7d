"""Transcripts of runs in the user's own folder, where the user's own program can resume them.

A run writes whatever it likes into its private folder. So only the file of its own conversation is taken, at the place
where the program keeps it for the run's workspace, and it never replaces what the user has there: it is new, or it
continues where the user's copy ends.
"""

import os
import re
from pathlib import Path
from typing import Final

from loopwright.core.values.containment import HomeView, PrivatePath

MOST_BYTES: Final = 256 * 1024 * 1024
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{7,63}")
_SLUG: Final = 200
"""So many letters of a folder's path are part of a name, as Claude Code cuts it."""


def carry_transcript(home: HomeView, session: str, cwd: Path) -> None:
    """Copy the transcript of an ended run's conversation to the user's folder."""
    if not _ID.fullmatch(session):
        return
    for one in home.private:
        if one.transcript:
            shelf = Path(home.sessions, one.path)
            for path in _found(shelf, one, session, cwd):
                _carry(shelf, path, Path(one.source))


def _found(shelf: Path, one: PrivatePath, session: str, cwd: Path) -> list[str]:
    slug = re.sub(r"[^a-zA-Z0-9]", "-", os.path.realpath(cwd))
    folder = slug if len(slug) <= _SLUG else rf"{slug[:_SLUG]}-[a-z0-9]+"
    wanted = re.compile(one.transcript.replace("{id}", session).replace("{cwd}", folder))
    found = []
    for place, _, names in os.walk(shelf):  # which follows no links
        inner = os.path.relpath(place, shelf)
        found += [path for name in names if wanted.fullmatch(path := f"{inner}/{name}")]
    return found


def _carry(shelf: Path, path: str, user: Path) -> None:
    source, target = shelf / path, user / path
    # All processes of the run are dead: nothing changes what was looked at.
    if (
        source.is_symlink()
        or not source.is_file()
        or source.stat().st_size > MOST_BYTES
        or not user.parent.is_dir()
    ):
        return
    said = source.read_bytes()
    if target.is_symlink() or (target.exists() and not said.startswith(target.read_bytes())):
        return
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = target.with_name(f"{target.name}.new")
    draft.write_bytes(said)
    draft.chmod(0o600)
    draft.replace(target)
