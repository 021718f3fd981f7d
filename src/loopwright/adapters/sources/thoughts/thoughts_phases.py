"""A phase plan in one file: each `## Phase N` is a task, and every agent gets the text around the phases."""

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopwright.adapters.sources.text.markdown import Kind, Line, Markdown, read_markdown
from loopwright.adapters.sources.text.plan_file import content
from loopwright.adapters.sources.text.problems import Unreadable
from loopwright.adapters.sources.text.titles import plain_title, slug, without_comments
from loopwright.adapters.sources.thoughts.thoughts_criteria import group_of
from loopwright.adapters.sources.thoughts.thoughts_files import is_called_like_a_plan, may_stand_alone
from loopwright.adapters.sources.thoughts.thoughts_status import (
    Rows,
    Said,
    Standing,
    own_standing,
    said_in_lists,
    said_in_phase,
    said_in_plan,
    said_in_tables,
    said_in_title,
    standing_in,
    status_at,
    write_status,
)
from loopwright.ports import ItemProgress

_NUMBER: Final = r"[ \t]{1,3}#?([0-9]{1,4}(?:\.[0-9]{1,4}){0,3}[a-z]?)(?![\w.])"
_BEFORE: Final = r"(?:\[[ xX~-]\]|\W){0,8}"
_USUAL: Final = ("phase", "step", "stage", "milestone")
_OTHERS: Final = {
    "phase": r"|第([0-9]{1,3}|[一二三四五六七八九十]{1,3})(?:阶段|階段|フェーズ)"
    r"|(?:阶段|階段|フェーズ)[ \t]{0,3}([0-9]{1,3}|[一二三四五六七八九十]{1,3})(?![\w.])",
    "milestone": r"|M([0-9]{1,2}(?:\.[0-9]{1,2})?)(?=[ \t]*[:–—]|[ \t]+-[ \t])",
    "behavior": f"|behaviour{_NUMBER}",
}
_WORDS: Final = {
    word: re.compile(f"{_BEFORE}(?:{word}{_NUMBER}{_OTHERS.get(word, '')})", re.IGNORECASE)
    for word in (
        *_USUAL, "module", "behavior", "part", "wave", "sprint", "iteration",
        "slice", "week",
    )
}  # fmt: skip
"""What phases are called; the first word that a file uses counts."""
_HEADED: Final = re.compile(r"[*_ \t]{0,9}(?:$|[:)–—-])")
"""What follows the number in the heading of a phase; other words may be about a phase that is elsewhere."""
_LEVELS: Final = (2, 3)
"""Of the headings that are phases: the first one is the title of a file."""
_FEW: Final = 2
_ABOUT_FOLDER: Final = frozenset({"agents", "claude", "index", "readme"})
MAX_PHASES: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One phase of a file."""

    key: str
    number: str
    title: str
    start: int
    """Index of its heading's line."""
    end: int
    """Index after its last line."""


def phases_in(markdown: Markdown) -> tuple[Phase, ...]:
    """Return the phases that a file consists of; none if it is itself a phase, by its title.

    Raise `Unreadable` if there are too many.
    """
    headings = [(at, line) for at, line in enumerate(markdown.lines) if line.kind is Kind.HEADING]
    for word in _WORDS:
        found = _phases(markdown, headings, word)
        # One `Step 1` is an example.
        if found and (word == "phase" or len(found) >= _FEW):
            return found
    return ()


def _phases(markdown: Markdown, headings: list[tuple[int, Line]], word: str) -> tuple[Phase, ...]:
    if any(line.level == 1 and _number(line, word) for _, line in headings):
        return ()
    levels = (line.level for _, line in headings if line.level in _LEVELS and _number(line, word))
    level = min(levels, default=0)
    begins: dict[int, str] = {}
    known: set[str] = set()
    ends: list[int] = []
    before = ""
    for at, line in headings:
        number = _number(line, word) if line.level == level else ""
        is_more = bool(number) and number in known and not _is_headed(line, word)
        if is_more and number == before:
            continue  # `Phase 1 rollback` below `Phase 1: …`
        if line.level <= level:
            ends.append(at)
            before = "" if is_more else number
        if number and not is_more:
            begins[at] = number
            known.add(number)
    if len(begins) > MAX_PHASES:
        raise Unreadable(list(begins)[MAX_PHASES] + 1, f"a file has at most {MAX_PHASES} phases")
    ends.append(len(markdown.lines))
    keys = _keys(markdown, begins, word)
    return tuple(
        Phase(
            key=keys[at],
            number=number,
            title=plain_title(markdown.lines[at].words),
            start=at,
            end=ends[bisect_right(ends, at)],
        )
        for at, number in begins.items()
    )


