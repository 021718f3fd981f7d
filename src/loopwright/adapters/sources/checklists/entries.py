"""The tasks of a Markdown file that are checkboxes, and their names."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from loopwright.adapters.sources.text.markdown import MARKS, Item, Kind, Markdown
from loopwright.adapters.sources.text.sections import checks_tasks, is_called_finished
from loopwright.adapters.sources.text.titles import (
    is_about_tasks,
    is_manual,
    plain_title,
    says_nothing,
    settled_by,
    without_sha,
)
from loopwright.ports import Mark

_TAG: Final = re.compile(r"\[([A-Za-z][\w+.,/ -]{0,30})\](?![(\[])[ \t]*|\((P)\)[ \t]*")
_NUMBER: Final = re.compile(
    r"(?:Task[ \t]+|Step[ \t]+)?#?([0-9]{1,4}(?:\.[0-9]{1,4}){0,5}[a-z]?)(\\?\*)?"
    r"(?:[.):]+[ \t]*|[ \t]+[-–—]?[ \t]*|$)(?=\S|$)",
    re.IGNORECASE,
)
_CODE: Final = re.compile(
    r"((?:[A-Z][A-Z0-9]{0,9}-)?T-?[0-9]{1,5}(?:\.[0-9]{1,4}){0,3}[a-z]?"
    r"|[A-Z][A-Z0-9]{0,9}-[0-9]{1,6}(?:\.[0-9]{1,4}){0,3}[a-z]?)(?![\w-])[ \t]*[.:–—-]*[ \t]*"
)
_STARS: Final = re.compile(r"(?:\*\*|__)(?=[\[(]?[A-Z0-9])")
_MOST_LINES: Final = 8
"""How many lines the title of a task may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One task of a file, as it is written there."""

    line: int
    """Index of its line."""
    end: int
    """Index after its last line."""
    section: int
    """Index of the section around it."""
    words: str
    """Its first line, without the box."""
    name: str = ""
    """Its own number or code; empty without one."""
    title: str
    tags: tuple[str, ...] = ()
    mark: Mark
    box: int | None = None
    """The line of its own checkbox; None for a heading."""
    below: tuple[int, ...] = ()
    """The lines of the checkboxes below it that are ticked together with it."""
    optional: bool = False
    criteria: tuple[str, ...] = ()
    hidden: tuple[tuple[int, int], ...] = field(default=())
    """Lines below it that its agent does not see: optional parts, and steps for a person."""
    optional_parts: tuple[int, ...] = ()
    """The lines of those that are optional."""
    under: int | None = None
    """Index of the line of the task around it, if it is a step for a person."""
    disputed: bool = False
    """Whether its words or headings say that it is done or dropped, although its box is open."""

    @property
    def parallel(self) -> bool:
        """Whether the form says that it may run beside its neighbours."""
        return "P" in self.tags

    @property
    def left_out(self) -> frozenset[int]:
        """The lines below it that its agent does not see."""
        return frozenset(line for start, end in self.hidden for line in range(start, end))


@dataclass(frozen=True, slots=True)
class Named:
    """A title taken apart."""

    name: str
    title: str
    tags: tuple[str, ...]
    optional: bool


def named(words: str) -> Named:
    """Take the number or code and the tags from the beginning of a title: `**T012** [P] [US1] Create the model`."""
    rest = _STARS.sub("", words, count=1) if words.startswith(("**", "__")) else words
    bold = len(rest) != len(words)
    tags: list[str] = []
    name, optional = "", False
    while True:
        if (tag := _TAG.match(rest)) is not None and len(tags) < 6:
            tags.append(tag[1] or tag[2])
            rest = rest[tag.end() :]
        elif not name and (found := _NUMBER.match(rest) or _CODE.match(rest)) is not None:
            name = found[1]
            optional = found.re is _NUMBER and bool(found[2])
            rest = rest[found.end() :]
            if bold and rest.startswith(("**", "__")):
                rest, bold = rest[2:].lstrip(" \t:.-"), False
        else:
            break
    if bold:
        rest = re.sub(r"\*\*|__", "", rest, count=1)
    trailing = re.search(r"[ \t]*\[(P)\][ \t]*$", rest)
    if trailing is not None:
        tags.append(trailing[1])
        rest = rest[: trailing.start()]
    return Named(name, plain_title(rest.strip()) or plain_title(words), tuple(tags), optional)


def whole_words(markdown: Markdown, item: Item) -> str:
    """Return the first paragraph of an item on one line: many people break lines in the middle of a sentence."""
    words = [item.words]
    for line in markdown.lines[item.line + 1 : min(item.end, item.line + _MOST_LINES)]:
        if line.kind is not Kind.TEXT or words[-1].rstrip().endswith((":", "  ")):
            break
        words.append(line.words)
    return " ".join(words)


def boxed(
    markdown: Markdown, *, marks: Mapping[str, Mark] = MARKS, within: Callable[[int], bool] | None = None
) -> list[Entry]:
    """Return the outermost checkboxes of the sections that `within` takes; boxes below one follow it.

    A box below one that asks a person to do something is a separate entry behind it.
    """
    wanted = within or (lambda at: not is_aside(markdown, at))
    found: list[Entry] = []
    children = _children(markdown.items)
    inside: set[int] = set()
    for number, item in enumerate(markdown.items):
        if number in inside or item.box not in marks or not wanted(item.section):
            continue
        if says_nothing(item.words):
            continue
        below = list(_descendants(number, children))
        inside.update(below)
        found += _with_steps(markdown, item, [markdown.items[one] for one in below], marks)
    return found


def _with_steps(
    markdown: Markdown, item: Item, below: Sequence[Item], marks: Mapping[str, Mark]
) -> Iterator[Entry]:
    """Return the entry of a box, then those of the steps below it that only a person can do."""
    entry = _boxed_entry(markdown, item, below, marks)
    if entry.optional or entry.disputed or is_manual(entry.title):
        yield entry
        return
    steps = list(manual_steps(markdown, entry, below, marks))
    yield without_steps(entry, steps)
    yield from steps


def manual_steps(
    markdown: Markdown, around: Entry, boxes: Sequence[Item], marks: Mapping[str, Mark]
) -> Iterator[Entry]:
    """Return the boxes below a task that ask a person to do something."""
    until = 0
    left_out = around.left_out
    for at, item in enumerate(boxes):
        if item.line < until or item.box not in marks or item.line in left_out:
            continue
        if is_manual(named(whole_words(markdown, item)).title):
            until = item.end
            near = boxes[at + 1 : at + 1 + until - item.line]
            below = [one for one in near if one.line < item.end]
            yield replace(_boxed_entry(markdown, item, below, marks), under=around.line)


def without_steps(entry: Entry, steps: Sequence[Entry]) -> Entry:
    """Return an entry that leaves these steps out: each is ticked by its own answer."""
    apart = replace(entry, hidden=(*entry.hidden, *((step.line, step.end) for step in steps)))
    left_out = apart.left_out
    return replace(apart, below=tuple(line for line in entry.below if line not in left_out))


def is_aside(markdown: Markdown, section: int) -> bool:
    """Return whether the boxes of a section say what must be true, not what is to be done."""
    return any(
        is_about_tasks(markdown.sections[at].title) or checks_tasks(markdown, at)
        for at in markdown.around(section)
    )


def open_asides(
    markdown: Markdown, entries: Sequence[Entry], marks: Mapping[str, Mark] = MARKS
) -> Iterator[tuple[int, str]]:
    """Return the line and title of each section that has open boxes outside of all tasks."""
    ends = {entry.line: entry.end for entry in entries}
    until = 0
    seen: set[int] = set()
    starts = sorted(ends)
    at = 0
    for item in markdown.items:
        while at < len(starts) and starts[at] <= item.line:
            until = max(until, ends[starts[at]])
            at += 1
        if item.line >= until and item.box is not None and marks.get(item.box) is Mark.OPEN:
            section = markdown.sections[item.section]
            if item.section not in seen:
                seen.add(item.section)
                yield item.line, section.title


def _children(items: Sequence[Item]) -> Mapping[int, list[int]]:
    found: dict[int, list[int]] = {}
    for number, item in enumerate(items):
        if item.parent is not None:
            found.setdefault(item.parent, []).append(number)
    return found


def _descendants(number: int, children: Mapping[int, list[int]]) -> Iterator[int]:
    waiting = list(reversed(children.get(number, [])))
    while waiting:
        one = waiting.pop()
        yield one
        waiting += reversed(children.get(one, []))


def _boxed_entry(markdown: Markdown, item: Item, below: Sequence[Item], marks: Mapping[str, Mark]) -> Entry:
    mark = marks[item.box or ""] if item.box in marks else Mark.OPEN
    words, _ = without_sha(item.words, done=mark is Mark.DONE)
    parts = named(whole_words(markdown, replace(item, words=words)))
    left_out = [one for one in below if _is_optional(one)]
    hidden = tuple((one.line, one.end) for one in left_out)
    kept = [one for one in below if not any(start <= one.line < end for start, end in hidden)]
    return Entry(
        line=item.line,
        end=item.end,
        section=item.section,
        words=words,
        name=parts.name,
        title=parts.title,
        tags=parts.tags,
        mark=mark,
        box=item.line,
        below=tuple(one.line for one in kept if one.box in marks),
        optional=item.optional or parts.optional,
        hidden=hidden,
        optional_parts=tuple(start for start, _ in hidden),
        disputed=mark not in (Mark.DONE, Mark.SKIPPED)
        and (settled_by(words) is not None or is_called_finished(markdown, item.section)),
    )


def _is_optional(item: Item) -> bool:
    return item.box is not None and (item.optional or named(item.words).optional)
