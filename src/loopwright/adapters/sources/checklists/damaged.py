"""Lines of a checklist that look like tasks and are none: a damaged box, or the number of a task without a box."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from loopwright.adapters.sources.checklists.entries import Entry, named
from loopwright.adapters.sources.text.markdown import Item, Kind, Line, Markdown
from loopwright.adapters.sources.text.near_boxes import (
    is_almost,
    is_box,
    is_meant,
    tell_almost,
    wrong_mark,
)
from loopwright.adapters.sources.text.problems import Problems
from loopwright.config.nearest import quoted
from loopwright.ports import Mark

_DIGITS: Final = re.compile(r"[0-9]+")


def tell_damaged(
    markdown: Markdown,
    entries: Sequence[Entry],
    problems: Problems,
    marks: Mapping[str, Mark],
    has_tasks: Callable[[int], bool],
) -> None:
    """Note each damaged box, and each task that has no box; `has_tasks` takes the sections that may have tasks."""
    places = _Places(markdown, entries, marks, has_tasks)
    section = 0
    for at, line in enumerate(markdown.lines):
        if line.kind is Kind.HEADING:
            section += 1
        elif line.kind in (Kind.BULLET, Kind.TEXT) and (line.box is not None or line.almost is not None):
            _tell(line, at, problems, marks, places, section)
    for item, name in _without_box(markdown, entries, places):
        good = quoted(f"{markdown.lines[item.line].bullet} [ ] {item.words}")
        told = f"{quoted(name)} has no box, so it is not read as a task: write {good}"
        problems.note(item.line + 1, "", told)


class _Places:
    """Where in a file tasks may be."""

    def __init__(
        self,
        markdown: Markdown,
        entries: Sequence[Entry],
        marks: Mapping[str, Mark],
        has_tasks: Callable[[int], bool],
    ) -> None:
        self._has_tasks = has_tasks
        self._boxed = {item.section for item in markdown.items if item.box in marks}
        self.with_entries = {entry.section for entry in entries if entry.box is not None}
        self._headed = bool(entries) and not self.with_entries - {
            entry.section for entry in entries if entry.under is not None
        }
        self.own = {entry.line for entry in entries}
        self.inside: set[int] = set()
        self._steps: set[int] = set()
        for entry in entries:
            lines = range(entry.line + 1, entry.end)
            self.inside.update(lines)
            if entry.below:
                self._steps.update(lines)

    def beside(self, line: int, section: int) -> bool | None:
        """Return whether real tasks or steps are beside a line; None where no line can be one."""
        if line in self.own:
            return None
        if line in self.inside:
            return True if line in self._steps else None
        if self._headed or not self._has_tasks(section):
            return None
        if section in self._boxed and section not in self.with_entries:
            return None
        return section in self.with_entries or not self.with_entries


def _tell(
    line: Line, at: int, problems: Problems, marks: Mapping[str, Mark], places: _Places, section: int
) -> None:
    beside = places.beside(at, section) if line.box not in marks else None
    if beside is None:
        return
    inside = line.almost if line.almost is not None else line.box or ""
    if at in places.inside and not is_meant(inside):
        return
    if line.box is not None and is_box(line):
        if beside or not line.box:
            problems.note(at + 1, "", wrong_mark(line.box, marks))
    elif is_almost(line):
        tell_almost(line, at + 1, problems, beside=beside, marks=marks)


def _without_box(markdown: Markdown, entries: Sequence[Entry], places: _Places) -> Iterator[tuple[Item, str]]:
    """Return the list items beside tasks that have a number or code like theirs, but no box."""
    known = {entry.name for entry in entries}
    series = {(entry.section, _series(entry.name)) for entry in entries if _series(entry.name)}
    for item in markdown.items:
        line = markdown.lines[item.line]
        if item.parent is not None or line.box is not None or line.almost is not None:
            continue
        if item.section not in places.with_entries or item.line in places.inside or item.line in places.own:
            continue
        name = named(item.words).name
        if name not in known and (item.section, _series(name)) in series:
            yield item, name


def _series(name: str) -> str:
    """Return what the names of tasks beside each other share: `T` of `T005`, `5.` of `5.1`; nothing for `5`."""
    if name[:1].isdigit():
        head, dot, _ = name.rpartition(".")
        return f"{head}{dot}"
    return _DIGITS.split(name)[0]
