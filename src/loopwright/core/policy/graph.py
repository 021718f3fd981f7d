"""The graph of tasks: its defects, the tasks that are ready, and its longest chain."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from loopwright.core.rows.model import Task
from loopwright.core.values.globs import any_covers

Edges = Mapping[str, Collection[str]]
"""Each node with the nodes it depends on."""
_MOST_DROPPED: Final = 20
"""An order with more contradictions than this is ignored."""


def unknown_dependencies(edges: Edges) -> tuple[tuple[str, str], ...]:
    """Return (node, dependency) for each dependency that is not a node."""
    return tuple((node, dep) for node, deps in edges.items() for dep in deps if dep not in edges)


def find_cycle(edges: Edges) -> tuple[str, ...] | None:
    """Return one cycle as the nodes along it, the first repeated at the end, or None."""
    done: set[str] = set()
    for root in edges:
        if root in done:
            continue
        path: list[str] = []
        on_path: set[str] = set()
        # An explicit stack: a chain of ten thousand tasks must not hit the recursion limit.
        stack: list[tuple[str, Iterable[str]]] = [(root, iter(edges[root]))]
        path.append(root)
        on_path.add(root)
        while stack:
            node, dependencies = stack[-1]
            for dependency in dependencies:
                if dependency in on_path:
                    return (*path[path.index(dependency) :], dependency)
                if dependency in edges and dependency not in done:
                    stack.append((dependency, iter(edges[dependency])))
                    path.append(dependency)
                    on_path.add(dependency)
                    break
            else:
                stack.pop()
                path.pop()
                on_path.discard(node)
                done.add(node)
    return None


def ordered(edges: Edges, after: Edges) -> tuple[dict[str, tuple[str, ...]], tuple[tuple[str, str], ...]]:
    """Return the order that fits the dependencies, and the (node, predecessor) pairs that were dropped for it.

    An order never makes a plan impossible: of each cycle, one pair that is only order is dropped.
    """
    kept = {
        node: [one for one in dict.fromkeys(after.get(node, ())) if one in edges and one != node]
        for node in edges
    }
    dropped: list[tuple[str, str]] = []
    while cycle := find_cycle({node: (*deps, *kept[node]) for node, deps in edges.items()}):
        pairs = [(node, one) for node, one in pairwise(cycle) if one not in edges[node]]
        if not pairs:
            break  # the dependencies alone form a cycle, which is refused elsewhere
        if len(dropped) >= _MOST_DROPPED:
            dropped += [(node, one) for node, before in kept.items() for one in before]
            kept = {node: [] for node in edges}
            break
        node, one = pairs[-1]
        kept[node].remove(one)
        dropped.append((node, one))
    return {node: tuple(before) for node, before in kept.items()}, tuple(dropped)


def order_among(nodes: Collection[str], after: Edges) -> dict[str, tuple[str, ...]]:
    """Return the order of some nodes; it leads through the others, which are left out."""
    known = frozenset(nodes)
    found: dict[str, tuple[str, ...]] = {}
    for node in nodes:
        before: dict[str, None] = {}
        seen: set[str] = set()
        todo = list(after.get(node, ()))
        while todo:
            one = todo.pop()
            if one in known:
                before[one] = None
            elif one not in seen:
                seen.add(one)
                todo.extend(after.get(one, ()))
        found[node] = tuple(before)
    return found


def dependents(edges: Edges) -> dict[str, list[str]]:
    """Return each node with the nodes that depend on it directly."""
    result: dict[str, list[str]] = {node: [] for node in edges}
    for node, deps in edges.items():
        for dep in deps:
            result[dep].append(node)
    return result


def ready(edges: Edges, complete: Collection[str]) -> tuple[str, ...]:
    """Return the nodes that are not complete and whose dependencies all are."""
    done = frozenset(complete)
    return tuple(node for node, deps in edges.items() if node not in done and done.issuperset(deps))


def topological(edges: Edges) -> tuple[str, ...]:
    """Return the nodes so that each comes after its dependencies; the edges must have no cycle."""
    waiting = {node: len(set(deps)) for node, deps in edges.items()}
    followers = dependents({node: set(deps) for node, deps in edges.items()})
    order = [node for node, count in waiting.items() if count == 0]
    for node in order:
        for follower in followers[node]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                order.append(follower)
    return tuple(order)


def critical_path(edges: Edges) -> tuple[str, ...]:
    """Return the longest chain of dependencies, first task first."""
    length: dict[str, int] = {}
    before: dict[str, str] = {}
    for node in topological(edges):
        length[node] = 1
        for dep in edges[node]:
            if length[dep] + 1 > length[node]:
                length[node] = length[dep] + 1
                before[node] = dep
    if not length:
        return ()
    node = max(length, key=lambda name: length[name])
    chain = [node]
    while node in before:
        node = before[node]
        chain.append(node)
    return tuple(reversed(chain))


def scopes_overlap(one: Iterable[str], other: Iterable[str]) -> bool:
    """Return whether two write scopes may touch the same path.

    The fixed part before the first wildcard decides, so a doubtful pair counts as overlapping. An empty scope
    declares nothing and overlaps with nothing: the candidate's gate detects such conflicts.
    """
    mine = [fixed_part(pattern) for pattern in one]
    theirs = [fixed_part(pattern) for pattern in other]
    return any(_meets(a, b) for a in mine for b in theirs)


def fixed_part(pattern: str) -> tuple[str, ...]:
    """Return the folders and names of a pattern before its first wildcard."""
    parts: list[str] = []
    for part in pattern.split("/"):
        if any(mark in part for mark in "*?[{"):
            break
        if part not in ("", "."):
            parts.append(part)
    return tuple(parts)


def _meets(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


# Where a task writes: its declared scope, the changes of its attempts, and changes outside the scope.

_MOST: Final = 200
"""The most paths that are kept by name; beyond it, the top folders."""


def claims(task: Task) -> tuple[str, ...]:
    """Return the paths that no other task should change while this task runs."""
    return (*task.scope, *task.touched)


def kept(paths: Iterable[str]) -> tuple[str, ...]:
    """Return sorted unique paths, few enough to store on a row."""
    each = tuple(dict.fromkeys(paths))
    if len(each) <= _MOST:
        return each
    folders = tuple(dict.fromkeys(f"{path.split('/')[0]}/**" if "/" in path else path for path in each))
    return folders if len(folders) <= _MOST else ("**",)


def strayed(touched: Sequence[str], scope: Sequence[str]) -> tuple[str, ...]:
    """Return the paths outside a declared scope; a task without a scope has none."""
    return tuple(path for path in touched if scope and not any_covers(scope, path))
