"""How far a phase is: by our status line, else by what its author says in headings, status lines, tables and boxes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from loopwright.adapters.sources.text.markdown import Item, Kind, Line, Markdown
from loopwright.adapters.sources.text.titles import (
    OURS,
    SHA_LENGTH,
    one_line,
    without_comments,
    without_emphasis,
)
from loopwright.adapters.sources.thoughts.thoughts_criteria import Group, group_of
from loopwright.ports import ItemProgress, Mark

Rows = list[tuple[str, str | None]]
"""The lines of the new file with their endings; None is the file's usual one."""
_STATUS: Final = re.compile(
    r"\*\*Status\*\*: (open|running|done|blocked|skipped)(?: in ([0-9a-f]{7,64}))?(?:: (.*))?$"
)
_TICK: Final = "[✅☑✔]"
_DONE: Final = "completed?|done|implemented|finished|shipped"
_DATE: Final = r"(?:,?\s+(?:on\s+)?[0-9./-]{6,10})?"
_DONE_TITLE: Final = re.compile(
    rf"(?:(?:[(\[|:–—]|{_TICK}\ufe0f?|\s-)\s*(?i:{_DONE})|\s(?:COMPLETED?|DONE|IMPLEMENTED|FINISHED)){_DATE}"
    rf"\s*(?:[)\]!.\ufe0f]|{_TICK})*$"
)
"""`(COMPLETED)`, `[done]`, `✅ Complete`, `- DONE 2026-01-05` at the end of a title; not `Make it complete`."""
_SKIPPED_TITLE: Final = re.compile(
    r"[(\[–—]\s*(?i:skipped|canceled|cancelled|deferred|dropped|obsolete|superseded|removed|out of scope)\s*[)\]]?$"
)
_DONE_VALUE: Final = re.compile(
    rf"(?:{_TICK}\ufe0f?\s*)?(?:{_DONE})\b(?!\s+(?:phase|step)s?\b)", re.IGNORECASE
)
_HEDGE: Final = re.compile(
    r"\b(?:not|except|but|pending|remain\w*|partial\w*|until|once|when|todo|waiting|awaiting|next|phases?|steps?)\b"
    r"|in progress",
    re.IGNORECASE,
)
_FINISHED: Final = re.compile(r"\W*(?:already )?(?:completed|done|finished)\b(?!\?)", re.IGNORECASE)
"""How a heading begins below which everything is done."""
_PHASES: Final = re.compile(r"\b(?:phase|step)s?\b", re.IGNORECASE)
_WORDS: Final = (Kind.BULLET, Kind.FRONT, Kind.TEXT)
"""Where an author says something: a status in code is a sample."""
_NEAR: Final = 12
"""How many lines below its heading may have the status of a phase."""
_STATUS_LINE: Final = re.compile(
    r"\W{0,6}(?:(?:plan|implementation|overall|current) )?status\W{0,4}:\W{0,4}?(?=\S)(.+)", re.IGNORECASE
)
_PHASE: Final = r"(?:phase|step|stage|milestone)\s+"
_NUMBER: Final = r"([0-9]{1,4}(?:\.[0-9]{1,4}){0,3}[a-z]?)\b"
_ROW: Final = re.compile(rf"\W{{0,6}}(?:{_PHASE})?{_NUMBER}", re.IGNORECASE)
_NAMED: Final = re.compile(rf"\W{{0,6}}{_PHASE}{_NUMBER}(?!\.?[0-9])", re.IGNORECASE)
_OPEN: Final = (Mark.OPEN, Mark.RUNNING, Mark.BLOCKED)


class Said(Enum):
    """What an author says about a phase or a plan outside of its boxes."""

    NOTHING = auto()
    TICKED = auto()
    """It has a check mark, or a table calls it complete."""
    DONE = auto()
    """It is called completed, in words."""
    SKIPPED = auto()
    DISPUTED = auto()
    """Its heading says that it is in progress, and its status line that it is complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How far a phase is."""

    mark: Mark = Mark.OPEN
    commit: str | None = None
    reason: str = ""
    ask: str = ""
    """Why only a person can decide that it is done."""
    note: str = ""
    """What contradicts the mark."""


