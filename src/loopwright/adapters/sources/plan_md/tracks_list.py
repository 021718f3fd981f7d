"""The list of all tracks, `conductor/tracks.md`: the box of a track follows its plan."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from loopwright.adapters.sources.text.markdown import BOXES, MARKS, Kind, Markdown, read_markdown
from loopwright.adapters.sources.text.markdown_edits import MarkdownEdits
from loopwright.adapters.sources.text.problems import Unreadable
from loopwright.ports import Mark

TRACKS: Final = "../../tracks.md"
"""Where it is, relative to the folder of a track."""
_BOX: Final = re.compile(r"\[([ xX~])\](?!\()")
_ABOVE: Final = 4
"""How many lines above its link the box of a track is at most."""


def tracks_file(plan: Path) -> Path | None:
    """Return the list that a track is in, if its plan is one of a track."""
    file = plan.parent / TRACKS
    return file if plan.absolute().parent.parent.name == "tracks" and file.is_file() else None


def with_track(content: bytes, track: str, marks: Iterable[Mark]) -> bytes:
    """Return the list with the box of a track as its tasks say; a list that cannot be read stays as it is."""
    found = list(marks)
    try:
        markdown = read_markdown(content)
    except Unreadable:
        return content
    place = _place(markdown, track) if track else None
    if place is None or not found:
        return content
    line, at = place
    text = markdown.lines[line].text
    wanted = _mark(found, MARKS[text[at]])
    if MARKS[text[at]] is wanted:
        return content
    edits = MarkdownEdits(markdown)
    edits.replace(line, f"{text[:at]}{BOXES[wanted]}{text[at + 1 :]}")
    return edits.content


def _mark(marks: list[Mark], present: Mark) -> Mark:
    if all(mark in (Mark.DONE, Mark.SKIPPED) for mark in marks) and Mark.DONE in marks:
        return Mark.DONE
    is_begun = any(mark is not Mark.OPEN for mark in marks)
    return Mark.RUNNING if is_begun or present is Mark.DONE else present


def _place(markdown: Markdown, track: str) -> tuple[int, int] | None:
    """Return the line of a track's box, and where in it the sign is: on the line of its link, or a little above."""
    link = re.compile(rf"(?<![\w-]){re.escape(track)}(?![\w-])")
    for number, line in enumerate(markdown.lines):
        if line.kind is Kind.CODE or link.search(line.text) is None:
            continue
        for above in range(number, max(number - _ABOVE, -1), -1):
            match = _BOX.search(markdown.lines[above].text)
            if match is not None:
                return above, match.start(1)
            if markdown.lines[above].text.strip() == "---":
                break
    return None
