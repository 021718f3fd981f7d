"""A Markdown file as lines that can be put together again, with its headings, lists and tables.

Read a file with `read_markdown`, ask the `Markdown` for sections and items, and change it with `markdown_edits`:

    markdown = read_markdown(content)
    for item in markdown.items:
        if item.mark is Mark.OPEN and item.parent is None:
            print(markdown.sections[item.section].title, plain_title(item.words))

`markdown_blocks` decides by CommonMark what each line is. Which item belongs to which follows from indents: two columns
are enough, also below `1.`, as people write it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from loopwright.adapters.sources.text.markdown_blocks import Blocks, Kind, blocks_in
from loopwright.adapters.sources.text.plan_file import decoded
from loopwright.adapters.sources.text.problems import Unreadable
from loopwright.adapters.sources.text.titles import plain_title
from loopwright.ports import Mark

__all__ = [
    "BOXES",
    "MARKS",
    "MAX_LINES",
    "STATUS_WORD",
    "Item",
    "Kind",
    "Label",
    "Line",
    "Markdown",
    "Row",
    "Section",
    "read_markdown",
]

MAX_LINES: Final = 20_000
"""A longer file takes too long to read."""
MARKS: Final = {
    " ": Mark.OPEN,
    "~": Mark.RUNNING,
    "/": Mark.RUNNING,
    "x": Mark.DONE,
    "X": Mark.DONE,
    "!": Mark.BLOCKED,
    "-": Mark.SKIPPED,
}
"""What is in a checkbox, and what it says."""
STATUS_WORD: Final = (
    r"(?:completed?|done|finished|pending|to[ _-]?do|not[ _-]started|in[ _-]?progress|"
    r"blocked|skipped|cancelled|canceled)"
)
"""The words in brackets that are a status; `[new]` and `[fixed]` can be a kind of change."""
BOXES: Final = {Mark.OPEN: " ", Mark.RUNNING: "~", Mark.DONE: "x", Mark.BLOCKED: "!", Mark.SKIPPED: "-"}
_TAB: Final = 4
_BULLET: Final = re.compile(r"([-*+]|[0-9]{1,9}[.)])(?:[ \t]+|$)")
_WIDE: Final = "\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef"
"""Letters and signs that many people write without a space before them."""
_BOX: Final = re.compile(rf"\[([^\[\]]?)\](\\?\*)?(?=[ \t{_WIDE}]|$)")
_ALMOST: Final = re.compile(r"\[([^\[\]]{0,3})\](?![(\[])")
_UNCLOSED: Final = re.compile(r"\[([ xX~/!-])[ \t]*(?:(?<=[ \t])|(?=[)}]))(?![^\[\]]*\])")
_TIGHT: Final = re.compile(r"([-*+]|[0-9]{1,9}[.)])(?=\[)")
_INDENT: Final = re.compile(r"[ \t]*")
_FENCE_SIGNS: Final = re.compile(r"`{3,}|~{3,}")
_LABEL: Final = re.compile(r"(\*\*|__)([^*_`].{0,200}?)\1[ \t]*:?$")
_NEST: Final = 2
"""How many columns deeper than its parent an item is."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the file without its ending."""

    text: str
    kind: Kind
    indent: int = 0
    """Columns before its first character."""
    level: int = 0
    """Of a heading."""
    words: str = ""
    """Without indent, heading signs, bullet and box; of a fence's first line its language."""
    box: str | None = None
    """What is in the brackets of a checkbox; empty if nothing is."""
    box_at: int = 0
    """Where in the text that is."""
    bullet: str = ""
    almost: str | None = None
    """What is in brackets in the place of a checkbox that are none: `[ ]Task`, `-[ ] Task`, `[ x]`, `[ Task`."""
    almost_end: int = 0
    """Where in the text those brackets end."""
    optional: bool = False
    """Whether a star follows the box: `[ ]*` or `[ ]\\*`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading with what is below it. The first section is what is above all headings."""

    title: str
    """Without emphasis and comments."""
    level: int
    line: int
    """Index of its heading's line; -1 for what is above all headings."""
    end: int
    """Index of the next heading's line, of whatever level."""
    last: int
    """Index of the line after its last subsection."""
    parent: int | None
    """Index of the section around it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A line in bold that people use as a heading, with the lines below it up to the next label or heading."""

    title: str
    line: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A list item, with or without a checkbox."""

    line: int
    end: int
    """Index after the last line that belongs to it and is not blank; items below it are included."""
    words: str
    """Its first line without bullet and box."""
    box: str | None
    mark: Mark | None
    """What its box says; None without a box, or with an unknown sign in it."""
    optional: bool
    parent: int | None
    """Index of the item around it."""
    section: int
    """Index of its section."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of a table."""

    line: int
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Markdown:
    """A file as lines that can be put together again."""

    lines: tuple[Line, ...]
    sections: tuple[Section, ...]
    items: tuple[Item, ...]
    """Every list item outside of quotes, in the order of the file."""
    labels: tuple[Label, ...]
    tables: tuple[tuple[Row, ...], ...]
    """The rows of each table, its header first."""
    front: int
    """How many lines the front matter has, with its fences."""
    opened: int | None
    """The first line of a fenced block that is never closed and hides no work: text below it would be code."""
    bom: bool
    newline: str
    """What ends a line that is added."""
    endings: tuple[str, ...]

    @property
    def title(self) -> str:
        """Return the first heading of the first level, without emphasis."""
        return next((one.title for one in self.sections if one.level == 1), "")

    def text(self, start: int, end: int) -> str:
        """Return the text of these lines without blank lines around it."""
        return "\n".join(line.text for line in self.lines[max(start, 0) : end]).strip("\n")

    def section_at(self, line: int) -> int:
        """Return the index of the section that a line is in."""
        return next(at for at in range(len(self.sections) - 1, -1, -1) if self.sections[at].line <= line)

    def label_at(self, line: int) -> Label | None:
        """Return the label in bold above a line, if there is one in its section."""
        return next((one for one in self.labels if one.line <= line < one.end), None)

    def around(self, section: int) -> Iterator[int]:
        """Return the indices of a section and of those around it, the innermost first."""
        at: int | None = section
        while at is not None:
            yield at
            at = self.sections[at].parent

    def body(self, item: Item) -> tuple[Line, ...]:
        """Return the lines below the first line of an item that belong to it."""
        return self.lines[item.line + 1 : item.end]

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


