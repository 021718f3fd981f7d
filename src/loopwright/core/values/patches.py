"""The content of a change: its lines by file, and a hash that identifies it.

The hash ignores the position of a change in a file and the rest of the file, so it stays the same when other
work lands. Every line of the change and its context counts, with white space, which has a meaning in some
languages.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

SHOWN: Final = 100_000
"""The most characters of a change that are shown to a reader."""

_FILE: Final = b"diff --git "
_HUNK: Final = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPED: Final = re.compile(rb"\\([0-7]{3}|.)")
_ESCAPES: Final = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """One file of a change."""

    path: str
    """Relative to the top of the repository."""
    spans: tuple[tuple[int, int], ...] = ()
    """First and last line of each visible part, in the new file; in the old one if it was deleted."""
    added: int = 0
    removed: int = 0

    def has(self, line: int) -> bool:
        """Return whether a line is in a visible part of the file."""
        return any(first <= line <= last for first, last in self.spans)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A whole change."""

    sha256: str
    files: tuple[ChangedFile, ...]
    text: str
    """As much of it as is shown."""
    is_whole: bool
    """Whether that is all: not if it is too long, or contains binary files."""

    @property
    def lines(self) -> int:
        """The number of added and removed lines."""
        return sum(one.added + one.removed for one in self.files)


def read_patch(lines: Iterable[bytes], *, shown: int = SHOWN) -> Patch:
    """Read a change as git prints it, with full ids and without renames."""
    reader = _Reader(shown)
    for line in lines:
        reader.take(line)
    return reader.finish()


class _Reader:
    def __init__(self, shown: int) -> None:
        self._hash = hashlib.sha256()
        self._files: list[ChangedFile] = []
        self._text: list[str] = []
        self._left = shown
        self._whole = True
        self._path: str | None = None
        self._gone = False
        self._ids = b""
        self._spans: list[tuple[int, int]] = []
        self._counts = [0, 0]
        self._old = self._new = 0
        """Remaining lines of the part, on either side."""

    def take(self, line: bytes) -> None:
        self._show(line)
        if self._old > 0 or self._new > 0:
            self._inside(line)
        elif line.startswith(_FILE):
            self._close()
            self._path = _path(line[len(_FILE) :].rstrip(b"\n"))
            self._hash.update(line)
        elif found := _HUNK.match(line):
            old, new = (1 if found[n] is None else int(found[n]) for n in (2, 4))
            self._old, self._new = old, new
            first, count = (int(found[1]), old) if self._gone else (int(found[3]), new)
            # If no line is left, the part refers to the line before the gap.
            self._spans.append((max(1, first), max(1, first + count - 1)))
            self._ids = b""  # the lines say it all
            self._hash.update(b"@@\n")
        elif line.startswith(b"index ") and not self._spans:
            self._ids = line
        elif not line.startswith((b"--- ", b"+++ ")):
            self._whole = self._whole and not line.startswith(b"Binary files ")
            self._gone = self._gone or line.startswith(b"deleted file mode")
            self._hash.update(line)

    def _inside(self, line: bytes) -> None:
        self._hash.update(line)
        mark = line[:1]
        if mark == b"+":
            self._new -= 1
            self._counts[0] += 1
        elif mark == b"-":
            self._old -= 1
            self._counts[1] += 1
        elif mark != b"\\":
            self._old -= 1
            self._new -= 1

    def _close(self) -> None:
        if self._path is None:
            return
        # Of a file without lines, only the ids identify the content.
        self._hash.update(self._ids)
        self._files.append(
            ChangedFile(
                path=self._path, spans=tuple(self._spans), added=self._counts[0], removed=self._counts[1]
            )
        )
        self._path, self._gone, self._ids = None, False, b""
        self._spans, self._counts = [], [0, 0]

    def _show(self, line: bytes) -> None:
        if self._left <= 0:
            self._whole = False
            return
        text = line.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
        self._whole = self._whole and len(text) <= self._left
        self._text.append(text[: self._left])
        self._left -= len(text)

    def finish(self) -> Patch:
        self._close()
        return Patch(
            sha256=self._hash.hexdigest(),
            files=tuple(self._files),
            text="".join(self._text),
            is_whole=self._whole,
        )


def _path(names: bytes) -> str:
    """Return the path in `a/PATH b/PATH`: both halves have the same length."""
    half = names[: (len(names) - 1) // 2]
    if half.startswith(b'"'):
        half = _ESCAPED.sub(_unescaped, half[1:-1])
    return half.removeprefix(b"a/").decode("utf-8", "replace")


def _unescaped(found: "re.Match[bytes]") -> bytes:
    what = found[1]
    return bytes([int(what, 8)]) if len(what) == 3 else _ESCAPES.get(what, what)


def file_of(files: Sequence[ChangedFile], path: str) -> ChangedFile | None:
    """Return the changed file with this name, also in the quoting of git or a shell."""
    for name in (path, path.removeprefix("./"), re.sub(r"^[ab]/", "", path)):
        for one in files:
            if one.path == name:
                return one
    return None
