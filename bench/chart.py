"""Measurements as a picture: one panel of horizontal bars per group, ratios on one scale. Pure: data in, SVG out."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from bench.measure import Measurement
from bench.table import number

WIDTH = 880
LEFT = 300
RIGHT = 130
BAR = 16
GAP = 8
HEAD = 46
PAD = 24
INK = "#24292f"
FAINT = "#6e7781"
LINE = "#d0d7de"
GOOD = "#2f81b7"
BAD = "#c4572b"
PLAIN = "#8aa4b8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One ratio."""

    label: str
    ratio: float
    limit: float | None

    @property
    def colour(self) -> str:
        """Blue within its target, orange beyond it, grey without one."""
        if self.limit is None:
            return PLAIN
        return GOOD if self.ratio <= self.limit else BAD


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """The bars of one group."""

    title: str
    bars: tuple[Bar, ...]

    @property
    def height(self) -> int:
        """How much room it takes."""
        return HEAD + len(self.bars) * (BAR + GAP) + PAD


def panels(measurements: Sequence[Measurement]) -> list[Panel]:
    """Return what there is to draw, in order."""
    titles = dict.fromkeys(one.group for one in measurements if one.group and one.ratio is not None)
    found = []
    for title in titles:
        bars = tuple(
            Bar(
                label=one.at,
                ratio=one.ratio,
                limit=one.target.limit if one.target and one.target.of == "ratio" else None,
            )
            for one in measurements
            if one.group == title and one.ratio is not None
        )
        found.append(Panel(title=title, bars=bars))
    return found


def svg(measurements: Sequence[Measurement], *, title: str) -> str:
    """Return the picture."""
    drawn = panels(measurements)
    height = 44 + sum(panel.height for panel in drawn)
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
            f'height="{height}" font-family="system-ui, sans-serif" font-size="13" role="img" '
            f'aria-label="{escape(title)}">'
        ),
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="20" y="28" font-size="16" font-weight="600" fill="{INK}">{escape(title)}</text>',
    ]
    top = 44
    for panel in drawn:
        parts += _panel(panel, top)
        top += panel.height
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel, top: int) -> list[str]:
    room = WIDTH - LEFT - RIGHT
    largest = max((max(bar.ratio, bar.limit or 0) for bar in panel.bars), default=1.0)
    scale = room / max(largest * 1.05, 1.2)
    floor = top + HEAD + len(panel.bars) * (BAR + GAP)
    one = LEFT + scale
    parts = [
        f'<text x="20" y="{top + 24}" font-weight="600" fill="{INK}">{escape(panel.title)}</text>',
        (
            f'<line x1="{one:.1f}" y1="{top + HEAD - 6}" x2="{one:.1f}" y2="{floor}" stroke="{FAINT}" '
            'stroke-dasharray="3 3"/>'
        ),
        f'<text x="{one:.1f}" y="{floor + 13}" text-anchor="middle" font-size="11" fill="{FAINT}">1</text>',
        f'<line x1="{LEFT}" y1="{top + HEAD - 6}" x2="{LEFT}" y2="{floor}" stroke="{LINE}"/>',
    ]
    for n, bar in enumerate(panel.bars):
        y = top + HEAD + n * (BAR + GAP)
        length = max(bar.ratio * scale, 1.0)
        parts.append(
            f'<text x="{LEFT - 10}" y="{y + 12}" text-anchor="end" fill="{INK}">{escape(bar.label)}</text>'
        )
        parts.append(
            f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR}" rx="2" fill="{bar.colour}"/>'
        )
        told = number(bar.ratio)
        after = LEFT + length
        if bar.limit is not None:
            x = LEFT + bar.limit * scale
            after = max(after, x)
            told += f"  (target {number(bar.limit)})"
            parts.append(
                f'<line x1="{x:.1f}" y1="{y - 3}" x2="{x:.1f}" y2="{y + BAR + 3}" stroke="{INK}" '
                'stroke-width="2"/>'
            )
        parts.append(f'<text x="{after + 8:.1f}" y="{y + 12}" fill="{INK}">{escape(told)}</text>')
    return parts
