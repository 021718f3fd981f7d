"""What a plan, a task or an attempt changed, read from the user's repository, which pins every attempt."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from loopwright.adapters.git.plumbing.runner import Git, user_env
from loopwright.core.rows.model import Plan, Project, Run, Task
from loopwright.core.values.errors import GitFailed, NotFound, UserError
from loopwright.core.values.ids import short_id
from loopwright.core.values.wording import to_type
from loopwright.engine.rows.moves import need
from loopwright.engine.views.overview import run_view
from loopwright.engine.views.views import TaskDetail, task_detail
from loopwright.ports import Tx
from loopwright.services.homes.read_only_home import Look, glancing, wanted

# Neither programs of the user's configuration nor of an agent's attributes run.
_PLAIN: Final = ("--no-ext-diff", "--no-textconv")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The size of a diff."""

    files: tuple[str, ...]
    insertions: int
    deletions: int

    def in_words(self, *, names: int = 3) -> str:
        """Return the change as part of a line."""
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
        """Return the difference between two commits; None if one of them does not exist."""
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

    async def write_diff(self, old: str, new: str, sink: Callable[[bytes], object], *, color: bool) -> None:
        """Give the whole diff to `sink`, piece by piece."""
        paint = "--color=always" if color else "--no-color"
        await self._git.run(
            "diff-tree", "-r", "-p", "--stat", paint, *_PLAIN, old, new,
            env=user_env(), cwd=self._path, sink=sink,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Two commits of a repository to compare."""

    repository: Path
    name: str
    """The plan, task or run that made the change."""
    old: str
    new: str


def span_of(target: str | None, *, tell: Callable[[str], None]) -> Span:
    """Return the commits around the change of a plan, a task or a run; `tell` the choice if none is named."""
    with glancing() as look:
        row = look.store.read_sync(lambda tx: wanted(tx, target, verb="diff", tell=tell))
        path, name, old, new = look.store.read_sync(lambda tx: _span(tx, look, row))
    if old is None or new is None:
        raise NotFound(
            f"{name} has changed nothing yet",
            code="no_changes",
            hint=f"`{to_type('status', name)}` shows how it is going",
        )
    return Span(repository=Path(path), name=name, old=old, new=new)


async def write_diff(span: Span, sink: Callable[[bytes], object], *, color: bool = False) -> None:
    """Give the diff of a span to `sink`, piece by piece."""
    await Changes(span.repository).write_diff(span.old, span.new, sink, color=color)


async def changes_of(detail: TaskDetail) -> dict[int, Change | None]:
    """Return what each attempt changed, by its number; 0 is what landed."""
    repository = Changes(Path(detail.path))
    found = {one.n: await repository.between(one.base_sha, one.tip_sha) for one in detail.attempts}
    if detail.task.commit:
        found[0] = await repository.between(*task_span(detail))
    return found


def task_span(detail: TaskDetail) -> tuple[str | None, str | None]:
    """Return the commits around what a task landed, else around its newest attempt that left work."""
    if detail.task.commit:
        return f"{detail.task.commit}^1", detail.task.commit
    kept = [one for one in detail.attempts if one.tip_sha]
    return (kept[-1].base_sha, kept[-1].tip_sha) if kept else (None, None)


def _span(tx: Tx, look: Look[Any], row: Plan | Task | Run) -> tuple[str, str, str | None, str | None]:
    """Return the repository, the name, and the two commits to compare."""
    plan = row if isinstance(row, Plan) else need(tx.get(Plan, row.plan_id), "the plan")
    path = need(tx.get(Project, plan.project_id), "the project").path
    if isinstance(row, Task):
        return path, row.key, *task_span(task_detail(tx, row.id, look.paths))
    if isinstance(row, Run):
        view = run_view(tx, row, look.paths)
        return path, short_id(row.id), view.base_sha, view.tip_sha
    return path, short_id(row.id), row.base_sha, row.result_sha or f"refs/heads/{row.branch}"
