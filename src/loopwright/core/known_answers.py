"""Work that holds the answers of its own tests: an input and what is expected for it, side by side in its source.

That is how code answers a test without doing what was asked for, and also how an honest table looks. So it is no
failure: it is named, and somebody other than the visible tests has to say which of the two it is.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from loopwright.core.asked_answers import Asked, asked_in_command, asked_in_file
from loopwright.core.literals import Literal, literals_of
from loopwright.core.policy import GateCommand

MOST: Final = 20
"""So many places are named."""
LARGEST: Final = 300_000
"""So many characters of the work, and of the tests, are read."""
_FEW: Final = 5
"""Lines between an input and its answer that are still near each other."""
_OFTEN: Final = 20
"""So many places of one literal in one file are looked at."""
_LOOKS: Final = 100_000
"""And so many places altogether: the time is bounded, whatever the work and its tests are made of."""
_SHOWN: Final = 60
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A file of the work: as it was, and as it is."""

    path: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What came into a file, by what each literal stands for."""

    path: str
    literals: dict[str, list[Literal]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Match:
    """A place at which the work holds what a test asks."""

    path: str
    place: Literal
    """The input."""
    answers: tuple[Literal, ...]
    """What is near it."""
    asked: Asked
    inputs: int
    """How many of the test's inputs the file has."""

    def mirrors(self, other: "_Match") -> bool:
        """Say whether it is the same pair of places with the answer of the other for its input, which comes first."""
        turned = self.place in other.answers and other.place in self.answers
        return turned and self.path == other.path and _at(other.place) < _at(self.place)

    def __str__(self) -> str:
        """Say where it is, and what the test asks."""
        answer = ", ".join(self.asked.answer)
        return (
            f"{self.path}:{self.place.line} holds the input {_short(self.place.value)} and the answer "
            f"{_short(answer)} of {self.asked.where}"
        )


def written_in(changed: Iterable[Changed]) -> list[Written]:
    """Return the literals on lines that the work added, of as much of it as is read."""
    found: list[Written] = []
    left = LARGEST
    for one in changed:
        if len(one.after) > left:
            continue
        left -= len(one.after)
        old = {line.strip() for line in one.before.splitlines()}
        added = {n for n, line in enumerate(one.after.splitlines(), 1) if line.strip() not in old}
        places: dict[str, list[Literal]] = {}
        for literal in literals_of(one.path, one.after) if added else ():
            if literal.line in added and len(known := places.setdefault(literal.value, [])) < _OFTEN:
                known.append(literal)
        if sum(map(len, places.values())) > 1:
            found.append(Written(path=one.path, literals=places))
    return found


def known_answers(
    written: Sequence[Written], tests: Iterable[tuple[str, str]], commands: Iterable[GateCommand]
) -> tuple[str, ...]:
    """Name the places where the work holds an input and the answer of one and the same assertion."""
    by_value: dict[str, list[Written]] = {}
    for one in written:
        for value in one.literals:
            by_value.setdefault(value, []).append(one)
    matches: dict[tuple[str, int], _Match] = {}
    seen: set[tuple[frozenset[str], tuple[str, ...]]] = set()
    looks = 0
    for asked in _asked(tests, commands, by_value):
        if (asked.inputs, asked.answer) in seen:
            continue
        seen.add((asked.inputs, asked.answer))
        for one in by_value.get(asked.answer[0], ()):
            looks += 1 + sum(len(one.literals.get(value, ())) for value in asked.inputs)
            if len(matches) >= MOST or looks > _LOOKS:
                return _told(matches)
            found = _held(one, asked)
            known = matches.get((one.path, found.place.line)) if found else None
            # Of several tests that would fit a place, it is the one of which the file has most.
            if found is not None and (known is None or known.inputs < found.inputs):
                matches[one.path, found.place.line] = found
    return _told(matches)


def _told(matches: Mapping[tuple[str, int], _Match]) -> tuple[str, ...]:
    found = [matches[place] for place in sorted(matches)]
    return tuple(str(one) for one in found if not any(one.mirrors(other) for other in found))


def _asked(
    tests: Iterable[tuple[str, str]], commands: Iterable[GateCommand], values: Collection[str]
) -> Iterator[Asked]:
    for command in commands:
        yield from asked_in_command(command.name, command.command)
    written = [frozenset(_WORD.findall(value)) for value in values]
    left = LARGEST
    for path, text in tests:
        words = frozenset(_WORD.findall(text))
        # Reading a file takes a hundred times as long as seeing that none of the work's literals is in it.
        if len(text) <= left and any(one <= words for one in written):
            left -= len(text)
            yield from asked_in_file(path, text)


def _held(written: Written, asked: Asked) -> _Match | None:
    """Return where a file holds one of the inputs with all of the answer near it."""
    answers = [written.literals.get(value, ()) for value in asked.answer]
    if not all(answers):
        return None
    for value in sorted(asked.inputs):
        for place in written.literals.get(value, ()):
            near = [_near(place, others) for others in answers] if place.decides else [()]
            if all(near):
                return _Match(
                    path=written.path,
                    place=place,
                    answers=tuple(other for others in near for other in others),
                    asked=asked,
                    inputs=sum(one in written.literals for one in asked.inputs),
                )
    return None


def _near(place: Literal, others: Sequence[Literal]) -> tuple[Literal, ...]:
    """Return the other ones of these that are near a place."""
    return tuple(
        other
        for other in others
        if other is not place
        and (abs(other.line - place.line) <= _FEW or other.function == place.function > 0)
    )


def _at(place: Literal) -> tuple[int, int]:
    return place.line, place.column


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
