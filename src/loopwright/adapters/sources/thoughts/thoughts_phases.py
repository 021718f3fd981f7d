"""A phase plan in one file: each `## Phase N` is a task, and everything around the phases is told to all of them."""

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopwright.adapters.sources.plan_md.plan_md_outline import outline
from loopwright.adapters.sources.plan_md.plan_md_write import Rows
from loopwright.adapters.sources.text.markdown import Kind, Line, Markdown, read_markdown
from loopwright.adapters.sources.text.plan_file import content
from loopwright.adapters.sources.text.problems import Problems
from loopwright.adapters.sources.text.titles import without_comments
from loopwright.adapters.sources.text.unreadable import Unreadable
from loopwright.adapters.sources.thoughts.thoughts_files import is_called_like_a_plan, may_stand_alone
from loopwright.adapters.sources.thoughts.thoughts_status import status_at, tell_status
from loopwright.ports import ItemProgress

_PHASE: Final = re.compile(
    r"phase[ \t]{1,3}#?([0-9]{1,4}(?:\.[0-9]{1,4}){0,3}[a-z]?)(?![\w.])", re.IGNORECASE
)
_HEADED: Final = re.compile(r"[*_ \t]{0,9}(?:$|[:)–—-])")
"""What follows the number in the heading of a phase; other words may be about a phase that stands elsewhere."""
_LEVELS: Final = (2, 3)
"""Of the headings that are phases: the first one is the title of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One phase of a file."""

    key: str
    title: str
    start: int
    """Index of its heading's line."""
    end: int
    """Index after its last line."""


def phases_in(markdown: Markdown) -> tuple[Phase, ...]:
    """Return the phases that a file consists of; none if it is itself a phase, by its title."""
    lines = markdown.lines
    headings = [(at, line) for at, line in enumerate(lines) if line.kind is Kind.HEADING]
    if any(line.level == 1 and _number(line) for _, line in headings):
        return ()
    level = min((line.level for _, line in headings if line.level in _LEVELS and _number(line)), default=0)
    begins: dict[int, str] = {}
    known: set[str] = set()
    ends: list[int] = []
    before = ""
    for at, line in headings:
        number = _number(line) if line.level == level else ""
        is_more = bool(number) and number in known and not _is_headed(line)
        if is_more and number == before:
            continue  # `Phase 1 rollback` below `Phase 1: …`
        if line.level <= level:
            ends.append(at)
            before = "" if is_more else number
        if number and not is_more:
            begins[at] = number
            known.add(number)
    ends.append(len(lines))
    return tuple(
        Phase(
            key=f"phase-{number}",
            title=without_comments(lines[at].words)[0],
            start=at,
            end=ends[bisect_right(ends, at)],
        )
        for at, number in begins.items()
    )


def around(markdown: Markdown, phases: tuple[Phase, ...]) -> str:
    """Return the text that belongs to no phase."""
    taken = {at for phase in phases for at in range(phase.start, phase.end)}
    return "\n".join(line.text for at, line in enumerate(markdown.lines) if at not in taken).strip()


def with_statuses(markdown: Markdown, items: Mapping[str, ItemProgress]) -> bytes:
    """Return a file with a line of status below the heading of each phase."""
    rows: Rows = [(line.text, ending) for line, ending in zip(markdown.lines, markdown.endings, strict=True)]
    # From the end, so that what is put in below one heading moves no other.
    for phase in reversed(phases_in(markdown)):
        standing = items.get(phase.key)
        if standing is None:
            continue
        present = status_at(markdown.lines[phase.start : phase.end])
        underlined = not markdown.lines[phase.start].text.lstrip().startswith("#")
        place = phase.start + (2 if underlined else 1)
        tell_status(rows, None if present is None else phase.start + present, place, standing)
    return markdown.joined(rows)


def is_lone_plan(place: Path) -> bool:
    """Say whether a file of a `plans` folder is a plan by itself; one whose boxes are tasks is a checkbox plan."""
    if place.absolute().parent.name != "plans" or not may_stand_alone(place):
        return False
    try:
        markdown = read_markdown(content(place))
    except Unreadable:
        return is_called_like_a_plan(place.name)
    if outline(markdown, Problems(place.name)).tasks:
        return False
    return is_called_like_a_plan(place.name) or bool(phases_in(markdown))


def _number(line: Line) -> str:
    match = _PHASE.match(line.words.lstrip("*_ \t"))
    return match[1].lower() if match is not None else ""


def _is_headed(line: Line) -> bool:
    """Say whether nothing but a title stands behind the number of a phase."""
    words = without_comments(line.words)[0].lstrip("*_ \t")
    match = _PHASE.match(words)
    return match is not None and _HEADED.match(words, match.end()) is not None
