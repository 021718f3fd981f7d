"""Which files of a folder make a set of phase plans: `PREFIX-NN-NAME.md` with `PREFIX-00-overview.md`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_DATE: Final = re.compile(r"(?:(?P<year>[0-9]{4})(?:-[0-9]{2}){2}|(?:[0-9]{2}-){2}[0-9]{4})(?=-|$)")
"""Also with the day first: a part of it would else be the number of a phase."""
_NUMBER: Final = re.compile(r"(?:^|-)([0-9]{2})-(?=[^-])")
_OVERVIEW: Final = re.compile(r"(?:(?:^|-)00)?(?:^|-)overview$")


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseFile:
    """One file of a set."""

    name: str
    """Relative to the source's folder."""
    number: int
    """Its place in the set; -1 for an overview."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSet:
    """A plan that is spread over files."""

    prefix: str
    overviews: tuple[str, ...]
    phases: tuple[PhaseFile, ...]
    """In their order."""

    @property
    def names(self) -> tuple[str, ...]:
        """All of its files."""
        return (*self.overviews, *(phase.name for phase in self.phases))


def phase_sets(names: Iterable[str], *, alone: bool = False) -> tuple[PhaseSet, ...]:
    """Return the sets among these files, those of earlier dates first; a file that is in none is left out.

    Without an overview one file is not a set, unless `alone` says so: many names have a number in them.
    """
    known = sorted({name for name in names if name.casefold().endswith(".md")})
    prefixes = [prefix for name in known if (prefix := _overview_of(name)) is not None]
    grouped: dict[str, list[PhaseFile]] = {prefix: [] for prefix in prefixes}
    for name in known:
        prefix = _overview_of(name)
        if prefix is not None:
            grouped[prefix].append(PhaseFile(name=name, number=-1))
        elif (found := _phase_of(name, grouped)) is not None:
            grouped.setdefault(found[1], []).append(found[0])
    sets = [_set(prefix, files) for prefix, files in grouped.items()]
    whole = [one for one in sets if one.phases and (alone or len(one.names) > 1)]
    return tuple(sorted(whole, key=lambda one: (_dated(one.prefix), one.prefix)))


def left_out(names: Iterable[str], sets: Iterable[PhaseSet]) -> tuple[str, ...]:
    """Return the files that are in none of these sets, but are called as if they were plans or parts of one."""
    sets = tuple(sets)
    taken = {name for one in sets for name in one.names}
    begins = tuple(f"{one.prefix}-" for one in sets if not one.prefix.endswith("/") and one.prefix)
    left = (name for name in names if name not in taken and name.casefold().endswith(".md"))
    return tuple(name for name in left if name.startswith(begins) or _date(name) is not None)


def is_called_like_a_plan(name: str) -> bool:
    """Return whether a name begins with a date, or has the number of a phase."""
    return _date(name) is not None or bool(phase_sets([name], alone=True))


def may_stand_alone(place: Path) -> bool:
    """Return whether a file can be a plan by itself; an overview without phases cannot."""
    return place.suffix.casefold() == ".md" and place.is_file() and _overview_of(place.name) is None


def phase_set_of(place: Path) -> PhaseSet | None:
    """Return the set that a file belongs to, if it does."""
    if place.suffix.casefold() != ".md" or not place.is_file():
        return None
    beside = phase_sets(path.name for path in place.parent.iterdir())
    return next((one for one in beside if place.name in one.names), None)


def _set(prefix: str, files: list[PhaseFile]) -> PhaseSet:
    phases = sorted((one for one in files if one.number >= 0), key=lambda one: (one.number, one.name))
    overviews = tuple(one.name for one in files if one.number < 0)
    return PhaseSet(prefix=prefix, overviews=overviews, phases=tuple(phases))


def _stem(name: str) -> str:
    return name[: -len(".md")]


def _overview_of(name: str) -> str | None:
    """Return the prefix of an overview's name, None if it is none."""
    folder, slash, stem = _stem(name).rpartition("/")
    match = _OVERVIEW.search(stem.casefold())
    return f"{folder}{slash}{stem[: match.start()]}" if match is not None else None


def _phase_of(name: str, known: Iterable[str]) -> tuple[PhaseFile, str] | None:
    """Return a phase with the prefix of its set: one that an overview has, else the words before the first number."""
    folder, slash, stem = _stem(name).rpartition("/")
    date = _DATE.match(stem)
    begin = date.end() if date is not None else 0
    fitting: tuple[PhaseFile, str] | None = None
    for match in _NUMBER.finditer(stem, begin):
        prefix = f"{folder}{slash}{stem[: match.start()]}"
        found = (PhaseFile(name=name, number=int(match[1])), prefix)
        if prefix in known:
            return found
        fitting = fitting or found
    return fitting


def _dated(prefix: str) -> str:
    """Return the date that a name begins with; names without one come last."""
    match = _date(prefix)
    if match is None:
        return "9999"
    return match[0] if match["year"] else "-".join(reversed(match[0].split("-")))


def _date(name: str) -> re.Match[str] | None:
    return _DATE.match(name.rpartition("/")[2])
