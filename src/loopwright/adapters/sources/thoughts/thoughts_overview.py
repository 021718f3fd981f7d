"""The overview of a set of phases: its boxes name the phases and have their status."""

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Final

from loopwright.adapters.sources.text.markdown import BOXES, MARKS, Kind, Line, Markdown
from loopwright.adapters.sources.text.problems import Problems
from loopwright.adapters.sources.text.titles import OURS, SHA_LENGTH, is_sha, one_line, without_comments
from loopwright.adapters.sources.thoughts.thoughts_files import PhaseSet
from loopwright.adapters.sources.thoughts.thoughts_status import Rows, Standing
from loopwright.ports import ItemProgress, Mark

_NAME: Final = re.compile(r"[\w.-]+")
_BLOCKED: Final = "Blocked:"
_SHA: Final = re.compile(r" <!-- [0-9a-f]{7,64} -->")
_TO_DO: Final = (Mark.OPEN, Mark.RUNNING, Mark.BLOCKED)


def unmet(found: dict[str, Markdown], one: PhaseSet, called: Callable[[str], str]) -> list[Problems]:
    """Return what overviews list as still to be done although there is no such phase."""
    start = PurePosixPath(one.prefix).name if not one.prefix.endswith("/") else ""
    numbered = re.compile(rf"{re.escape(start)}{'-' if start else ''}(?P<number>[0-9]{{1,3}})-[^-]")
    known = {PurePosixPath(phase.name).stem for phase in one.phases}
    gathered = []
    for file in one.overviews:
        problems = Problems(called(file))
        gathered.append(problems)
        for at, line in enumerate(found[file].lines):
            if line.kind is not Kind.BULLET or MARKS.get(line.box or "") not in _TO_DO:
                continue
            for word in _NAME.findall(line.words):
                stem = word.strip(".-").removesuffix(".md")
                match = numbered.match(stem)
                if match is not None and stem not in known:
                    is_one = len(match["number"]) == 2
                    why = "is not there" if is_one else "is not called like a phase (PREFIX-NN-NAME.md)"
                    problems.note(at + 1, "", f"{stem}.md is listed here, and {why}")
    return gathered


def overview_text(markdown: Markdown) -> str:
    """Return an overview's text as if nothing had been done yet."""
    texts: list[str] = []
    for line in markdown.lines:
        if _is_reason(line) and OURS in line.text:
            continue
        boxed = line.kind is Kind.BULLET and line.box in MARKS
        bare = f"{line.text[: line.box_at]} {line.text[line.box_at + 1 :]}" if boxed else line.text
        texts.append(_SHA.sub("", bare) if boxed else bare)
    return "\n".join(texts).strip()


def listed_in(found: dict[str, Markdown], one: PhaseSet) -> dict[str, tuple[str, int]]:
    """Return the checkboxes of the overview that name a phase's file: its status is kept there."""
    listed: dict[str, tuple[str, int]] = {}
    for file in one.overviews:
        for at, line in enumerate(found[file].lines):
            if line.kind is Kind.BULLET and line.box in MARKS:
                for word in _NAME.findall(line.words):
                    listed.setdefault(word.strip(".-").removesuffix(".md"), (file, at))
    return listed


def standing_at(markdown: Markdown, at: int) -> Standing:
    """Return how far the phase is that the box on a line names."""
    line = markdown.lines[at]
    below = (markdown.lines[one] for one in _below(markdown, at))
    reason = next((without_comments(one.words)[0] for one in below if _is_reason(one)), "")
    commit = next(filter(is_sha, without_comments(line.words)[1]), None)
    return Standing(mark=MARKS[line.box or ""], commit=commit, reason=reason.removeprefix(_BLOCKED).strip())


def ticked_at(markdown: Markdown, places: dict[int, ItemProgress]) -> bytes:
    """Return an overview with the status of phases written into the boxes on these lines."""
    rows: Rows = [(line.text, ending) for line, ending in zip(markdown.lines, markdown.endings, strict=True)]
    # From the end, so that what is put in below one box moves no other.
    for at, standing in sorted(places.items(), reverse=True):
        _tell_reason(markdown, rows, at, standing)
        line = markdown.lines[at]
        text, mark = line.text, MARKS[line.box or ""]
        if mark is not standing.mark:
            text = f"{text[: line.box_at]}{BOXES[standing.mark]}{text[line.box_at + 1 :]}"
        bare = _SHA.sub("", text)
        if mark is Mark.DONE and standing.mark is not Mark.DONE:
            text = bare
        elif (
            standing.mark is Mark.DONE
            and standing.commit
            and standing.commit[:7] not in text[len(bare.rstrip()) :]
        ):
            end = len(bare.rstrip())
            text = f"{bare[:end]} <!-- {standing.commit[:SHA_LENGTH]} -->{bare[end:]}"
        rows[at] = (text, rows[at][1])
    return markdown.joined(rows)


def _tell_reason(markdown: Markdown, rows: Rows, at: int, standing: ItemProgress) -> None:
    """Write below a phase's box why it is blocked, or take that out; what a person wrote there says it as well."""
    line, below = markdown.lines[at], _below(markdown, at)
    reason = one_line(standing.reason) if standing.mark is Mark.BLOCKED else ""
    present = [one for one in below if _is_reason(markdown.lines[one]) and OURS in markdown.lines[one].text]
    # Not the text: a mark in the box says nothing of it.
    theirs = (one_line(_SHA.sub("", markdown.lines[one].words)) for one in (at, *below) if one not in present)
    space = line.text[: len(line.text) - len(line.text.lstrip())] + " " * (len(line.bullet) + 1)
    said = reason and not any(reason in words for words in theirs)
    wanted = [f"{space}- {_BLOCKED} {reason} {OURS}"] if said else []
    if [rows[one][0] for one in present] != wanted:
        place = present[0] if present else below.stop
        for one in reversed(present):
            del rows[one]
        rows[place:place] = [(words, None) for words in wanted]


def _below(markdown: Markdown, at: int) -> range:
    """Return the lines that belong to a box alone: what is nested in it up to another box, and its continued words."""
    lines, indent = markdown.lines, markdown.lines[at].indent
    after = range(at + 1, len(lines))
    ends = (n for n in after if lines[n].kind is not Kind.TEXT and not _is_nested(lines[n], indent))
    return range(at + 1, next(ends, len(lines)))


def _is_nested(line: Line, indent: int) -> bool:
    return line.kind is Kind.BULLET and line.indent > indent and line.box is None


def _is_reason(line: Line) -> bool:
    return line.kind is Kind.BULLET and line.box is None and line.words.startswith(_BLOCKED)
