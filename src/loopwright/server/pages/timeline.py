"""Lay out attempts and runs in time: a Gantt chart in percent of the width."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from loopwright.services.dashboard.plan import AttemptSpan, TaskSpans

_NARROWEST: Final = 0.35
"""A bar is at least this wide, in percent, so that a short run can be seen and clicked."""
_STEPS_S: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One run, or a wait between two runs."""

    kind: str
    """The role of the run, or `wait`."""
    left: float
    width: float
    label: str
    run_id: str = ""
    failed: bool = False
    live: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One attempt."""

    n: int
    state: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One task."""

    task_id: str
    key: str
    title: str
    lanes: tuple[Lane, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A mark on the axis."""

    left: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The chart."""

    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]


def draw(tasks: Sequence[TaskSpans], now: datetime) -> Timeline:
    """Return the chart of all attempts that began."""
    begun = [task for task in tasks if task.attempts]
    starts = [attempt.began_at for task in begun for attempt in task.attempts]
    if not starts:
        return Timeline(rows=(), ticks=())
    first = min(starts)
    ends = [attempt.ended_at or now for task in begun for attempt in task.attempts]
    whole = max(1.0, (max(ends) - first).total_seconds())
    rows = tuple(
        Row(
            task_id=task.task_id,
            key=task.key,
            title=task.title,
            lanes=tuple(_lane(one, first, whole, now) for one in task.attempts),
        )
        for task in begun
    )
    return Timeline(rows=rows, ticks=_ticks(whole))


def _lane(attempt: AttemptSpan, first: datetime, whole: float, now: datetime) -> Lane:
    bars: list[Bar] = []
    free_at = attempt.began_at
    for run in sorted(attempt.runs, key=lambda one: one.began_at):
        if (run.began_at - free_at).total_seconds() > whole / 200:
            bars.append(_bar("wait", free_at, run.began_at, first, whole))
        ended = run.ended_at or now
        bars.append(
            _bar(
                run.role.value,
                run.began_at,
                ended,
                first,
                whole,
                run_id=run.run_id,
                failed=run.state.value == "ERROR",
                live=run.ended_at is None,
            )
        )
        free_at = max(free_at, ended)
    if attempt.ended_at is None and (now - free_at).total_seconds() > whole / 200:
        bars.append(_bar("wait", free_at, now, first, whole))
    return Lane(n=attempt.n, state=attempt.state.value, bars=tuple(bars))


def _bar(
    kind: str,
    began: datetime,
    ended: datetime,
    first: datetime,
    whole: float,
    *,
    run_id: str = "",
    failed: bool = False,
    live: bool = False,
) -> Bar:
    left = max(0.0, (began - first).total_seconds() / whole * 100)
    seconds = max(0.0, (ended - began).total_seconds())
    return Bar(
        kind=kind,
        left=round(left, 3),
        width=round(max(_NARROWEST, seconds / whole * 100), 3),
        label=f"{kind} {duration(seconds)}",
        run_id=run_id,
        failed=failed,
        live=live,
    )


def _ticks(whole: float) -> tuple[Tick, ...]:
    step = next((one for one in _STEPS_S if whole / one <= 8), _STEPS_S[-1])
    marks = range(0, int(whole) + 1, step)
    return tuple(Tick(left=round(at / whole * 100, 3), label=duration(at)) for at in marks)


def duration(seconds: float) -> str:
    """Return a length of time in words, such as `2 m 5 s`."""
    whole = int(timedelta(seconds=seconds).total_seconds())
    if seconds < 10 and seconds != whole:
        return f"{seconds:.1f} s"
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} m {rest} s" if rest else f"{minutes} m"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} m" if minutes else f"{hours} h"
    return f"{hours // 24} d {hours % 24} h"
