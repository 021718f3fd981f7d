"""Aligned lines for people: plain text that survives a pipe, a narrow terminal and a log file."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text


def columns(
    rows: Sequence[Sequence[str]], *, indent: str = "  ", gap: str = "  ", most: int = 1000
) -> list[str]:
    """Return rows as lines whose columns stand under each other; the last column may be of any length.

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
    """A paragraph that is wrapped between words on a terminal, and left whole in a file."""

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
        lines = self._text.wrap(console, max(8, options.max_width - len(self._indent)), no_wrap=False)
        for n, line in enumerate(lines):
            line.rstrip()
            yield Text.assemble(self._indent if n else self._head, line)
