"""Check a plan before anything runs: is it well formed, can its checks fail, do its tasks conflict?

Each pass is a named function with a one-sentence docstring. An impossible plan is always refused. A pointless
one is refused unless the user gives a reason. Everything else is reported.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Final, Protocol

from loopwright.core.policy import graph
from loopwright.core.values.policy import GateCommand

MOST_TASKS: Final = 10_000
MOST_CRITERIA: Final = 20
_NAMED: Final = 5
_COMPARED: Final = 20_000
"""The most pairs of tasks with overlapping write scopes that are compared; more would take too long."""


class Weight(StrEnum):
    """What follows from a finding."""

    IMPOSSIBLE = "impossible"
    """Nothing could run: refused."""
    POINTLESS = "pointless"
    """It could run and prove nothing: refused unless the user gives a reason."""
    OBJECTED = "objected"
    """The evaluator objects: refused unless the user gives a reason."""
    TOLD = "told"


OVERRIDABLE: Final = frozenset({Weight.POINTLESS, Weight.OBJECTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that a pass found."""

    check: str
    weight: Weight
    text: str


class Item(Protocol):
    """What a pass needs to know about a task."""

    @property
    def key(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def depends_on(self) -> tuple[str, ...]: ...
    @property
    def after(self) -> tuple[str, ...]: ...
    @property
    def manual(self) -> bool: ...
    @property
    def acceptance(self) -> tuple[GateCommand, ...]: ...
    @property
    def criteria(self) -> tuple[str, ...]: ...
    @property
    def scope(self) -> tuple[str, ...]: ...


Tasks = Sequence[Item]


def _ids(tasks: Tasks) -> list[Finding]:
    """Every task has a unique name."""
    if len({task.key for task in tasks}) != len(tasks):
        return [_impossible("ids", "task ids are not unique")]
    return []


def _dependencies(tasks: Tasks) -> list[Finding]:
    """Every dependency is a task of the plan."""
    return [
        _impossible("dependencies", f'task "{node}" depends on unknown "{dep}"')
        for node, dep in graph.unknown_dependencies(_edges(tasks))
    ]


def _cycles(tasks: Tasks) -> list[Finding]:
    """No task waits for itself, directly or through others."""
    if _dependencies(tasks):
        return []
    cycle = graph.find_cycle(_edges(tasks))
    return [_impossible("cycles", "tasks wait for each other: " + " -> ".join(cycle))] if cycle else []


def _order(tasks: Tasks) -> list[Finding]:
    """The order of the source fits the dependencies; if it does not, the dependencies count."""
    if _ids(tasks) or _dependencies(tasks) or _cycles(tasks):
        return []
    known = {task.key for task in tasks}
    unknown = [f"{task.key} after {one}" for task in tasks for one in task.after if one not in known]
    _, dropped = graph.ordered(_edges(tasks), {task.key: task.after for task in tasks})
    found = []
    if unknown:
        text = f"the order names tasks that are not in the plan, so it is ignored: {some(unknown)}"
        found.append(Finding(check="order", weight=Weight.TOLD, text=text))
    if dropped:
        pairs = [f"{node} after {one}" for node, one in dropped]
        text = f"the order contradicts the dependencies, so it is ignored: {some(pairs)}"
        found.append(Finding(check="order", weight=Weight.TOLD, text=text))
    return found


def _can_fail(tasks: Tasks) -> list[Finding]:
    """A task's own checks can fail: a check that always passes proves nothing."""
    vain = [
        f"{task.key}: {command.command}"
        for task in tasks
        if not task.manual
        for command in task.acceptance
        if cannot_fail(command.command)
    ]
    text = f"no criterion can fail where the command always passes ({some(vain)})"
    return [Finding(check="can_fail", weight=Weight.POINTLESS, text=text)] if vain else []


def _size(tasks: Tasks) -> list[Finding]:
    """The plan and its tasks are not too large."""
    found = []
    if len(tasks) > MOST_TASKS:
        found.append(
            _impossible("size", f"{len(tasks)} tasks; more than {MOST_TASKS} are too many for one plan")
        )
    large = [task.key for task in tasks if len(task.criteria) > MOST_CRITERIA]
    if large:
        text = f"more than {MOST_CRITERIA} criteria in one task; smaller ones are done better: {some(large)}"
        found.append(Finding(check="size", weight=Weight.TOLD, text=text))
    return found


def _scopes(tasks: Tasks) -> list[Finding]:
    """Tasks that could run in parallel do not write to the same places."""
    if _ids(tasks) or _dependencies(tasks) or _cycles(tasks):
        return []
    meeting = sorted(set(islice(_meeting(tasks), _COMPARED)))
    before = _before(tasks) if meeting else []
    pairs = [
        f"{tasks[one].key} and {tasks[other].key}"
        for one, other in meeting
        if not (before[one] >> other & 1 or before[other] >> one & 1)
    ]
    text = f"these write to the same places, so they take turns: {some(pairs)}"
    return [Finding(check="scopes", weight=Weight.TOLD, text=text)] if pairs else []


def _twins(tasks: Tasks) -> list[Finding]:
    """No two tasks ask for the same work."""
    seen: dict[str, str] = {}
    twins = []
    for task in tasks:
        title = " ".join(task.title.lower().split())
        if title in seen:
            twins.append(f"{seen[title]} and {task.key}")
        seen.setdefault(title, task.key)
    text = f"these have the same title: {some(twins)}"
    return [Finding(check="twins", weight=Weight.TOLD, text=text)] if twins else []


def _acceptance(tasks: Tasks) -> list[Finding]:
    """Every open task has its own acceptance: gates alone say little about one task."""
    bare = [task.key for task in tasks if not task.acceptance and not task.manual]
    text = f"these have no acceptance command: {some(bare)}"
    return [Finding(check="acceptance", weight=Weight.TOLD, text=text)] if bare else []


PASSES: Final[Mapping[str, Callable[[Tasks], list[Finding]]]] = {
    "ids": _ids,
    "dependencies": _dependencies,
    "cycles": _cycles,
    "order": _order,
    "acceptance": _acceptance,
    "can_fail": _can_fail,
    "size": _size,
    "scopes": _scopes,
    "twins": _twins,
}


OF_OPEN: Final = frozenset({"acceptance"})
"""Passes that do not apply to finished tasks."""


def findings(tasks: Tasks, *, settled: Collection[str] = ()) -> tuple[Finding, ...]:
    """Return the findings of all passes; `settled` are the keys of tasks that are done or cancelled."""
    to_do = [task for task in tasks if task.key not in settled]
    return tuple(
        finding for name, look in PASSES.items() for finding in look(to_do if name in OF_OPEN else tasks)
    )


def impossible(tasks: Tasks) -> tuple[str, ...]:
    """Return why nothing of a plan could run; empty if it could."""
    looks = (_ids, _dependencies, _cycles, _size)
    return tuple(one.text for look in looks for one in look(tasks) if one.weight is Weight.IMPOSSIBLE)


def alone(task: Item) -> tuple[Finding, ...]:
    """Return the objections to a single task, without its plan: for a task that is added to a running plan."""
    return tuple(one for one in _can_fail([task]) if one.weight in OVERRIDABLE)


# --- what cannot fail ------------------------------------------------------------------------------------

_ALWAYS: Final = re.compile(r"(?:true|:|exit\s+0|/bin/true|/usr/bin/true)")
_ONLY_PRINTS: Final = re.compile(r"(?:echo|printf)\b[^|;&<>`$]*")
_EXCUSED: Final = re.compile(r"(?:\|\||;)\s*(?:true|:|exit\s+0)\s*$")


def cannot_fail(command: str) -> bool:
    """Return whether a shell command clearly passes whatever the code does."""
    text = command.strip()
    return bool(_ALWAYS.fullmatch(text) or _ONLY_PRINTS.fullmatch(text) or _EXCUSED.search(text))


def _edges(tasks: Tasks) -> dict[str, tuple[str, ...]]:
    return {task.key: task.depends_on for task in tasks}


def waits(tasks: Tasks) -> dict[str, tuple[str, ...]]:
    """Return the predecessors of each task, by dependency or by order; the dependencies must have no cycle."""
    edges = _edges(tasks)
    order, _ = graph.ordered(edges, {task.key: task.after for task in tasks})
    return {key: tuple(dict.fromkeys((*deps, *order[key]))) for key, deps in edges.items()}


def _meeting(tasks: Tasks) -> Iterator[tuple[int, int]]:
    """Return the pairs of tasks, by number, whose write scopes may touch the same path.

    In the order of their fixed parts, a path comes right after its parents, so no task is compared with all
    others.
    """
    places = sorted((graph.fixed_part(pattern), n) for n, task in enumerate(tasks) for pattern in task.scope)
    around: list[tuple[tuple[str, ...], int]] = []
    for place, n in places:
        while around and place[: len(around[-1][0])] != around[-1][0]:
            around.pop()
        yield from ((min(n, other), max(n, other)) for _, other in around if other != n)
        around.append((place, n))


def _before(tasks: Tasks) -> list[int]:
    """Return what must be complete before each task, directly or through others, as bits by task number."""
    edges = waits(tasks)
    number = {task.key: n for n, task in enumerate(tasks)}
    found = [0] * len(tasks)
    for key in graph.topological(edges):
        for near in edges[key]:
            found[number[key]] |= found[number[near]] | 1 << number[near]
    return found


def _impossible(check: str, text: str) -> Finding:
    return Finding(check=check, weight=Weight.IMPOSSIBLE, text=text)


def some(names: Sequence[str]) -> str:
    """Return the first of several names, and how many more there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
