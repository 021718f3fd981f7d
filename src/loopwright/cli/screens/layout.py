"""Tables and paragraphs that fit where they are printed: on a narrow terminal less is shown, never a torn line."""

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

_WIDE = 240
"""How wide a table may get where no terminal sets a limit."""

_GAP = 2
_LEAST_LAST = 16
"""With less room, the last column is not worth showing."""
_LEAST_TITLE = 16
"""So much of a title is shown before whole columns give way to it."""


def one_line(text: str, style: str = "") -> Text:
    """Return a text that is cut, not wrapped, where the line ends."""
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


class Roomy:
    """Gives a table all the room it wants if the output is not a terminal: a log may be wider than 80 columns."""

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
        self._fit(widths, shown, room)
        return [self._line(row, widths, shown, room) for row in self._rows]

    def _fit(self, widths: list[int], shown: list[int], room: int) -> None:
        for column in self._spare:
            if _needed(widths, shown) > room and column in shown:
                shown.remove(column)
        over = _needed(widths, shown) - room
        if over > 0 and self._cut in shown[:-1]:
            widths[self._cut] = max(8, widths[self._cut] - over)

    def _line(self, row: Sequence[Text], widths: Sequence[int], shown: Sequence[int], room: int) -> Text:
        line = Text()
        for n in shown:
            cell = row[n].copy()
            if n == shown[-1] and n in self._right:
                cell = Text.assemble(" " * (widths[n] - cell.cell_len), cell)
            elif n != shown[-1]:
                cell.truncate(widths[n], overflow="ellipsis")
                blank = " " * (widths[n] - cell.cell_len)
                cell = Text.assemble(blank, cell) if n in self._right else Text.assemble(cell, blank)
                cell.append(" " * _GAP)
            line.append_text(cell)
        line.rstrip()
        line.truncate(room, overflow="ellipsis")
        return line


def _needed(widths: Sequence[int], shown: Sequence[int], *, whole: bool = False) -> int:
    """Return the room that columns need, with the last of them whole or as short as it may get."""
    if not shown:
        return 0
    last = widths[shown[-1]] if whole else min(widths[shown[-1]], _LEAST_LAST)
    return sum(widths[n] + _GAP for n in shown[:-1]) + last


class RowsWithNotes(Rows):
    """Aligned lines whose last column is a note. A note without room gets its own line, or is left out."""

    def __init__(
        self,
        rows: Sequence[Sequence[Text]],
        *,
        kept: Sequence[bool],
        spare: Sequence[int],
        cut: int,
        right: Sequence[int] = (),
    ) -> None:
        """Take rows of equal length; `kept` says of each whether its note is never left out."""
        super().__init__([row[:-1] for row in rows], spare=spare, cut=cut, right=right)
        self._notes = [row[-1] for row in rows]
        self._kept = kept

    def lines(self, room: int) -> list[Text]:
        """Return the rows as lines of at most so many columns."""
        found: list[Text] = []
        start = max((line.cell_len for line in super().lines(room)), default=0) + _GAP
        for line, note, kept in zip(super().lines(room), self._notes, self._kept, strict=True):
            left = room - start
            if note.cell_len <= left or (not kept and left >= _LEAST_LAST):
                line.append(" " * (start - line.cell_len)).append_text(note)
                line.rstrip()
                line.truncate(room, overflow="ellipsis")
                found.append(line)
            elif kept:
                below = Text("    ").append_text(note)
                below.truncate(room, overflow="ellipsis")
                found += [line, below]
            else:
                found.append(line)
        return found

    def _fit(self, widths: list[int], shown: list[int], room: int) -> None:
        """Shorten names first: time and cost are worth more than the end of a title."""
        over = _needed(widths, shown, whole=True) - room
        if over > 0:
            widths[self._cut] = max(min(_LEAST_TITLE, widths[self._cut]), widths[self._cut] - over)
        for column in self._spare:
            if _needed(widths, shown, whole=True) > room and column in shown:
                shown.remove(column)
        over = _needed(widths, shown, whole=True) - room
        if over > 0:
            widths[self._cut] = max(8, widths[self._cut] - over)