def said_in_title(title: str) -> Said:
    """Return what a heading says about its phase."""
    plain = without_emphasis(without_comments(title)[0])
    if _SKIPPED_TITLE.search(plain) or (title.startswith("~~") and title.endswith("~~")):
        return Said.SKIPPED
    if _DONE_TITLE.search(plain) or plain[:3].lower() == "[x]":
        return Said.DONE
    return Said.TICKED if re.search(_TICK, plain) else Said.NOTHING


def said_in_plan(markdown: Markdown, end: int) -> Said:
    """Return whether the title, the front matter or a status line above a line calls the whole plan complete.

    That is as good as a check mark: many people call a plan complete when it is written.
    """
    said = [said_in_title(markdown.lines[one.line].words) for one in markdown.sections if one.level == 1]
    for line in markdown.lines[:end]:
        is_said = line.kind in _WORDS and OURS not in line.text
        match = _STATUS_LINE.match(line.text[:500]) if is_said else None
        if match is not None:
            said.append(_said_in_value(match[1]))
    return Said.TICKED if Said.DONE in said or Said.TICKED in said else Said.NOTHING


def said_in_phase(markdown: Markdown, start: int, end: int) -> Said:
    """Return what the status line below the heading of a phase says, and the headings around it."""
    around = (one for one in markdown.sections if 0 <= one.line < start < one.last and one.level > 1)
    if any(_FINISHED.match(one.title) for one in around):
        return Said.DONE
    for line in markdown.lines[start + 1 : min(end, start + _NEAR)]:
        match = _STATUS_LINE.match(line.text[:500]) if line.kind in (Kind.TEXT, Kind.BULLET) else None
        if match is None or OURS in line.text:
            continue
        value = without_emphasis(match[1]).strip(" *_`'\"|")
        if _DONE_VALUE.match(value) and not _HEDGE.search(_PHASES.sub("", value)):
            is_open = "in progress" in markdown.lines[start].words.casefold()
            return Said.DISPUTED if is_open else Said.TICKED
        return Said.NOTHING
    return Said.NOTHING


def _said_in_value(value: str) -> Said:
    plain = without_emphasis(without_comments(value)[0]).strip(" *_`'\"|")
    if _DONE_VALUE.match(plain) and not _HEDGE.search(plain):
        return Said.DONE
    return Said.TICKED if re.fullmatch(rf"{_TICK}\ufe0f?", plain) else Said.NOTHING


def said_in_tables(markdown: Markdown) -> Mapping[str, Said]:
    """Return which phases a table of progress calls complete, by their numbers."""
    said: dict[str, Said] = {}
    for table in markdown.tables:
        for row in table[1:]:
            match = _ROW.match(row.cells[0]) if len(row.cells) > 1 else None
            if match is not None and any(_is_complete(cell) for cell in row.cells[1:]):
                said[match[1].lower()] = Said.TICKED
    return said


def said_in_lists(markdown: Markdown, phases: Sequence[tuple[int, int]]) -> Mapping[str, Said]:
    """Return which phases have a ticked box outside of all phases, or are in a list of what is completed."""
    inside = {at for start, end in phases for at in range(start, end)}
    outside = [item for item in markdown.items if item.line not in inside]
    boxes = [
        item
        for item in outside
        if item.mark is Mark.DONE or (item.box is None and _is_below_finished(markdown, item))
    ]
    found = (_NAMED.match(item.words) for item in boxes)
    return {match[1].lower(): Said.TICKED for match in found if match is not None}


