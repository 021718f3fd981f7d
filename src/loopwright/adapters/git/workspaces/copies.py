"""Files that git does not track but a workspace needs, such as `.env`, copied from the user's checkout."""

import asyncio
import os
import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from loopwright.adapters.git.plumbing.environment import user_env
from loopwright.adapters.git.plumbing.place import Place
from loopwright.adapters.git.plumbing.runner import Git
from loopwright.adapters.git.workspaces.protection import STATE_FOLDER
from loopwright.core.values.errors import BadConfig


async def copy_untracked(git: Git, place: Place, patterns: Sequence[str], dest: Path) -> tuple[str, ...]:
    """Copy the untracked files that match and return their paths inside the repository.

    Patterns are relative to the project's folder; `*` stops at a slash, `**/` does not, and a folder means all
    that is in it. A link is copied as the file it leads to, and only if that file is in the checkout.
    """
    if not patterns or place.toplevel is None:
        return ()
    for pattern in patterns:
        parts = PurePosixPath(pattern).parts
        if not parts or pattern.startswith("/") or ".." in parts:
            raise BadConfig(
                f"copy_files: {pattern!r} leaves the project",
                code="copy_files_outside",
                hint="Use patterns relative to the project's folder, such as .env or config/*.local.",
            )
    done = await git.run(
        "ls-files",
        "-z",
        "--others",
        "--full-name",
        "--",
        *(f":(glob){pattern}" for pattern in patterns),
        env=user_env(),
        cwd=place.toplevel / place.prefix,
    )
    names = [os.fsdecode(name) for name in done.out.split(b"\0") if name and not name.endswith(b"/")]
    return await asyncio.to_thread(_copy, place.toplevel, names, dest)


def _copy(top: Path, names: Sequence[str], dest: Path) -> tuple[str, ...]:
    copied = []
    for name in sorted(names):
        if STATE_FOLDER in PurePosixPath(name).parts:
            continue
        found = Path(os.path.realpath(top / name))
        if not found.is_relative_to(top) or not found.is_file() or not _is_free(dest, name):
            continue
        target = dest / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(found, target)
        copied.append(name)
    return tuple(copied)


def _is_free(root: Path, name: str) -> bool:
    """Say whether a new file at `name` would lie inside `root`, replacing nothing and passing no link."""
    here = root
    *folders, last = PurePosixPath(name).parts
    for part in folders:
        here /= part
        if here.is_symlink() or (here.exists() and not here.is_dir()):
            return False
    return not os.path.lexists(here / last)
