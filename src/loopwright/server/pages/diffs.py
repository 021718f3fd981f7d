"""Unified diffs as files, hunks and lines, with the syntax coloured."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from markupsafe import Markup, escape
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_for_filename
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

from loopwright.server.pages.render import plain

_MOST_LINES: Final = 4_000
"""More lines than this make a page slow; the diff endpoint has all of them."""
_LONGEST: Final = 2_000
_ESCAPED: Final = re.compile(r"\\([0-7]{1,3}|.)|([^\\]+)")
_ESCAPES: Final = {"a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}
_HUNK: Final = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a file before or after the change."""

    kind: str
    """`add`, `del`, `same` or `hunk`."""
    old: int | None
    new: int | None
    html: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """The changes of one file."""

    path: str
    added: int
    removed: int
    lines: tuple[Line, ...]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """What changed."""

    files: tuple[File, ...]
    added: int
    removed: int
    cut: bool


def changed_files(text: str, *, cut: bool) -> Changed:
    """Take a unified diff apart."""
    lines = text.splitlines()
    files = tuple(_files(lines[:_MOST_LINES]))
    return Changed(
        files=files,
        added=sum(one.added for one in files),
        removed=sum(one.removed for one in files),
        cut=cut or len(lines) > _MOST_LINES,
    )


def _files(lines: list[str]) -> Iterator[File]:
    starts = [n for n, line in enumerate(lines) if line.startswith("diff --git ")]
    for begin, end in pairwise([*starts, len(lines)]):
        yield _file(lines[begin:end])


def _file(lines: list[str]) -> File:
    path, note = _path(lines), ""
    shown: list[Line] = []
    lexer = _lexer(path)
    old = new = added = removed = 0
    in_hunk = False
    for line in lines[1:]:
        if found := _HUNK.match(line):
            old, new, in_hunk = int(found[1]), int(found[2]), True
            shown.append(Line(kind="hunk", old=None, new=None, html=escape(plain(line))))
        elif not in_hunk:
            if line.startswith(("new file", "deleted file", "rename from", "Binary files")):
                note = "binary file" if line.startswith("Binary") else line.partition(" mode")[0]
        elif line.startswith("+"):
            shown.append(Line(kind="add", old=None, new=new, html=_coloured(line[1:], lexer)))
            new, added = new + 1, added + 1
        elif line.startswith("-"):
            shown.append(Line(kind="del", old=old, new=None, html=_coloured(line[1:], lexer)))
            old, removed = old + 1, removed + 1
        elif line.startswith(" "):
            shown.append(Line(kind="same", old=old, new=new, html=_coloured(line[1:], lexer)))
            old, new = old + 1, new + 1
    return File(path=path, added=added, removed=removed, lines=tuple(shown), note=note)


def _path(lines: list[str]) -> str:
    """Return the path after the change, before it if the file is gone."""
    before = ""
    for line in lines[1:]:
        if line.startswith("@@"):
            break
        side, _, rest = line.partition(" ")
        name = _unquoted(rest.removesuffix("\t"))
        if side == "---" and name.startswith("a/"):
            before = name[2:]
        elif side == "+++":
            return name[2:] if name.startswith("b/") else before
        elif line.startswith("rename to "):
            return _unquoted(line.removeprefix("rename to "))
    # Neither a text nor renamed: both sides of the first line have the same name.
    sides = lines[0].removeprefix("diff --git ")
    return _unquoted(sides[len(sides) // 2 + 1 :])[2:]


def _unquoted(name: str) -> str:
    """Return a path that git wrote in quotation marks, with octal bytes, as it is."""
    if len(name) < 2 or not name.startswith('"') or not name.endswith('"'):
        return name
    made = bytearray()
    for code, other in _ESCAPED.findall(name[1:-1]):
        if not code:
            made += other.encode()
        elif code[0] in "01234567":
            made.append(int(code, 8) & 255)
        else:
            made += _ESCAPES.get(code, code).encode()
    return made.decode(errors="replace")


def _lexer(path: str) -> Lexer | None:
    try:
        return get_lexer_for_filename(path.rpartition("/")[2], stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _coloured(text: str, lexer: Lexer | None) -> Markup:
    """Return one line of code; tokens that go over several lines are coloured line by line."""
    safe = plain(text[:_LONGEST])
    if lexer is None or len(safe) > 400:
        return escape(safe)
    made = Markup()
    for kind, value in lexer.get_tokens(safe):
        name = STANDARD_TYPES.get(kind, "")
        made += Markup('<span class="t-{}">{}</span>').format(name, value) if name else escape(value)
    return made
