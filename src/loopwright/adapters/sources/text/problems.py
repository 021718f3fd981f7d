"""Gathering everything that is wrong with a source, each with its place, before it is refused once."""

from collections.abc import Collection, Mapping
from typing import Final

from loopwright.config.nearest import nearest, quoted
from loopwright.core.policy.graph import find_cycle
from loopwright.core.values.errors import BadPlan

MAX_PROBLEMS: Final = 50
MAX_WAITS: Final = 250_000
"""How many dependencies a source may imply without writing them down."""
MAX_DEPTH: Final = 50
"""How deeply lists and objects may be nested."""


class Unreadable(Exception):
    """The text cannot be read; where, and why."""

    def __init__(self, line: int | None, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


class Problems:
    """What is wrong with one file, and what is only odd about it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._found: list[tuple[int, str]] = []
        self._odd: list[tuple[int, str]] = []
        self._kinds: set[str] = set()
        self.count = 0

    def note(self, line: int, place: str, message: str) -> None:
        """Take down a reason to refuse the source."""
        self.count += 1
        # A hostile file has millions of them: enough are kept to show the first ones of a long file.
        if len(self._found) < 20 * MAX_PROBLEMS:
            self._found.append((line, _one_line(place, message)))

    def warn(self, line: int, place: str, message: str) -> None:
        """Take down what is odd, but not a reason to refuse."""
        if len(self._odd) < MAX_PROBLEMS:
            self._odd.append((line, _one_line(place, message)))

    def warn_once(self, kind: str, line: int, place: str, message: str) -> None:
        """Take down what is odd about many entries at the first of them only."""
        if kind not in self._kinds:
            self._kinds.add(kind)
            self.warn(line, place, message)

    @property
    def crowded(self) -> bool:
        """Whether there are so many that guessing what was meant is not worth the time."""
        return self.count >= MAX_PROBLEMS

    @property
    def located(self) -> tuple[str, ...]:
        """All problems, from the top of the file to its end."""
        return self._shown(self._found)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is odd, from the top of the file to its end."""
        return self._shown(self._odd)

    def _shown(self, found: list[tuple[int, str]]) -> tuple[str, ...]:
        ordered = sorted(found, key=lambda each: each[0])
        return tuple(f"{self._name}:{line}: {words}" for line, words in ordered)


def _one_line(place: str, message: str) -> str:
    # The place can be a key of the file, which may hold a line break.
    return " ".join(f"{place}{': ' if place else ''}{message}".splitlines())


def refuse(name: str, *gathered: Problems) -> None:
    """Raise `BadPlan` if there is any problem in these files."""
    problems = tuple(one for each in gathered for one in each.located)
    count = sum(each.count for each in gathered)
    if count > MAX_PROBLEMS:
        problems = (*problems[:MAX_PROBLEMS], f"and {count - MAX_PROBLEMS} more problems")
    if problems:
        raise BadPlan(name, problems)


def check_graph(
    problems: Problems,
    edges: Mapping[str, Collection[str]],
    places: Mapping[str, tuple[int, str]],
    what: str,
    *,
    broken: Collection[str] = (),
) -> None:
    """Note dependencies on itself or on an unknown node, and one cycle; `places` says where each node's are written.

    Nodes that are wrong themselves, `broken`, are not proposed.
    """
    known: dict[str, list[str]] = {}
    for key, needs in edges.items():
        line, place = places[key]
        known[key] = []
        for needed in needs:
            if needed == key:
                problems.note(line, place, f"a {what} cannot depend on itself")
            elif needed not in edges:
                guess = (
                    "" if problems.crowded else _guess(needed, [one for one in edges if one not in broken])
                )
                problems.note(line, place, f"unknown {what} {quoted(needed)}{guess}")
            else:
                known[key].append(needed)
    cycle = find_cycle(known)
    if cycle is not None:
        shown = " -> ".join(quoted(key)[1:-1] for key in cycle[:20]) + (" -> …" if len(cycle) > 20 else "")
        problems.note(*places[cycle[0]], f"these {what}s wait for each other: {shown}")


def _guess(needed: str, known: Collection[str]) -> str:
    # Ids are short, so half of the letters is near enough; in a large plan looking would take too long.
    guess = nearest(needed, known, cutoff=0.5) if len(known) <= 1000 else None
    return f" (did you mean {quoted(guess)}?)" if guess is not None else ""