def _keys(markdown: Markdown, begins: Mapping[int, str], word: str) -> dict[int, str]:
    """Return the key of each phase; a number that is used again gets the name of its section, or a count."""
    keys: dict[int, str] = {}
    counts: dict[str, int] = {}
    sections = {section.line: section for section in markdown.sections}
    for at, number in begins.items():
        key, parent = f"{word}-{number}", sections[at].parent
        if key in keys.values() and parent is not None and markdown.sections[parent].level > 1:
            key = f"{slug(markdown.sections[parent].title)}/{key}"
        counts[key] = counts.get(key, 0) + 1
        keys[at] = key if counts[key] == 1 else f"{key}~{counts[key]}"
    return keys


def around(markdown: Markdown, phases: tuple[Phase, ...]) -> str:
    """Return the text that belongs to no phase."""
    taken = {at for phase in phases for at in range(phase.start, phase.end)}
    return "\n".join(line.text for at, line in enumerate(markdown.lines) if at not in taken).strip()


def standings(markdown: Markdown, phases: tuple[Phase, ...]) -> dict[str, Standing]:
    """Return how far each phase is."""
    return {
        phase.key: standing_in(markdown, phase.start, phase.end, said)
        for phase, said in _said(markdown, phases)
    }


def _said(markdown: Markdown, phases: tuple[Phase, ...]) -> list[tuple[Phase, tuple[Said, ...]]]:
    plan = said_in_plan(markdown, phases[0].start)
    tables = {**said_in_lists(markdown, [(one.start, one.end) for one in phases]), **said_in_tables(markdown)}
    return [
        (
            phase,
            (
                said_in_title(markdown.lines[phase.start].words),
                said_in_phase(markdown, phase.start, phase.end),
                plan,
                tables.get(phase.number, Said.NOTHING),
            ),
        )
        for phase in phases
    ]


def with_statuses(markdown: Markdown, items: Mapping[str, ItemProgress]) -> bytes:
    """Return a file with a status line below the heading of each phase."""
    rows: Rows = [(line.text, ending) for line, ending in zip(markdown.lines, markdown.endings, strict=True)]
    # From the end, so that a line below one heading moves no other.
    for phase, said in reversed(_said(markdown, phases_in(markdown))):
        wanted = items.get(phase.key)
        if wanted is None:
            continue
        present = status_at(markdown.lines[phase.start : phase.end])
        underlined = not markdown.lines[phase.start].text.lstrip().startswith("#")
        place = phase.start + (2 if underlined else 1)
        own = own_standing(markdown, phase.start, phase.end, said)
        write_status(rows, None if present is None else phase.start + present, place, own, wanted)
    return markdown.joined(rows)


_CALLED: Final = ("plan", "roadmap")


def is_lone_plan(place: Path) -> bool:
    """Return whether a file is a phase plan by itself: in a folder of plans, or with no box that is a task.

    In a folder of plans its phases count, whatever boxes are below them. A file there without phases is one if it is
    called like a plan, or is in `thoughts`, and has no boxes but criteria.
    """
    if not may_stand_alone(place):
        return False
    is_among_plans = place.absolute().parent.name == "plans"
    if not is_among_plans and not any(word in place.stem.casefold() for word in _CALLED):
        return False
    try:
        markdown = read_markdown(content(place))
        phases = phases_in(markdown)
    except Unreadable:
        return is_among_plans and is_called_like_a_plan(place.name)
    if is_among_plans:
        is_plan = is_called_like_a_plan(place.name) or _is_thought(place)
        # Other words may be chapters beside a list of tasks.
        is_surely = bool(phases) and phases[0].key.partition("-")[0] in _USUAL
        return is_surely or ((bool(phases) or is_plan) and not _has_tasks(markdown, phases))
    tasks = _phases_with_tasks(markdown, phases)
    # Boxes in a few of its phases are parts of those: read as the tasks, they would be all that is done.
    return len(phases) >= _FEW and -1 not in tasks and 3 * len(tasks) <= len(phases)


def _is_thought(place: Path) -> bool:
    return "thoughts" in place.absolute().parts and place.stem.casefold() not in _ABOUT_FOLDER


def _has_tasks(markdown: Markdown, phases: tuple[Phase, ...] = ()) -> bool:
    """Return whether a box is not a criterion."""
    return bool(_phases_with_tasks(markdown, phases))


def _phases_with_tasks(markdown: Markdown, phases: tuple[Phase, ...]) -> set[int]:
    """Return the numbers of the phases that have a box which is not a criterion; -1 for one above all of them."""
    starts = [phase.start for phase in phases]
    found: set[int] = set()
    for item in markdown.items:
        if item.box is not None and item.mark is not None:
            number = bisect_right(starts, item.line) - 1
            is_inside = number >= 0 and item.line < phases[number].end
            if group_of(markdown, item, starts[number] if number >= 0 else -1) is None:
                found.add(number if is_inside else -1)
    return found


def _number(line: Line, word: str) -> str:
    match = _WORDS[word].match(line.words[:500])
    return next(filter(None, match.groups()), "").lower() if match is not None else ""


def _is_headed(line: Line, word: str) -> bool:
    """Return whether nothing but a title follows the number of a phase."""
    words = without_comments(line.words)[0]
    match = _WORDS[word].match(words[:500])
    return match is not None and _HEADED.match(words, match.end()) is not None
