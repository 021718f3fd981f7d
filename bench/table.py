"""Measurements as a table: plain text for the terminal, Markdown for the documentation. Pure."""

from collections.abc import Sequence

from bench.measure import Measurement

HEADINGS = ("figure", "value", "spread", "baseline", "ratio", "target", "")


def number(value: float) -> str:
    """Return a number with three significant digits."""
    size = abs(value)
    if size >= 100:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    if size >= 1:
        return f"{value:.2f}"
    return f"{value:.3f}"


def row(one: Measurement) -> tuple[str, ...]:
    """Return the cells of one figure."""
    low, high = one.spread
    unit = f" {one.unit}" if one.unit else ""
    base = "" if one.base is None else f"{number(one.base)}{unit} ({one.against})"
    target = ""
    if one.target is not None:
        shown = number(one.target.limit)
        target = f"≤ {shown}{unit}" if one.target.of == "value" else f"ratio ≤ {shown}"
    return (
        one.name,
        f"{number(one.value)}{unit}",
        f"{number(low)} … {number(high)} ({len(one.values)})" if len(one.values) > 1 else "(1)",
        base,
        "" if one.ratio is None else number(one.ratio),
        target,
        "" if one.met is None else "met" if one.met else "**missed**",
    )


def text(measurements: Sequence[Measurement]) -> str:
    """Return the table for a terminal."""
    rows = [HEADINGS, *(row(one) for one in measurements)]
    rows = [tuple(cell.replace("**", "") for cell in cells) for cells in rows]
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(HEADINGS))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
        for cells in rows
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def markdown(measurements: Sequence[Measurement]) -> str:
    """Return the table for a page."""
    lines = [_line(HEADINGS), _line(("---",) * len(HEADINGS))]
    lines += [_line(row(one)) for one in measurements]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
