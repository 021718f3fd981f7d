"""Changes to single lines of a Markdown file that leave every other byte as it is.

Collect changes in a `MarkdownEdits`, then take its `content`. Lines are named by their index in the file that was read,
whatever was changed before. Each change may be made twice: the second time it changes nothing.
"""

import re
from typing import Final

from loopwright.adapters.sources.text.markdown import BOXES, MARKS, Kind, Markdown
from loopwright.adapters.sources.text.titles import one_line
from loopwright.ports import Mark

_FIELD: Final = re.compile(
    r"[ \t]*(?:[-*+][ \t]+)?(?:\*\*|__)?[\w][\w .-]{0,60}?(?:(?:\*\*|__)[ \t]*:|:(?:\*\*|__)|[ \t]*:)[ \t]*"
)
"""The beginning of a line such as `Status: open`, `**Status**: open` or `- **Status:** open`."""
_FRONT_VALUE: Final = re.compile(
    r"(\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'|[^#\s](?:[^#]|(?<!\s)#)*?)?(?=\s*(?:\s#.*)?$)"
)
_PLAIN: Final = re.compile(r"[A-Za-z][\w ./-]*")


class MarkdownEdits:
    """Changes to one file, kept until its new content is wanted."""

    def __init__(self, markdown: Markdown) -> None:
        self._markdown = markdown
        self._texts: dict[int, str] = {}
        self._removed: set[int] = set()
        self._inserted: dict[int, list[str]] = {}

    def text(self, line: int) -> str:
        """Return a line as it is now."""
        return self._texts.get(line, self._markdown.lines[line].text)

    def set_mark(self, line: int, mark: Mark) -> None:
        """Write a mark into the checkbox of a line, unless it says so already in another way, such as `[X]`."""
        if MARKS.get(self._markdown.lines[line].box or "") is not mark:
            self.set_box(line, BOXES[mark])

    def set_box(self, line: int, sign: str) -> None:
        """Write a sign into the checkbox of a line: a form may have its own signs."""
        found = self._markdown.lines[line]
        if found.box is not None:
            text = self.text(line)
            self._texts[line] = f"{text[: found.box_at]}{sign}{text[found.box_at + len(found.box) :]}"

    def annotate(self, line: int, note: str, present: re.Pattern[str]) -> None:
        """Write a note at the end of a line in place of one that matches the pattern; an empty note removes it."""
        text = self.text(line)
        end = len(text.rstrip())
        found = next((one for one in present.finditer(text[:end]) if one.end() == end), None)
        kept = text[: found.start() if found is not None else end].rstrip()
        self.replace(line, f"{kept} {note}{text[end:]}" if note else f"{kept}{text[end:]}")

    def set_value(self, line: int, value: str) -> None:
        """Write the value of a line such as `**Status**: open`; its label keeps its form."""
        text = self.text(line)
        label = _FIELD.match(text)
        if label is not None:
            space = "" if label[0].endswith((" ", "\t")) else " "
            end = text[len(text.rstrip()) :] if text[label.end() :].strip() else ""
            self.replace(line, f"{label[0]}{space}{one_line(value)}{end}")

    def front_value(self, key: str) -> str | None:
        """Return a value of the front matter that is on the line of its key, without its quotes."""
        found = self._front_line(key)
        if found is None:
            return None
        line, at = found
        match = _FRONT_VALUE.match(self.text(line), at)
        value = (match[1] or "") if match is not None else ""
        return value[1:-1] if value[:1] in ("'", '"') and len(value) > 1 else value

    def set_front(self, key: str, value: str) -> None:
        """Write a value into the front matter, in the quotes that are there; a missing key is added at its end."""
        found = self._front_line(key)
        if found is None:
            if self._markdown.front:
                self._inserted.setdefault(self._markdown.front - 1, []).append(f"{key}: {_quoted(value, '')}")
        elif self.front_value(key) != value:
            line, at = found
            text = self.text(line)
            match = _FRONT_VALUE.match(text, at)
            present = (match[1] or "") if match is not None else ""
            self.replace(
                line, f"{text[:at].rstrip()} {_quoted(value, present[:1])}{text[at + len(present) :]}"
            )

    def replace(self, line: int, text: str) -> None:
        """Write another text in place of a line."""
        self._texts[line] = text

    def insert(self, line: int, *texts: str) -> None:
        """Write lines above a line; `len(lines)` means the end of the file."""
        self._inserted.setdefault(line, []).extend(texts)

    def remove(self, line: int) -> None:
        """Remove a line."""
        self._removed.add(line)

    @property
    def content(self) -> bytes:
        """The file with all changes; line endings, a byte order mark and a missing last ending stay as they are."""
        rows: list[tuple[str, str | None]] = []
        count = len(self._markdown.lines)
        for line in range(count + 1):
            rows += [(text, None) for text in self._inserted.get(line, ())]
            if line < count and line not in self._removed:
                rows.append((self.text(line), self._markdown.endings[line]))
        return self._markdown.joined(rows)

    def _front_line(self, key: str) -> tuple[int, int] | None:
        """Return the line of a key of the front matter, and where its value begins."""
        start = re.compile(rf"{re.escape(key)}[ \t]*:(?:[ \t]+|$)")
        for line in range(1, self._markdown.front - 1):
            match = start.match(self.text(line)) if self._markdown.lines[line].kind is Kind.FRONT else None
            if match is not None:
                return line, match.end()
        return None


def _quoted(value: str, quote: str) -> str:
    """Return a value for YAML on one line."""
    value = one_line(value)
    if quote == "'":
        return "'" + value.replace("'", "''") + "'"
    if (
        quote == '"'
        or not _PLAIN.fullmatch(value)
        or value.casefold() in ("null", "true", "false", "yes", "no")
    ):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return value
