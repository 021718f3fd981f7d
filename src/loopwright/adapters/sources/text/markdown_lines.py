"""The lines of a Markdown file, byte for byte, and what each of them is.

A renderer would lose the bytes. This looks at one line at a time, knows what a fence and a comment hide, and its work
grows with the length of the file alone, whatever the file contains.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from loopwright.adapters.sources.text.plan_file import decoded_lines
from loopwright.adapters.sources.text.unreadable import Unreadable

_TAB: Final = 4
_BULLET: Final = re.compile(r"([-*+]|[0-9]{1,9}[.)])(?:[ \t]+|$)")
_BOX: Final = re.compile(r"\[([^\[\]]?)\](?=[ \t]|$)")
_ALMOST: Final = re.compile(r"\[([^\[\]]{0,3})\](?![(\[])")
_TIGHT: Final = re.compile(r"([-*+]|[0-9]{1,9}[.)])(?=\[)")
_FENCE: Final = re.compile(r"(`{3,}|~{3,})")
_INDENT: Final = re.compile(r"[ \t]*")


class Kind(Enum):
    """What a line is."""

    BLANK = auto()
    TEXT = auto()
    HEADING = auto()
    BULLET = auto()
    FENCE = auto()
    """The first or last line of a fenced block."""
    CODE = auto()
    """Inside of a fenced block."""
    COMMENT = auto()
    """Of a comment that has lines of its own, or the line below an underlined heading."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the file without its ending."""

    text: str
    kind: Kind
    indent: int = 0
    """Columns before its first letter."""
    level: int = 0
    """Of a heading."""
    words: str = ""
    """Without indent, heading signs, bullet and box; of a fence's first line what it says about the code."""
    box: str | None = None
    """What stands in the brackets of a checkbox; empty when nothing does."""
    box_at: int = 0
    """Where in the text that stands."""
    bullet: str = ""
    almost: str | None = None
    """What stands in brackets that are at the place of a checkbox, but are none: `[ ]Task`, `-[ ] Task`, `[ x]`."""


@dataclass(frozen=True, slots=True)
class Markdown:
    """A file as lines that can be put together again."""

    lines: tuple[Line, ...]
    bom: bool
    newline: str
    """What ends a line that is added."""
    endings: tuple[str, ...]

    def joined(self, texts: Sequence[tuple[str, str | None]]) -> bytes:
        """Return a file of these lines, each with its ending, or None for the usual one.

        A file whose last line had no ending gets none either.
        """
        parts = [f"{text}{self.newline if ending is None else ending}" for text, ending in texts]
        for place, (text, ending) in enumerate(texts[:-1]):
            if ending == "":
                parts[place] = f"{text}{self.newline}"
        if texts:
            text, ending = texts[-1]
            ended = ending or self.newline if not self.endings or self.endings[-1] else ""
            parts[-1] = f"{text}{ended}"
        return (("\ufeff" if self.bom else "") + "".join(parts)).encode()


def read_markdown(content: bytes) -> Markdown:
    """Return the lines of a file, or raise `Unreadable`."""
    text = decoded_lines(content)
    if "\0" in text:
        raise Unreadable(text.count("\n", 0, text.index("\0")) + 1, "the character NUL is not allowed")
    parts = text.split("\n")
    texts = [part.removesuffix("\r") for part in parts]
    endings = ["\r\n" if part.endswith("\r") else "\n" for part in parts]
    if texts[-1] == "" and not parts[-1]:
        del texts[-1], endings[-1]
    else:
        # A return without a new line at the very end belongs to the last line's text.
        texts[-1], endings[-1] = parts[-1], ""
    return Markdown(
        lines=_lines(texts),
        bom=content.startswith(b"\xef\xbb\xbf"),
        newline="\r\n" if endings and endings[0] == "\r\n" else "\n",
        endings=tuple(endings),
    )


def columns(space: str) -> int:
    """Return how wide white space is, tabs counted up to the next stop."""
    width = 0
    for char in space:
        width += _TAB - width % _TAB if char == "\t" else 1
    return width


def _lines(texts: list[str]) -> tuple[Line, ...]:
    found: list[Line] = []
    fence, opened, commented = "", 0, False
    for number, text in enumerate(texts, start=1):
        space = _leading(text)
        rest = text[len(space) :].rstrip()
        indent = columns(space)
        if fence:
            if rest.startswith(fence) and not rest.strip(fence[0]):
                fence = ""
                found.append(Line(text, Kind.FENCE, indent))
            else:
                found.append(Line(text, Kind.CODE, indent))
        elif commented:
            commented = "-->" not in rest
            found.append(Line(text, Kind.COMMENT, indent))
        elif (opening := _FENCE.match(rest)) is not None and "`" not in rest[opening.end() :]:
            fence, opened = opening[1], number
            found.append(Line(text, Kind.FENCE, indent, words=rest[opening.end() :].strip()))
        elif rest.startswith("<!--"):
            commented, opened = "-->" not in rest[4:], number
            found.append(Line(text, Kind.COMMENT, indent))
        else:
            found.append(_line(text, space, rest, indent))
            _underlined(found)
    if fence:
        raise Unreadable(opened, f"this {fence[:3]} block is never closed")
    if commented:
        raise Unreadable(opened, "this comment is never closed with -->")
    return tuple(found)


def _leading(text: str) -> str:
    match = _INDENT.match(text)
    assert match is not None
    return match[0]


def _line(text: str, space: str, rest: str, indent: int) -> Line:
    if not rest:
        return Line(text, Kind.BLANK)
    if rest[0] == "#" and indent < 4:
        words = rest.lstrip("#")
        level = len(rest) - len(words)
        if level <= 6 and (not words or words[0] in " \t"):
            closed = words.rstrip("#")
            if closed != words and closed.strip() and closed[-1] in " \t":
                words = closed
            return Line(text, Kind.HEADING, indent, level=level, words=words.strip())
    match = _BULLET.match(rest)
    if match is None:
        tight = _TIGHT.match(rest)
        almost = _ALMOST.match(rest, tight.end()) if tight is not None else None
        return Line(text, Kind.TEXT, indent, words=rest, almost=almost[1] if almost is not None else None)
    words = rest[match.end() :]
    box = _BOX.match(words)
    if box is None:
        almost = _ALMOST.match(words)
        inside = almost[1] if almost is not None else None
        return Line(text, Kind.BULLET, indent, words=words, bullet=match[1], almost=inside)
    at = len(space) + match.end() + 1
    words = words[box.end() :].strip()
    return Line(text, Kind.BULLET, indent, words=words, box=box[1], box_at=at, bullet=match[1])


def _underlined(found: list[Line]) -> None:
    """Make a heading of a line of text with a line of `=` or `-` below it."""
    if len(found) < 2:
        return
    above, line = found[-2], found[-1]
    if above.kind is not Kind.TEXT or above.indent > 3 or line.kind is not Kind.TEXT or len(line.words) < 3:
        return
    if len(found) > 2 and found[-3].kind not in (Kind.BLANK, Kind.HEADING):
        return
    if not line.words.strip(line.words[0]) and line.words[0] in "=-":
        level = 1 if line.words[0] == "=" else 2
        found[-2] = Line(above.text, Kind.HEADING, above.indent, level=level, words=above.words)
        found[-1] = Line(line.text, Kind.COMMENT)
