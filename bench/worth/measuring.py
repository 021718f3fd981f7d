"""Play every way of working, and again at both ends of every assumption."""

from collections.abc import Mapping
from dataclasses import asdict
from multiprocessing import get_context
from typing import Any, Final

from bench.worth import switches
from bench.worth.assumptions import known, values
from bench.worth.ways import BASELINES, WAYS, Result, played

SENSITIVE: Final = (
    "one plain agent",
    "Ralph loop, until the checks pass",
    "Loopwright, defaults",
    "everything",
)
"""The ways that are compared at both ends of every assumption."""
_Job = tuple[str, tuple[tuple[str, float], ...], int]


def document(*, tasks: int, sensitivity_tasks: int, projects: int, jobs: int) -> dict[str, Any]:
    """Return everything that the page shows."""
    ways = [*BASELINES, *WAYS]
    ends = [(one.name, end) for one in known() for end in (one.low, one.high)]
    work: list[_Job] = [(way, (), tasks) for way in ways]
    work += [(way, (), sensitivity_tasks) for way in SENSITIVE]
    work += [(way, (end,), sensitivity_tasks) for end in ends for way in SENSITIVE]
    if jobs == 1:
        results = [_play(one) for one in work]
    else:
        with get_context("spawn").Pool(jobs) as pool:
            results = pool.map(_play, work, chunksize=1)
    table, rest = results[: len(ways)], results[len(ways) :]
    width = len(SENSITIVE)
    groups = [dict(zip(SENSITIVE, rest[at : at + width], strict=True)) for at in range(0, len(rest), width)]
    lessons = list(switches.lessons(tasks=tasks // 4, projects=projects))
    steps = list(switches.steps(projects=max(2, tasks // 80)))
    return {
        "tasks": tasks,
        "ways": {way: asdict(one) for way, one in zip(ways, table, strict=True)},
        "middle": _shown(groups[0]),
        "ends": [
            {"name": name, "value": value, **_shown(group)}
            for (name, value), group in zip(ends, groups[1:], strict=True)
        ],
        "lessons": [asdict(one) for one in lessons],
        "steps": [asdict(one) for one in steps],
    }


def _play(job: _Job) -> Result:
    way, changed, tasks = job
    return played(way, values(**dict(changed)), tasks=tasks)


def _shown(group: Mapping[str, Result]) -> dict[str, Any]:
    return {"false_done": [group[one].false_done for one in SENSITIVE]} | {
        "per_dollar": [group[one].per_dollar for one in SENSITIVE]
    }
