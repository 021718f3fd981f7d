"""What an attempt changed, asked of the user's own repository, where every attempt is pinned."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopwright.adapters.git.plumbing.environment import user_env
from loopwright.adapters.git.plumbing.runner import Git
from loopwright.core.values.errors import GitFailed, UserError
from loopwright.engine.views.views import TaskDetail

# Neither programs of the user's configuration nor of an agent's attributes take part.
_PLAIN: Final = ("--no-ext-diff", "--no-textconv")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How much a diff touches."""

    files: tuple[str, ...]
    insertions: int
    deletions: int

    def in_words(self, *, names: int = 3) -> str:
        """Return the change as half a line."""
        if not self.files:
            return "changed nothing"
        more = f" and {len(self.files) - names} more" if len(self.files) > names else ""
        return f"{', '.join(self.files[:names])}{more}  +{self.insertions} -{self.deletions}"


class Changes:
    """Reads diffs of one repository; changes nothing in it."""

    def __init__(self, path: Path) -> None:
        self._git = Git()
        self._path = path

    async def between(self, old: str | None, new: str | None) -> Change | None:
        """Return what differs between two commits; None when one of them is not there."""
        if old is None or new is None:
            return None
        try:
            done = await self._git.run(
                "diff-tree",
                "-r",
                "-z",
                "--no-renames",
                "--numstat",
                *_PLAIN,
                old,
                new,
                env=user_env(),
                cwd=self._path,
            )
        except (GitFailed, UserError):
            return None
        files: list[str] = []
        counts = [0, 0]
        for entry in done.out.decode("utf-8", "replace").split("\0"):
            found = re.fullmatch(r"(\d+|-)\t(\d+|-)\t(.+)", entry, re.DOTALL)
            if found is None:
                continue
            files.append(" ".join(found[3].split()))
            for n in (0, 1):
                counts[n] += int(found[n + 1]) if found[n + 1] != "-" else 0
        return Change(files=tuple(files), insertions=counts[0], deletions=counts[1])

    async def print_diff(self, old: str, new: str, *, color: bool) -> None:
        """Write the whole diff to the standard output, piece by piece."""
        paint = "--color=always" if color else "--no-color"
        sys.stdout.flush()
        await self._git.run(
            "diff-tree", "-r", "-p", "--stat", paint, *_PLAIN, old, new,
            env=user_env(), cwd=self._path, sink=sys.stdout.buffer.write,
        )  # fmt: skip
        sys.stdout.buffer.flush()


def task_span(detail: TaskDetail) -> tuple[str | None, str | None]:
    """Return the commits around what a task landed, else around its newest attempt that left work."""
    if detail.task.commit:
        return f"{detail.task.commit}^1", detail.task.commit
    kept = [one for one in detail.attempts if one.tip_sha]
    return (kept[-1].base_sha, kept[-1].tip_sha) if kept else (None, None)
