"""What items of a work list wait for, how urgent they are, and keys that are nearly known ones."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from loopwright.adapters.sources.lists.work_items import (
    CRITERIA,
    ID,
    MAX_ITEMS,
    NEEDS,
    PRIORITY,
    READ,
    TITLE,
    Item,
    text_at,
)
from loopwright.adapters.sources.spec.plan_format import MAX_TITLE
from loopwright.adapters.sources.text.located import inner, plain
from loopwright.adapters.sources.text.problems import Problems
from loopwright.config.nearest import nearest, quoted
from loopwright.core.policy.graph import find_cycle, topological

PRIORITIES: Final[Mapping[str, int]] = {
    **dict.fromkeys(("p0", "critical", "urgent", "blocker", "highest", "must", "must have"), 10),
    **dict.fromkeys(("p1", "high", "important"), 25),
    **dict.fromkeys(("p2", "medium", "normal", "should", "should have"), 50),
    **dict.fromkeys(("p3", "low", "could", "could have", "nice to have"), 75),
    **dict.fromkeys(("p4", "lowest", "wont have"), 90),
}
_NOTHING: Final = frozenset({"", "-", "none", "n/a", "null", "nil"})


def needs(items: Sequence[Item], problems: Problems) -> dict[str, tuple[str, ...]]:
    """Return what each item waits for. A name that no item has is noted and left out; a cycle is an error."""
    known: dict[str, list[str]] = {}
    for item in items:
        for name in dict.fromkeys((item.key, text_at(item.found, ID), item.title.casefold())):
            if name:
                known.setdefault(name, []).append(item.key)
    edges: dict[str, tuple[str, ...]] = {}
    unknown: list[str] = []
    for item in items:
        found: list[str] = []
        for name, line, key in _named(item):
            matches = known.get(name) or known.get(name.casefold()) or []
            if not matches and len(unknown) < MAX_ITEMS:
                unknown.append(name)
                guess = nearest(name, [one.key for one in items], cutoff=0.5) if len(items) <= 200 else None
                meant = f" (did you mean {quoted(guess)}?)" if guess is not None else ""
                problems.warn(
                    line, f"{item.place}.{key}", f"no item is called {quoted(name)}{meant}; it is left out"
                )
            if item.key in matches and len(matches) == 1:
                problems.note(line, f"{item.place}.{key}", "an item cannot depend on itself")
            found += [one for one in matches if one != item.key]
        edges[item.key] = tuple(dict.fromkeys(found))
    cycle = find_cycle(edges)
    if cycle is not None:
        first = next(item for item in items if item.key == cycle[0])
        chain = " -> ".join(quoted(key)[1:-1] for key in cycle[:20]) + (" -> …" if len(cycle) > 20 else "")
        problems.note(first.found.line, first.place, f"these items wait for each other: {chain}")
    return edges


def _named(item: Item) -> Iterator[tuple[str, int, str]]:
    for key in NEEDS:
        found = inner(item.found, key)
        if found is None:
            continue
        if isinstance(found.value, str):
            names = [part for part in re.split(r"[,;]", found.value) if len(part) <= MAX_TITLE]
        elif isinstance(found.value, list):
            names = [
                text_at(one, (*ID, *TITLE)) if isinstance(one.value, dict) else one.text
                for one in found.value
            ]
        else:
            names = [found.text]
        for name in names:
            if name.strip().casefold() not in _NOTHING:
                yield " ".join(name.split()), found.line, key


def levels(edges: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return for each item how many others it waits for, one after the other."""
    found: dict[str, int] = {}
    for key in topological(edges):
        found[key] = max((found[needed] + 1 for needed in edges[key]), default=0)
    return found


def priority(item: Item, usual: float, problems: Problems) -> float:
    """Return the priority, lower first; a word such as `high` has a number."""
    found = inner(item.found, "priority")
    if found is None or found.value is None:
        return usual
    if isinstance(found.value, int | float) and not isinstance(found.value, bool):
        return found.value
    word = " ".join(found.text.casefold().replace("_", " ").replace("-", " ").split()) if found.text else ""
    if word.isdigit() and len(word) < 10:
        return int(word)
    if word not in PRIORITIES:
        problems.warn_once(
            "priority", found.line, f"{item.place}.priority", f"not a priority: {usual:g} is used"
        )
    return PRIORITIES.get(word, usual)


def note_near_misses(items: Iterable[Item], known: Collection[str], problems: Problems) -> None:
    """Note each key once that is nearly a known key; every other key belongs to the project."""
    ours = READ | set(known)
    proposed = {"title", "description", *CRITERIA, *NEEDS, *PRIORITY, *known}
    guesses: dict[str, str | None] = {}
    for item in items:
        assert isinstance(item.found.value, dict)
        for key, value in item.found.value.items():
            if key in ours or key in guesses or len(guesses) >= 200:
                continue
            guesses[key] = guess = nearest(key, proposed, cutoff=0.85)
            if guess is not None and plain(item.found, guess) is None:
                problems.warn(
                    value.line, f"{item.place}.{key}", f"unknown key, it is ignored: did you mean {guess}?"
                )
