"""Tables and paragraphs that fit where they are printed: on a narrow terminal less is shown, never a torn line."""

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

_WIDE = 240
"""How wide a table may get where nobody's terminal sets a limit."""

_GAP = 2
_LEAST_LAST = 16
"""Less room for the last column tells nothing."""


def one_line(text: str, style: str = "") -> Text:
    """Return a text that is cut, not wrapped, where the line ends."""
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


class Roomy:
    """Gives a table the room it wants where the output is no terminal: a log is not 80 columns wide."""

    def __init__(self, content: RenderableType) -> None:
        self._content = content

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render with the terminal's width if there is one."""
        if console.is_terminal:
            yield self._content
            return
        wide = options.update(width=max(_WIDE, options.max_width))
        for line in console.render_lines(self._content, wide, pad=False):
            # The blanks that fill up a table's last column are of no use in a file.
            text = Text.assemble(*((one.text, one.style or "") for one in line))
            text.rstrip()
            yield text


class Rows:
    """Aligned lines. Where there is no room, whole columns give way; then names are cut, and what is said last."""

    def __init__(
        self,
        rows: Sequence[Sequence[Text]],
        *,
        spare: Sequence[int],
        cut: int,
        right: Sequence[int] = (),
    ) -> None:
        """Take rows of equal length; `spare` columns go first to last, `cut` is the one that may be shortened."""
        self._rows = rows
        self._spare = spare
        self._cut = cut
        self._right = right

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield one line for each row, none of them wider than there is room."""
        room = options.max_width if console.is_terminal else max(_WIDE, options.max_width)
        yield from self.lines(room)

    def lines(self, room: int) -> list[Text]:
        """Return the rows as lines of at most so many columns."""
        if not self._rows:
            return []
        widths = [max(cell.cell_len for cell in column) for column in zip(*self._rows, strict=True)]
        shown = [n for n, width in enumerate(widths) if width]
        for column in self._spare:
            if _needed(widths, shown) > room and column in shown:
                shown.remove(column)
        over = _needed(widths, shown) - room
        if over > 0 and self._cut in shown[:-1]:
            widths[self._cut] = max(8, widths[self._cut] - over)
        return [self._line(row, widths, shown, room) for row in self._rows]

    def _line(self, row: Sequence[Text], widths: Sequence[int], shown: Sequence[int], room: int) -> Text:
        line = Text()
        for n in shown:
            cell = row[n].copy()
            if n != shown[-1]:
                cell.truncate(widths[n], overflow="ellipsis")
                blank = " " * (widths[n] - cell.cell_len)
                cell = Text.assemble(blank, cell) if n in self._right else Text.assemble(cell, blank)
                cell.append(" " * _GAP)
            line.append_text(cell)
        line.rstrip()
        line.truncate(room, overflow="ellipsis")
        return line


def _needed(widths: Sequence[int], shown: Sequence[int]) -> int:
    if not shown:
        return 0
    last = min(widths[shown[-1]], _LEAST_LAST)
    return sum(widths[n] + _GAP for n in shown[:-1]) + last


class Wrapped:
    """A paragraph that is wrapped between words on a terminal, and left whole in a file."""

    def __init__(self, text: Text, *, indent: str = "") -> None:
        """Take a text; what does not fit the first line is indented."""
        self._text = text
        self._indent = indent

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines."""
        if not console.is_terminal:
            yield self._text
            return
        lines = self._text.wrap(console, max(8, options.max_width - len(self._indent)), no_wrap=False)
        for n, line in enumerate(lines):
            line.rstrip()
            yield Text.assemble(self._indent * bool(n), line)
