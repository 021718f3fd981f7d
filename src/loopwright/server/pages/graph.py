"""Lay out a plan's tasks as a graph: columns by the length of the longest chain before a task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from loopwright.services.dashboard import plan

NODE_WIDTH: Final = 212
NODE_HEIGHT: Final = 46
_GAP_X: Final = 40
_GAP_Y: Final = 14
_MARGIN: Final = 12
_TALLEST: Final = 24
"""How many tasks stand below each other before a column is split."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A task with the place of its box."""

    id: str
    x: int
    y: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A dependency as a curve from the right side of one box to the left side of another."""

    before: str
    after: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Boxes and curves, and the size of the drawing."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    width: int
    height: int


def lay_out(needs: Mapping[str, Sequence[str]]) -> Graph:
    """Place every task to the right of the tasks that it needs; `needs` is in the order of the plan."""
    ranks = plan.ranks(needs)
    edges = [(before, after) for after, needed in needs.items() for before in needed if before in ranks]
    # A dependency over several columns keeps a free place in each of them, so that no box hides it.
    passing: dict[tuple[str, str], list[str]] = {}
    needed: dict[str, list[str]] = {one: [] for one in needs}
    columns: list[list[str]] = [[] for _ in range(max(ranks.values(), default=-1) + 1)]
    for one in needs:
        columns[ranks[one]].append(one)
    for before, after in edges:
        chain = [f"{before}>{after}@{rank}" for rank in range(ranks[before] + 1, ranks[after])]
        passing[before, after] = chain
        for one, rank in zip(chain, range(ranks[before] + 1, ranks[after]), strict=True):
            columns[rank].append(one)
        for one, other in pairwise([before, *chain, after]):
            needed.setdefault(other, []).append(one)
    places = _placed(columns, needed)
    drawn = tuple(
        Edge(
            before=before,
            after=after,
            path="".join(
                _curve(places[one], places[other], starts=one == before)
                for one, other in pairwise([before, *passing[before, after], after])
            ),
        )
        for before, after in edges
    )
    return Graph(
        nodes=tuple(places[one] for one in needs),
        edges=drawn,
        width=max((one.x for one in places.values()), default=-_MARGIN) + NODE_WIDTH + _MARGIN
        if places
        else 0,
        height=max((one.y for one in places.values()), default=0) + NODE_HEIGHT + _MARGIN if places else 0,
    )


def _placed(columns: Sequence[Sequence[str]], needed: Mapping[str, Sequence[str]]) -> dict[str, Node]:
    """Return the place of every box and of every free place, in columns that are split where they get too tall."""
    split: list[list[str]] = []
    rows: dict[str, int] = {}
    for column in columns:

        def middle(one: str) -> float:
            found = [rows[before] for before in needed[one] if before in rows]
            return sum(found) / len(found) if found else 0.0

        ordered = sorted(column, key=middle) if split else list(column)
        for at in range(0, len(ordered), _TALLEST):
            part = ordered[at : at + _TALLEST]
            split.append(part)
            rows.update({one: row for row, one in enumerate(part)})
    return {
        one: Node(id=one, x=_MARGIN + index * (NODE_WIDTH + _GAP_X), y=_MARGIN + row * (NODE_HEIGHT + _GAP_Y))
        for index, part in enumerate(split)
        for row, one in enumerate(part)
    }


def _curve(before: Node, after: Node, *, starts: bool) -> str:
    """Return the next piece of a line: it leaves a box on its right, and goes straight through a free place."""
    x1, y1 = before.x + NODE_WIDTH, before.y + NODE_HEIGHT // 2
    x2, y2 = after.x, after.y + NODE_HEIGHT // 2
    bend = max(24, (x2 - x1) // 2)
    begin = f"M{x1} {y1}" if starts else f"H{x1}"
    return f"{begin}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"
