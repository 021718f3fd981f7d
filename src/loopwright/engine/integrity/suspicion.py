"""Find the suspicious places of a candidate."""

import posixpath
from typing import Final

from loopwright.core.integrity.gate_files import declared
from loopwright.core.integrity.suspicion import Change, suspicious_places
from loopwright.core.rows.model import Task
from loopwright.ports import Candidate, Entry, Repository

_MOST_BYTES: Final = 4_000_000
_FILE: Final = "100"


async def places_in(repository: Repository, candidate: Candidate, subfolder: str) -> tuple[str, ...]:
    """Return the places of a candidate that a reviewer should read, with paths relative to the project."""
    top = f"{subfolder}/" if subfolder else ""
    changed = [(one.path.removeprefix(top), _id(one.before), _id(one.after)) for one in candidate.changes]
    ids = dict.fromkeys(each for _, before, after in changed if after for each in (after, before) if each)
    texts = await repository.texts(list(ids), limit=_MOST_BYTES) if ids else {}
    places = suspicious_places(
        Change(path=path, before=texts.get(before or "", ""), after=texts[after])
        for path, before, after in changed
        if after is not None and after in texts
    )
    return tuple(str(place) for place in places)


def _id(entry: Entry | None) -> str | None:
    return entry.id if entry is not None and entry.mode.startswith(_FILE) else None


# Links that lead out of the project: what a check finds behind them is not in the tree that lands.

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
    """Return whether a link at this path of the tree leads out of the tree."""
    if posixpath.isabs(target):
        return True
    reached = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return reached == ".." or reached.startswith("../")