@lru_cache(maxsize=4)
def read_markdown(content: bytes) -> Markdown:
    """Return the structure of a file, or raise `Unreadable`."""
    text = decoded(content)
    if text.count("\n") >= MAX_LINES:
        raise Unreadable(MAX_LINES, f"the file has more than {MAX_LINES} lines")
    if "\0" in text:
        raise Unreadable(text.count("\n", 0, text.index("\0")) + 1, "the character NUL is not allowed")
    parts = text.split("\n")
    texts = [part.removesuffix("\r") for part in parts]
    endings = ["\r\n" if part.endswith("\r") else "\n" for part in parts]
    if texts[-1] == "" and not parts[-1]:
        del texts[-1], endings[-1]
    else:
        # A return without a new line at the end of the file belongs to the last line's text.
        texts[-1], endings[-1] = parts[-1], ""
    blocks = blocks_in(texts)
    lines = tuple(_line(text, at, blocks) for at, text in enumerate(texts))
    sections = tuple(_sections(lines))
    items = tuple(_items(lines))
    return Markdown(
        lines=lines,
        sections=sections,
        items=items,
        labels=tuple(_labels(lines, sections, items)),
        tables=tuple(_table(lines, start, end) for start, end in blocks.tables),
        front=blocks.front,
        opened=blocks.opened,
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


def _line(text: str, at: int, blocks: Blocks) -> Line:
    kind = blocks.kinds[at]
    if kind is Kind.BLANK:
        return Line(text, kind)
    match = _INDENT.match(text)
    assert match is not None
    space = match[0]
    indent = columns(space)
    rest = text[len(space) :].rstrip()
    if kind is Kind.HEADING:
        return Line(text, kind, indent, level=blocks.levels[at], words=_heading(rest))
    if kind is Kind.FENCE:
        return Line(text, kind, indent, words=_FENCE_SIGNS.sub("", rest, count=1).strip())
    if kind is Kind.BULLET:
        return _bullet(text, space, rest, indent)
    if kind is Kind.TEXT:
        tight = _TIGHT.match(rest)
        inside, end = _almost(rest, tight.end()) if tight is not None else (None, 0)
        return Line(text, kind, indent, words=rest, almost=inside, almost_end=len(space) + end)
    return Line(text, kind, indent)


def _heading(rest: str) -> str:
    if not rest.startswith("#"):
        return rest
    words = rest.lstrip("#")
    closed = words.rstrip("#")
    return (closed if closed != words and closed.strip() and closed[-1] in " \t" else words).strip()


def _bullet(text: str, space: str, rest: str, indent: int) -> Line:
    match = _BULLET.match(rest)
    if match is None:
        return Line(text, Kind.TEXT, indent, words=rest)
    words = rest[match.end() :]
    box = _BOX.match(words)
    if box is None:
        inside, end = _almost(rest, match.end())
        return Line(
            text,
            Kind.BULLET,
            indent,
            words=words,
            bullet=match[1],
            almost=inside,
            almost_end=len(space) + end,
        )
    return Line(
        text,
        Kind.BULLET,
        indent,
        words=words[box.end() :].strip(),
        box=box[1],
        box_at=len(space) + match.end() + 1,
        bullet=match[1],
        optional=bool(box[2]),
    )


def _almost(rest: str, start: int) -> tuple[str | None, int]:
    """Return what is in brackets in the place of a checkbox, and where they end."""
    found = _ALMOST.match(rest, start) or _UNCLOSED.match(rest, start)
    return (found[1], found.end()) if found is not None else (None, 0)


def _sections(lines: tuple[Line, ...]) -> Iterator[Section]:
    starts = [-1, *(at for at, line in enumerate(lines) if line.kind is Kind.HEADING)]
    levels = [0, *(lines[at].level for at in starts[1:])]
    ends = [*starts[1:], len(lines)]
    lasts = [len(lines)] * len(starts)
    parents: list[int | None] = []
    opened: list[int] = []
    for number, level in enumerate(levels):
        while opened and (levels[opened[-1]] >= level or opened[-1] == 0):
            lasts[opened.pop()] = starts[number]
        parents.append(opened[-1] if opened else None)
        opened.append(number)
    for number, start in enumerate(starts):
        yield Section(
            title=plain_title(lines[start].words) if start >= 0 else "",
            level=levels[number],
            line=start,
            end=ends[number],
            last=lasts[number],
            parent=parents[number],
        )


def _items(lines: tuple[Line, ...]) -> Iterator[Item]:
    """Return each item with its extent: a line that is indented by two columns more than a bullet belongs to it."""
    starts: list[int] = []
    parents: list[int | None] = []
    ends: list[int] = []
    within: list[int] = []
    opened: list[int] = []
    follows = False  # whether the line above belongs to an item and is not blank
    section = 0
    for at, line in enumerate(lines):
        if line.kind is Kind.BLANK:
            follows = False
            continue
        if line.kind is Kind.HEADING:
            section += 1
            opened, follows = [], False
            continue
        is_inside_fence = line.kind is Kind.CODE or (
            line.kind is Kind.FENCE and at > 0 and lines[at - 1].kind is Kind.CODE
        )
        is_lazy = follows and line.kind is Kind.TEXT and line.almost is None
        if not is_inside_fence and not is_lazy:
            while opened and line.indent < lines[starts[opened[-1]]].indent + _NEST:
                opened.pop()
        if line.kind is Kind.BULLET and (opened or line.indent < _TAB):
            parents.append(opened[-1] if opened else None)
            opened.append(len(starts))
            starts.append(at)
            ends.append(at + 1)
            within.append(section)
        for one in opened:
            ends[one] = at + 1
        follows = bool(opened) and not is_inside_fence
    for number, at in enumerate(starts):
        line = lines[at]
        yield Item(
            line=at,
            end=ends[number],
            words=line.words,
            box=line.box,
            mark=MARKS.get(line.box) if line.box is not None else None,
            optional=line.optional,
            parent=parents[number],
            section=within[number],
        )


def _labels(lines: tuple[Line, ...], sections: Sequence[Section], items: Sequence[Item]) -> Iterator[Label]:
    inside = {at for item in items for at in range(item.line, item.end)}
    found = [
        (at, match[2])
        for at, line in enumerate(lines)
        if line.kind is Kind.TEXT and at not in inside and (match := _LABEL.match(line.words)) is not None
    ]
    headings = [section.line for section in sections]
    stops = sorted({*headings, *(at for at, _ in found), len(lines)})
    following = dict(pairwise(stops))
    for at, title in found:
        yield Label(title=plain_title(title), line=at, end=following[at])


def _table(lines: tuple[Line, ...], start: int, end: int) -> tuple[Row, ...]:
    rows = [Row(line=at, cells=_cells(lines[at].text)) for at in range(start, end)]
    return (*rows[:1], *rows[2:])


_PIPE: Final = re.compile(r"(?<!\\)\|")


def _cells(text: str) -> tuple[str, ...]:
    bare = text.strip().removeprefix("|")
    bare = bare[:-1] if bare.endswith("|") and not bare.endswith("\\|") else bare
    return tuple(cell.strip() for cell in _PIPE.split(bare))