def _is_below_finished(markdown: Markdown, item: Item) -> bool:
    """Return whether the label or the heading of a list is `Completed` or the like."""
    label = next((one for one in reversed(markdown.labels) if one.line < item.line < one.end), None)
    title = label.title if label is not None else markdown.sections[item.section].title
    return _FINISHED.match(title) is not None and not _HEDGE.search(title)


def _is_complete(cell: str) -> bool:
    return _said_in_value(cell) is not Said.NOTHING


def status_at(lines: Sequence[Line]) -> int | None:
    """Return where among these lines our status line is, if it is there."""
    return next((at for at, line in enumerate(lines) if _matched(line) is not None), None)


def standing_in(markdown: Markdown, start: int, end: int, said: Sequence[Said] = ()) -> Standing:
    """Return how far the phase between its heading (-1: the whole file) and a line is; `said` is said elsewhere."""
    match = next(
        (match for line in markdown.lines[max(start, 0) : end] if (match := _matched(line)) is not None), None
    )
    if match is not None:
        return Standing(mark=Mark(match[1]), commit=match[2], reason=match[3] or "")
    return own_standing(markdown, start, end, said)


def own_standing(markdown: Markdown, start: int, end: int, said: Sequence[Said] = ()) -> Standing:
    """Return how far a phase is without our status line."""
    boxes = [item for item in markdown.items if start <= item.line < end and item.mark is not None]
    opened = [item for item in boxes if item.mark in _OPEN]
    is_any_done = any(item.mark is Mark.DONE for item in boxes)
    if Said.SKIPPED in said:
        return Standing(mark=Mark.SKIPPED)
    if Said.DISPUTED in said:
        return Standing(
            ask="Its heading says that it is in progress, and its status line that it is complete."
        )
    if Said.DONE in said:
        note = (
            f"it is called complete, so it is not run, but {_boxes(len(opened))} below it" if opened else ""
        )
        return Standing(mark=Mark.DONE, note=note)
    if boxes and not opened:
        return Standing(mark=Mark.DONE if is_any_done else Mark.SKIPPED)
    if Said.TICKED in said:
        if not opened:
            return Standing(mark=Mark.DONE)
        return Standing(ask=f"It is marked as complete, but {_boxes(len(opened))} below it.")
    if opened and is_any_done and all(group_of(markdown, item, start) is Group.MANUAL for item in opened):
        return Standing(ask="All its boxes are ticked except for the manual checks.")
    return Standing()


def _boxes(count: int) -> str:
    return f"{count} box{'es are' if count > 1 else ' is'} open"


def text_of(lines: Sequence[Line]) -> str:
    """Return a phase's text without our status line."""
    rows: Rows = [(line.text, None) for line in lines]
    present = status_at(lines)
    if present is not None:
        _take_out(rows, present)
    return "\n".join(text for text, _ in rows).strip()


def write_status(rows: Rows, present: int | None, place: int, own: Standing, wanted: ItemProgress) -> None:
    """Write our status line, where it is or at this place; a phase whose own words say as much has none."""
    said = wanted.mark.value
    commit = wanted.commit if wanted.mark is Mark.DONE else None
    reason = one_line(wanted.reason) if wanted.mark is Mark.BLOCKED else ""
    said += f" in {commit[:SHA_LENGTH]}" if commit else ""
    said += f": {reason}" if reason else ""
    status = f"**Status**: {said} {OURS}"
    is_said = own.mark is wanted.mark and not (commit or reason)
    if present is not None and is_said:
        _take_out(rows, present)
    elif present is not None:
        rows[present] = (status, rows[present][1])
    elif not is_said:
        rows[place:place] = [("", None), (status, None)] if place else [(status, None), ("", None)]


def _take_out(rows: Rows, present: int) -> None:
    """Remove the status line, together with the blank one that came with it."""
    del rows[present]
    blank = present - 1 if present else 0
    if blank < len(rows) and not rows[blank][0].strip():
        del rows[blank]


def _matched(line: Line) -> re.Match[str] | None:
    return _STATUS.match(without_comments(line.words)[0]) if OURS in line.text else None
