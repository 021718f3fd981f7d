"""Aligned lines and local times for people: plain text that survives a pipe, a narrow terminal and a log file."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

# Times as people read them: on the clock of this machine. JSON has them in UTC.

_SAID: Final = re.compile(r"\b(\d{4}-\d\d-\d\d \d\d:\d\d)(:\d\d)? UTC\b")


def local_time(at: datetime, *, seconds: bool = True) -> str:
    """Return a time on the clock of this machine."""
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S}" if seconds else f"{at.astimezone():%Y-%m-%d %H:%M}"


def in_local_time(text: str) -> str:
    """Return a text with its UTC times on the clock of this machine."""

    def there(found: re.Match[str]) -> str:
        at = datetime.fromisoformat(found[1] + (found[2] or "")).replace(tzinfo=UTC)
        return local_time(at, seconds=found[2] is not None)

    return _SAID.sub(there, text)


_COMMAND: Final = re.compile(
    r"`[^`\n]+`|(?:(?<=^)|(?<=: )|(?<=  ))(?:loopwright|git|cd|pip|npm) .+?"
    r"(?=  |[;,](?: |$)|[.]?$| (?:and|or|if|unless|then|to|for|does|shows|lists) )",
    re.MULTILINE,
)
"""A command in a sentence: in backticks, or bare at the beginning, after a colon or after a gap."""
_JOINT: Final = "\ue000"
"""A letter that no text has, in the place of a blank at which no line may end."""
_WORD: Final = re.compile(r"\s*\S+\s*")


def columns(
    rows: Sequence[Sequence[str]], *, indent: str = "  ", gap: str = "  ", most: int = 1000
) -> list[str]:
    """Return rows as lines with aligned columns; the last column may be of any length.

    A cell that is wider than `most` pushes its own line aside, and not those of the others.
    """
    inner = [row[:-1] for row in rows]
    widths = [
        max((width for cell in column if (width := cell_len(cell)) <= most), default=0)
        for column in zip(*inner, strict=True)
    ]
    return [indent + gap.join([*_padded(row[:-1], widths), row[-1]]).rstrip() for row in rows]


def _padded(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [cell + " " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=True)]


class Wrapped:
    """A paragraph that is wrapped between words on a terminal, and left whole in a file.

    A command stays on one line, so that you can copy it. One that is wider than the terminal begins its own line.
    """

    def __init__(self, text: Text, *, indent: str = "", head: Text | None = None) -> None:
        """Take a text; what does not fit the first line is indented, as far as its head is wide if it has one."""
        self._text = text
        self._head = head or Text()
        self._indent = " " * head.cell_len if head else indent

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines."""
        if not console.is_terminal:
            yield Text.assemble(self._head, self._text)
            return
        room = max(8, options.max_width - len(self._indent))
        for n, line in enumerate(one for part in self._text.split("\n") for one in _wrapped(part, room)):
            line.rstrip()
            yield Text.assemble(self._indent if n else self._head, line)


def _wrapped(text: Text, room: int) -> Iterable[Text]:
    """Break a line between words, and in no command; only other words that are too wide are broken."""
    joined = _COMMAND.sub(lambda found: found[0].replace(" ", _JOINT), text.plain)
    breaks, width = [], 0
    for word in _WORD.finditer(joined):
        wide = cell_len(word[0].rstrip())
        if width and width + wide > room:
            breaks.append(word.start())
            width = 0
        if wide > room and _JOINT not in word[0] and "`" not in word[0]:
            breaks += range(word.start() + room, word.start() + wide, room)
        width += cell_len(word[0])
    return text.divide(breaks)
