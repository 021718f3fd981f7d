"""Lay out amounts as bars and as spark lines."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

HEIGHT: Final = 140
"""Of the bars, in pixels."""
_GAP: Final = 0.22
"""The part of a bar's place that stays free."""
_SPARK_WIDTH: Final = 100
SPARK_HEIGHT: Final = 22
_STEPS: Final = (1, 2, 2.5, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One amount: its place in percent of the width, its height in pixels."""

    left: float
    width: float
    top: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A mark on the axis."""

    top: float
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """The chart."""

    bars: tuple[Bar, ...]
    lines: tuple[Line, ...]


def draw_bars(values: Sequence[int]) -> Bars:
    """Return bars beside each other, with marks at round amounts."""
    if not values:
        return Bars(bars=(), lines=())
    step = round_step(max(values))
    highest = step * max(1, -(-max(values) // step))
    place = 100 / len(values)

    def top(value: int) -> float:
        return round(HEIGHT - value / highest * HEIGHT, 1)

    return Bars(
        bars=tuple(
            Bar(
                left=round((n + _GAP / 2) * place, 3),
                width=round((1 - _GAP) * place, 3),
                # An amount above nothing can always be seen.
                top=min(top(value), HEIGHT - 1.5) if value else HEIGHT,
                height=round(HEIGHT - (min(top(value), HEIGHT - 1.5) if value else HEIGHT), 1),
            )
            for n, value in enumerate(values)
        ),
        lines=tuple(Line(top=top(value), value=value) for value in range(0, highest + 1, step)),
    )


def round_step(highest: int) -> int:
    """Return a round amount of which at most four reach the highest one."""
    wanted = max(1, highest) / 4
    power = 1
    while power * 10 <= wanted:
        power *= 10
    return next((int(step * power) for step in _STEPS if int(step * power) >= wanted), power * 10)


def spark(values: Sequence[int]) -> str:
    """Return the points of a line through amounts, from left to right."""
    if not values:
        return ""
    highest = max(*values, 1)
    across = _SPARK_WIDTH / max(1, len(values) - 1)
    free = SPARK_HEIGHT - 2
    return " ".join(
        f"{round(n * across, 2):g},{round(1 + free - value / highest * free, 2):g}"
        for n, value in enumerate(values)
    )
