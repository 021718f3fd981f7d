"""A user with a repository, a home, and the adapter between them."""

import os
import subprocess
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loopwright.adapters.git import GitRepository
from loopwright.ports import Snapshot, Trailers

AT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
PLAN = "plan_00000000-0000-4000-8000-000000000001"
TASK = "ptask_00000000-0000-4000-8000-000000000001"
BRANCH = f"loopwright/{PLAN}/main"


def sh(cwd: Path, *args: str, check: bool = True, env: dict[str, str] | None = None, stdin: str = "") -> str:
    """Run a program as a person (or an agent) would, and return its output."""
    done = subprocess.run(
        args, cwd=cwd, input=stdin, capture_output=True, text=True, env={**os.environ, **(env or {})}
    )
    if check and done.returncode != 0:
        raise AssertionError(f"{args} failed: {done.stdout}{done.stderr}")
    return done.stdout.strip()


def write(root: Path, files: dict[str, str]) -> None:
    """Write files below a folder."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def start_repository(path: Path, files: dict[str, str], *flags: str) -> Path:
    """Make a repository with one commit."""
    path.mkdir(parents=True, exist_ok=True)
    sh(path, "git", "init", "-q", *flags)
    write(path, files)
    sh(path, "git", "add", "-A")
    sh(path, "git", "commit", "-q", "-m", "first")
    return path


def trailers(task: str = TASK, attempt: str = "att_1", run: str = "run_1") -> Trailers:
    """Return the trailers of one attempt."""
    return Trailers(plan=PLAN, task=task, attempt=attempt, run=run)


class _Anything(frozenset[str]):
    def __contains__(self, _value: object) -> bool:
        return True


ANY = _Anything()
"""Whatever carries a task's trailer."""


@dataclass(slots=True)
class World:
    """A user with a repository, and a home beside it."""

    user: Path
    home: Path
    repository: GitRepository
    base_sha: str
    workspace: Path = field(init=False)

    def __post_init__(self) -> None:
        self.workspace = self.home / "workspaces" / "att_1"

    def sh(self, *args: str, **options: Any) -> str:
        """Run a program in the user's checkout."""
        return sh(self.user, *args, **options)

    def agent(self, script: str) -> str:
        """Run a shell script in the workspace, as an agent does."""
        return sh(self.workspace, "bash", "-e", "-c", script)

    def another(self, **options: Any) -> GitRepository:
        """Return a second adapter, as another process would have it."""
        return GitRepository(self.user, project_id="proj_1", home=self.home, **options)

    async def make(self, **options: Any) -> Path:
        """Make the workspace at the base."""
        await self.repository.make_workspace(self.workspace, self.base_sha, **options)
        return self.workspace

    async def snapshot(self, n: int = 1, path: Path | None = None, **options: Any) -> Snapshot:
        """Take a snapshot of a workspace."""
        arguments: dict[str, Any] = {
            "base_sha": self.base_sha,
            "ref": f"refs/loopwright/attempts/{PLAN}/{TASK}/{n}",
            "subject": "feat: do it",
            "trailers": trailers(),
            "at": AT,
        }
        return await self.repository.snapshot(path or self.workspace, **(arguments | options))

    def files_at(self, sha: str) -> list[str]:
        """Return the paths of a commit in the user's repository."""
        return self.sh("git", "ls-tree", "-r", "--name-only", sha).splitlines()
