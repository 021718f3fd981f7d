"""Aligned lines for people: plain text that survives a pipe, a narrow terminal and a log file."""

from collections.abc import Sequence

from rich.cells import cell_len


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
