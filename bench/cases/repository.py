"""A large repository: what a workspace costs in time and disk, beside a plain `git worktree add`."""

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Measurement, Setting, taken_in_turn
from bench.yard import Yard
from loopwright.adapters.git import GitRepository

CASE = "repository"


def case(setting: Setting) -> Iterator[Measurement]:
    """Make workspaces of a generated repository, alternately with worktrees."""
    files = setting.pick(50_000, 5_000)
    yard = Yard(root=setting.folder / "large", jobs=(), files=files).make()
    sha = yard.git("rev-parse", "HEAD")
    repository = GitRepository(yard.repository, project_id="prj_bench", home=yard.home)
    disks: dict[str, list[int]] = {"workspace": [], "worktree": []}

    def workspace(n: int) -> float:
        path = yard.home / "workspaces" / f"att_{n}"
        _settle()
        began = time.monotonic()
        asyncio.run(repository.make_workspace(path, sha, marker=f"att_{n}"))
        took = time.monotonic() - began
        disks["workspace"].append(_disk_bytes(path))
        asyncio.run(repository.remove_workspace(path))
        return took

    def worktree(n: int) -> float:
        path = yard.root / f"worktree-{n}"
        _settle()
        began = time.monotonic()
        yard.git("worktree", "add", "-q", "--detach", str(path))
        took = time.monotonic() - began
        disks["worktree"].append(_disk_bytes(path))
        shutil.rmtree(path)
        subprocess.run(["git", "worktree", "prune"], cwd=yard.repository, env=yard.env(), check=True)
        return took

    ours, theirs = taken_in_turn(setting.repeats, (workspace, worktree))
    yield Measurement(
        case=CASE,
        name=f"making a workspace of {files} files",
        unit="s",
        values=tuple(ours),
        against="git worktree add",
        baseline=tuple(theirs),
    )
    yield Measurement(
        case=CASE,
        name=f"disk of a workspace of {files} files",
        unit="MB",
        values=tuple(one / 1e6 for one in disks["workspace"]),
        against="git worktree add",
        baseline=tuple(one / 1e6 for one in disks["worktree"]),
    )
    shutil.rmtree(yard.root, ignore_errors=True)


def _settle() -> None:
    """Let the disk write out what came before: whoever is measured next would pay for it."""
    os.sync()


def _disk_bytes(path: Path) -> int:
    total = 0
    for folder, _, names in os.walk(path):
        total += sum((Path(folder) / name).lstat().st_blocks * 512 for name in names)
    return total
