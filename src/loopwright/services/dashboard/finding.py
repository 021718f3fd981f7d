"""The search of the command palette: projects, loops, plans and tasks by their names."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from loopwright.core.rows.model import Loop, Plan, Project, Task
from loopwright.core.values.access import Caller
from loopwright.ports import Tx
from loopwright.services.homes.session import Session
from loopwright.services.remote.seen import seen_where

MOST: Final = 12
_LOOKED_AT: Final = 400
"""The newest rows of each kind; older ones are found by their id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A page to go to."""

    kind: str
    title: str
    where: str
    address: str
    state: str = ""


async def find_places(at: Session, caller: Caller, wanted: str) -> tuple[Place, ...]:
    """Return the pages whose names contain every word of a text; those whose names begin with it come first."""
    words = wanted.lower().split()

    def load(tx: Tx) -> tuple[Place, ...]:
        found = [one for one in _places(tx, caller) if _has(one, words)]
        first = wanted.lower().strip()
        found.sort(key=lambda one: not one.title.lower().startswith(first))
        return tuple(found[:MOST])

    return await at.home.store.read(load)


def _has(place: Place, words: list[str]) -> bool:
    text = f"{place.title} {place.where} {place.address}".lower()
    return all(word in text for word in words)


def _places(tx: Tx, caller: Caller) -> Iterator[Place]:
    """Yield what the caller can see, most likely matches first."""
    mine = seen_where(tx, caller, None)
    projects = {one.id: one for one in tx.find(Project, order_by=("name",)) if caller.sees(one.id)}
    names = {one.id: one.name for one in projects.values()}
    newest = tx.find(Plan, order_by=("-created_at", "-id"), limit=_LOOKED_AT, **mine)
    plans = [one for one in newest if one.made_for is None]
    for plan in plans:
        where = names.get(plan.project_id, "")
        yield Place(
            kind="plan", title=plan.title, where=where, address=f"/plans/{plan.id}", state=plan.status.value
        )
    for project in projects.values():
        yield Place(kind="project", title=project.name, where=project.path, address=f"/projects/{project.id}")
    for loop in tx.find(Loop, order_by=("-updated_at",), limit=_LOOKED_AT, deleted_at=None, **mine):
        where = f"{names.get(loop.project_id, '')} · {loop.source_path}"
        yield Place(
            kind="loop", title=loop.name, where=where, address=f"/loops/{loop.id}", state=loop.state.value
        )
    titles = {plan.id: plan.title for plan in plans[:40]}
    if titles:
        for task in tx.find(Task, plan_id=list(titles), order_by=("-updated_at",), limit=_LOOKED_AT):
            yield Place(
                kind="task",
                title=f"{task.key}: {task.title}",
                where=titles[task.plan_id],
                address=f"/plans/{task.plan_id}/tasks/{task.id}",
                state=task.status.value,
            )
