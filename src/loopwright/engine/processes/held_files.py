"""The files of held-out checks: stored by their hash in the home, and put into the tree that a gate checks."""

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from loopwright.core.values.errors import CannotRun
from loopwright.core.values.policy import HeldFile
from loopwright.engine.rows.world import HomePaths


def keep(paths: HomePaths, contents: Mapping[str, bytes]) -> None:
    """Store the contents of held-out files, by their hash, outside all agents' workspaces."""
    folder = paths.held_out()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for sha256, content in contents.items():
        draft = folder / f"{sha256}.tmp"
        draft.write_bytes(content)
        draft.replace(folder / sha256)


def missing(paths: HomePaths, files: Sequence[HeldFile]) -> list[str]:
    """Return the paths of files that are missing or changed in this home."""
    return [file.path for file in files if _kept(paths, file) is None]


def lay(paths: HomePaths, project: Path, files: Sequence[HeldFile]) -> None:
    """Put held-out files into a fresh tree; they replace the work's files at these paths, links too."""
    for file in files:
        content = _kept(paths, file)
        if content is None:
            raise CannotRun(
                f"the held-out file {file.path} is not in this home as it was submitted: "
                "cancel the plan and run it again with --new"
            )
        place = project
        for part in PurePosixPath(file.path).parts[:-1]:
            place /= part
            if place.is_symlink() or (place.exists() and not place.is_dir()):
                place.unlink()
            place.mkdir(exist_ok=True)
        place /= PurePosixPath(file.path).name
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
        place.write_bytes(content)


def _kept(paths: HomePaths, file: HeldFile) -> bytes | None:
    try:
        content = (paths.held_out() / file.sha256).read_bytes()
    except FileNotFoundError:
        return None
    return content if hashlib.sha256(content).hexdigest() == file.sha256 else None
