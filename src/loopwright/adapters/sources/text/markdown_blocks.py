"""Which line of a Markdown file is what, by CommonMark with a few rules for how people really write.

- A fence may be indented as deep as you like, and one that is opened inside a list may be closed at the margin.
- A `markdown` block may hold other fences that have a language or are indented deeper.
- Text that is indented by four columns is text: most of it is a list that is indented too far.
- Only comments are HTML. Other tags are text, so they hide no task.

If a file has a fence without an end by these rules, the rules of CommonMark alone decide.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from loopwright.adapters.sources.text.problems import Unreadable

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

_MAX_NESTING: Final = 100
"""A list inside a list takes two."""
_RULES: Final = ("blockquote", "heading", "hr", "lheading", "list", "table")
_FENCE: Final = re.compile(r"(`{3,}|~{3,})[ \t]*(.*?)[ \t]*$")
_NESTING: Final = ("markdown", "md")
_STRICT: Final = "strict"
_OPENED: Final = "opened"
_LINES: Final = "lines"
_WORK: Final = re.compile(r"#[ \t]|[ \t]*(?:#{2,6}[ \t]|(?:[-*+]|[0-9]{1,9}[.)])[ \t]+\[[ xX~!/-]\][ \t])")
_LATE_ITEM: Final = re.compile(
    r"[ \t]*[0-9]{1,9}[.)][ \t]+\[[ xX~!/-]\](?:[ \t]|$)"
    r"|[ ]{0,3}(?:\t|[ ]{4})[ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+\S"
)
"""A list item that CommonMark takes for the text above it: it is indented too far, or a number above 1 follows text."""
_NO_CODE: Final = re.compile(r"(?:#{2,6}|[-*+]|[0-9]{1,9}[.)])[ \t]")
"""What ends a fenced block at the margin; `# words` is a comment in most languages."""
_MARGIN: Final = 200
"""How many lines of a fenced block inside a list may be written at the margin."""
_NEVER_CLOSED: Final = {
    "```": "this ``` block is never closed",
    "~~~": "this ~~~ block is never closed",
    "-->": "this comment is never closed with -->",
}
_OPEN_FRONT: Final = "this front matter is never closed: write --- below its last key"
_UNDERLINE: Final = 3
_FRONT_LINE: Final = re.compile(r"[a-z][\w-]{0,60}:(?:[ \t]|$)")
_NOT_FRONT: Final = re.compile(r"#{2,6}[ \t]|[ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+\[[ xX~!/-]\][ \t]")
"""What front matter never has: a heading below the first level, or a checkbox."""
_FRONT_KEY: Final = re.compile(r"[\w][\w .-]{0,60}:(?:[ \t]|$)|#")


class Kind(Enum):
    """What a line is."""

    BLANK = auto()
    TEXT = auto()
    HEADING = auto()
    BULLET = auto()
    """The first line of a list item."""
    FENCE = auto()
    """The first or last line of a fenced block."""
    CODE = auto()
    """A line inside a fenced block."""
    COMMENT = auto()
    """A line of a comment, or the line below an underlined heading."""
    FRONT = auto()
    """A line of the front matter."""


@dataclass(slots=True)
class Blocks:
    """What each line is, and where the blocks of several lines are."""

    kinds: list[Kind]
    levels: dict[int, int] = field(default_factory=dict)
    """The level of each heading."""
    tables: list[tuple[int, int]] = field(default_factory=list)
    front: int = 0
    """How many lines the front matter has, with its fences."""
    opened: int | None = None
    """The first line of a fenced block that is never closed and hides no work."""


def blocks_in(texts: Sequence[str]) -> Blocks:
    """Return what each line is, or raise `Unreadable` where a block without an end hides the rest."""
    front = _front_matter(texts)
    source = "\n".join((*("" for _ in range(front)), *texts[front:]))
    tokens, opened = _parsed(source, strict=False)
    if opened is not None and _hides_work(texts, opened):
        first = opened
        tokens, opened = _parsed(source, strict=True)
        if opened is not None and _hides_work(texts, opened):
            raise Unreadable(first[0] + 1, _NEVER_CLOSED[first[1]])
    found = Blocks(
        kinds=[Kind.TEXT if text.strip() else Kind.BLANK for text in texts],
        front=front,
        opened=opened[0] if opened is not None else None,
    )
    found.kinds[:front] = [Kind.FRONT] * front
    for token in _unquoted(tokens):
        _place(token, found, texts)
    for at, text in enumerate(texts):
        if found.kinds[at] is Kind.TEXT and _LATE_ITEM.match(text):
            found.kinds[at] = Kind.BULLET
    return found


def _front_matter(texts: Sequence[str]) -> int:
    if not texts or texts[0].rstrip() != "---":
        return 0
    end = next((at for at, text in enumerate(texts[1:], start=1) if text.rstrip() in ("---", "...")), 0)
    said = next((text for text in texts[1:end] if text.strip()), "")
    if not end and len(texts) > 1 and _FRONT_LINE.match(texts[1]):
        raise Unreadable(1, _OPEN_FRONT)
    if not _FRONT_KEY.match(said):
        return 0
    if any(_NOT_FRONT.match(text) for text in texts[1:end]):
        raise Unreadable(1, _OPEN_FRONT)
    return end + 1


def _hides_work(texts: Sequence[str], opened: tuple[int, str]) -> bool:
    """Return whether headings or tasks are below the start of a block without an end."""
    start, missing = opened
    return missing == "-->" or any(_WORK.match(text) for text in texts[start + 1 :])


def _unquoted(tokens: Sequence["Token"]) -> Iterator["Token"]:
    quotes = 0
    for token in tokens:
        if token.level >= _MAX_NESTING - 2:
            raise Unreadable(token.map[0] + 1 if token.map else None, "nested too deeply")
        quotes += (token.type == "blockquote_open") - (token.type == "blockquote_close")
        if not quotes and token.map:
            yield token


def _place(token: "Token", found: Blocks, texts: Sequence[str]) -> None:
    """Enter what one token says about its lines."""
    assert token.map is not None
    start, end = token.map
    if token.type == "heading_open" and token.level == 0:
        _place_heading(token.markup, int(token.tag[1:]), (start, end), found, texts)
    elif token.type == "list_item_open" and found.kinds[start] is Kind.TEXT:
        found.kinds[start] = Kind.BULLET
    elif token.type == "comment":
        found.kinds[start:end] = [Kind.COMMENT] * (end - start)
    elif token.type == "table_open":
        found.tables.append((start, end))
    elif token.type == "fence":
        inner = end - 1 if token.meta["closed"] else end
        found.kinds[start + 1 : inner] = [Kind.CODE] * (inner - start - 1)
        if found.kinds[start] is Kind.TEXT:
            found.kinds[start] = Kind.FENCE
        if token.meta["closed"]:
            found.kinds[end - 1] = Kind.FENCE


def _place_heading(
    markup: str, level: int, lines: tuple[int, int], found: Blocks, texts: Sequence[str]
) -> None:
    start, end = lines
    text = texts[start]
    if markup in ("=", "-"):
        # `---` below a paragraph is meant as a line across the page.
        if end - start != 2 or len(texts[start + 1].strip()) < _UNDERLINE or text.startswith("**"):
            return
        found.kinds[start + 1] = Kind.COMMENT
    elif not text[:4].strip():
        return
    found.kinds[start] = Kind.HEADING
    found.levels[start] = level


def _parsed(source: str, *, strict: bool) -> tuple[list["Token"], tuple[int, str] | None]:
    """Return the tokens, and the line and the missing end of a block that is never closed."""
    env: dict[str, Any] = {_STRICT: strict, _LINES: source.rstrip().count("\n") + 1}
    tokens: list[Token] = []
    parser = _parser()
    parser.block.parse(source, parser, env, tokens)
    return tokens, env.get(_OPENED)


@cache
def _parser() -> "MarkdownIt":
    # Loading it takes 30 ms, which a command that reads no Markdown should not pay.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("zero", {"maxNesting": _MAX_NESTING}).enable([*_RULES])
    around = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    parser.block.ruler.at("paragraph", _paragraph)
    parser.block.ruler.before("blockquote", "loose_fence", _fence, around)  # type: ignore[arg-type]
    parser.block.ruler.before("blockquote", "comment", _comment, around)  # type: ignore[arg-type]
    return parser


def _fence(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
    """Parse a fenced block."""
    opening = _FENCE.match(_line(state, start))
    if opening is None or (opening[1][0] == "`" and "`" in opening[2]):
        return False
    if silent:
        return True
    line, is_closed = _fence_end(state, opening, start, end)
    if not is_closed and line >= state.env[_LINES]:
        state.env[_OPENED] = (start, opening[1][:3])
    token = state.push("fence", "code", 0)
    token.map = [start, line]
    token.meta = {"closed": is_closed}
    state.line = line
    return True


def _fence_end(state: "StateBlock", opening: re.Match[str], start: int, end: int) -> tuple[int, bool]:
    """Return the line after a fenced block, and whether its end is written."""
    is_strict = state.env[_STRICT]
    nests = not is_strict and opening[2].casefold() in _NESTING
    deepest = max(state.blkIndent, state.sCount[start]) + (0 if nests else 3)
    depth, is_at_margin = 1, False
    for at in range(start + 1, end):
        text = _line(state, at)
        if text and state.sCount[at] < state.blkIndent and not is_at_margin:
            # The list around it ends here, unless the rest of the block is written at the margin.
            is_at_margin = not is_strict and _is_closed_below(state, opening, at, end)
            if not is_at_margin:
                return at, False
        fence = _FENCE.match(text) if text[:1] == opening[1][0] else None
        if fence is None or state.sCount[at] > deepest or len(fence[1]) < len(opening[1]):
            continue
        if fence[2]:
            depth += 1 if nests else 0
            continue
        depth -= 1
        if not depth:
            return at + 1, True
    return end, False


def _is_closed_below(state: "StateBlock", opening: re.Match[str], start: int, end: int) -> bool:
    """Return whether code that is written at the margin ends with a fence before anything else begins."""
    for at in range(start, min(end, start + _MARGIN)):
        text = _line(state, at)
        fence = _FENCE.match(text) if text[:1] == opening[1][0] else None
        if fence is not None and len(fence[1]) >= len(opening[1]):
            return not fence[2]
        if state.sCount[at] < state.blkIndent and _NO_CODE.match(text):
            return False
    return False


def _comment(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
    """Parse a comment that begins a line; it ends with the line that has its end, however that is indented."""
    text = _line(state, start)
    if not text.startswith("<!--"):
        return False
    if silent:
        return True
    line = start
    at = text.find("-->", 4)
    while at < 0 and line + 1 < end:
        line += 1
        at = _line(state, line).find("-->")
    if at < 0:
        state.env.setdefault(_OPENED, (start, "-->"))
    state.push("comment", "", 0).map = [start, line + 1]
    state.line = line + 1
    return True


def _paragraph(state: "StateBlock", start: int, end: int, silent: bool) -> bool:  # noqa: ARG001
    """Parse a paragraph; a fence or a list ends it even if it is indented by four columns more."""
    rules = state.md.block.ruler.getRules("paragraph")
    around, state.parentType = state.parentType, "paragraph"
    line = start + 1
    while line < end and not state.isEmpty(line):
        # A line that is indented less than its list is lazily a part of the paragraph.
        if state.sCount[line] >= 0 and any(rule(state, line, end, True) for rule in rules):
            break
        line += 1
    state.parentType = around
    state.line = line
    return True


def _line(state: "StateBlock", at: int) -> str:
    return state.src[state.bMarks[at] + state.tShift[at] : state.eMarks[at]]
