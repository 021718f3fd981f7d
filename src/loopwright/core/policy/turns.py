"""Which loop of a project has its turn: files and named locks have one holder, and no two loops wait for each other."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from loopwright.core.policy.graph import find_cycle, scopes_overlap
from loopwright.core.rows.hold_rows import Hold
from loopwright.core.values.states import HoldState


@dataclass(frozen=True, slots=True, kw_only=True)
class Victim:
    """A request that is refused, because loops wait for each other."""

    hold: Hold
    cycle: tuple[str, ...]
    """The plans that wait for each other, the first repeated at the end."""


def collide(one: Hold, other: Hold) -> bool:
    """Return whether two plans cannot have both at once."""
    if one.plan_id == other.plan_id or one.project_id != other.project_id or one.lock != other.lock:
        return False
    return bool(one.lock) or scopes_overlap(one.paths, other.paths)


def blocking(wish: Hold, holds: Sequence[Hold]) -> tuple[Hold, ...]:
    """Return what keeps a request waiting: what others hold, and what they asked for earlier."""
    return tuple(
        one
        for one in holds
        if collide(wish, one)
        and (one.state is HoldState.HELD or (one.state is HoldState.WAITING and _place(one) < _place(wish)))
    )


def victims(holds: Sequence[Hold]) -> tuple[Victim, ...]:
    """Return the requests to refuse so that no plans wait for each other: of each cycle the newest request."""
    left = {one.id: one for one in holds}
    found: list[Victim] = []
    while cycle := find_cycle(_edges(list(left.values()))):
        steps = set(pairwise(cycle))
        asked = [
            one
            for one in left.values()
            if one.state is HoldState.WAITING
            and any((one.plan_id, other.plan_id) in steps for other in blocking(one, list(left.values())))
        ]
        newest = max(asked, key=_place)
        found.append(Victim(hold=newest, cycle=cycle))
        left[newest.id] = replace(newest, state=HoldState.REFUSED)
    return tuple(found)


def _edges(holds: Sequence[Hold]) -> dict[str, tuple[str, ...]]:
    """Return each plan with the plans that it waits for."""
    edges: dict[str, tuple[str, ...]] = {one.plan_id: () for one in sorted(holds, key=_place)}
    for one in holds:
        if one.state is HoldState.WAITING:
            edges[one.plan_id] = (*edges[one.plan_id], *(other.plan_id for other in blocking(one, holds)))
    return edges


def _place(one: Hold) -> tuple[object, str]:
    return (one.created_at, one.id)
