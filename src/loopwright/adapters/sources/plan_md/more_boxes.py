"""Boxes with a word in them, `- [in_progress] Add the form`, and the boxes in the headings of a list of tracks."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from loopwright.adapters.sources.lists.status_words import StatusWords, mark_of
from loopwright.adapters.sources.text.markdown import BOXES, MARKS, STATUS_WORD, Kind, Line, Markdown
from loopwright.adapters.sources.text.titles import plain_title
from loopwright.ports import Mark

_WORDED: Final = re.compile(rf"\[({STATUS_WORD})\][ \t]+(?=\S)", re.IGNORECASE)
_TRACK: Final = re.compile(r"#{2,6}[ \t]+\[([ xX~/!-])\][ \t]+(?=(?:\*\*)?Track\b)")
_USUAL: Final = ("pending", "in_progress", "completed")


def with_more_boxes(markdown: Markdown) -> Markdown:
    """Return a file in which these are boxes like all others, with a sign in each."""
    found = {**dict(_words(markdown)), **dict(_tracks(markdown))}
    if not found:
        return markdown
    return replace(
        markdown,
        lines=tuple(found.get(at, line) for at, line in enumerate(markdown.lines)),
        sections=tuple(
            replace(one, title=plain_title(found[one.line].words)) if one.line in found else one
            for one in markdown.sections
        ),
        items=tuple(
            replace(one, words=line.words, box=line.box, mark=MARKS[line.box or ""])
            if (line := found.get(one.line)) is not None
            else one
            for one in markdown.items
        ),
    )


def _words(markdown: Markdown) -> Iterator[tuple[int, Line]]:
    for at, line in enumerate(markdown.lines):
        match = _WORDED.match(line.words) if line.kind is Kind.BULLET and line.box is None else None
        mark = mark_of(match[1]) if match is not None else None
        if match is not None and mark is not None:
            words, start = line.words[match.end() :], line.text.index("[") + 1
            yield at, replace(line, words=words, box=BOXES[mark], box_at=start, almost=None, almost_end=0)


def _tracks(markdown: Markdown) -> Iterator[tuple[int, Line]]:
    """Return the heading of each track; one with boxes below it is a heading for these."""
    for section in markdown.sections:
        line = markdown.lines[section.line] if section.line >= 0 else None
        match = _TRACK.match(line.text.lstrip()) if line is not None else None
        below = markdown.lines[section.line + 1 : section.last]
        if line is not None and match is not None and all(one.box is None for one in below):
            indent = len(line.text) - len(line.text.lstrip())
            words = line.words.partition("]")[2].strip()
            yield section.line, replace(line, words=words, box=match[1], box_at=indent + match.start(1))


def status_words(markdown: Markdown) -> StatusWords:
    """Return the words that this file has in its boxes."""
    used = [word for line in markdown.lines if line.box is not None and len(word := inside(line)) > 1]
    return StatusWords(used, _USUAL if all(word.islower() for word in used) else ())


def inside(line: Line) -> str:
    """Return what is in the brackets of a box."""
    return line.text[line.box_at : line.text.index("]", line.box_at)]


def boxed(line: Line, mark: Mark, words: StatusWords) -> str:
    """Return a line with another mark in its box, as a word where it has a word."""
    present = inside(line)
    new = words.word(mark) if len(present) > 1 else BOXES[mark]
    return f"{line.text[: line.box_at]}{new}{line.text[line.box_at + len(present) :]}"
