"""Where a workspace's own git dir says it stands. Read and written as files: someone may have bent them."""

import os
from pathlib import Path
from typing import Final

from loopwright.adapters.git.plumbing.private_git import WORK_BRANCH
from loopwright.adapters.machine.files import is_real_dir, regular_text

_LIMIT: Final = 1000


def stands_at(git_dir: Path, sha: str) -> bool:
    """Say whether a clone is on the branch and at the commit that it was made with."""
    folders = (git_dir, *(git_dir / part for part in ("refs", "refs/heads")))
    if not all(is_real_dir(folder) for folder in folders):
        return False
    return _text(git_dir / "HEAD") == f"ref: {WORK_BRANCH}" and _text(git_dir / WORK_BRANCH) == sha


def put(git_dir: Path, sha: str, index: Path) -> None:
    """Say that it stands at another commit now, with this index."""
    _replace(git_dir / "index", index.read_bytes())
    _replace(git_dir / WORK_BRANCH, f"{sha}\n".encode())


def _replace(path: Path, content: bytes) -> None:
    """Put a plain file in the place of whatever is there; a link is not followed."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    with os.fdopen(handle, "wb") as file:
        file.write(content)


def _text(path: Path) -> str:
    return regular_text(path, limit=_LIMIT)
