"""Links that lead out of the project: what a check finds behind them is not in the tree that lands."""

import posixpath
from typing import Final

from loopwright.core.integrity.gate_files import declared
from loopwright.core.rows.model import Task
from loopwright.ports import Candidate, Repository

_LINK: Final = "120000"


async def leading_out(repository: Repository, task: Task, candidate: Candidate) -> list[str]:
    """Name the links that the work adds or changes and that lead out of the repository; a task may declare some."""
    links = [
        (change.path, change.after.id)
        for change in candidate.changes
        if change.after is not None
        and change.after.mode == _LINK
        and not declared(change.path, (*task.scope, *task.approved))
    ]
    if not links:
        return []
    targets = await repository.contents([blob for _, blob in links])
    return [
        f"{path} -> {target}"
        for (path, _), target in zip(links, targets, strict=True)
        if is_outside(path, target)
    ]


def is_outside(path: str, target: str) -> bool:
    """Say whether a link at this path of the tree leads out of the tree."""
    if posixpath.isabs(target):
        return True
    reached = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return reached == ".." or reached.startswith("../")
