"""How close the schedule of a random plan comes to the best that any schedule could do."""

import random
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from bench.measure import Measurement, Setting, Target
from bench.yard import Job, Yard

CASE = "makespan"
SLOTS = 2
SHAPE = 1.5
"""Of the Pareto distribution: a few tasks take many times the mean."""
LIMIT = 1.08


def random_jobs(count: int, seed: int) -> tuple[Job, ...]:
    """Return a random DAG with heavy-tailed times of about one second on average."""
    chance = random.Random(seed)
    times = [min(chance.paretovariate(SHAPE) / 3, 8.0) for _ in range(count)]
    scale = count / sum(times)
    jobs = []
    for n in range(count):
        before = range(max(0, n - 12), n)
        needs = chance.sample(before, k=min(len(before), chance.choice((0, 0, 1, 1, 2))))
        keys = tuple(f"t{one}" for one in sorted(needs))
        jobs.append(Job(key=f"t{n}", seconds=round(times[n] * scale, 3), needs=keys))
    return tuple(jobs)


def lower_bound(jobs: Sequence[Job], slots: int) -> float:
    """Return what no schedule can beat: the longest chain, or all the work divided among the slots."""
    ends: dict[str, float] = {}
    for job in jobs:  # in an order in which what is needed comes first
        ends[job.key] = max((ends[key] for key in job.needs), default=0.0) + job.seconds
    return max(max(ends.values(), default=0.0), sum(job.seconds for job in jobs) / slots)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """When the agent of a task was at work and when the task was done, in seconds since the dispatch."""

    key: str
    needs: tuple[str, ...]
    start: float
    end: float
    landed: float
    own: float
    """How long its agent works by itself."""


PARTS = {
    "head": "until the first agent starts",
    "agents": "agents beyond their own time: start and end of their processes",
    "turn": "a slot is empty although a task is ready",
    "landing": "a slot is empty while what the next task needs is being checked and landed",
    "shape": "a slot is empty because the plan has nothing to do beside",
    "tail": "from the end of the last agent to the last landing",
}
"""Where the makespan goes beside the agents' own time."""


def parts(work: Sequence[Worked], span: float, slots: int) -> dict[str, float]:
    """Take a makespan apart; the parts, with the agents' own time divided by the slots, add up to it."""
    landed = {one.key: one.landed for one in work}
    ended = {one.key: one.end for one in work}
    first, last = min(one.start for one in work), max(one.end for one in work)
    found = dict.fromkeys(PARTS, 0.0)
    found["head"], found["tail"] = first, span - last
    found["agents"] = sum(one.end - one.start - one.own for one in work) / slots
    moments = sorted({at for one in work for at in (one.start, one.end, one.landed) if first <= at <= last})
    for begin, end in pairwise(moments):
        now = (begin + end) / 2
        idle = slots - sum(one.start <= now < one.end for one in work)
        unmet = [[key for key in one.needs if landed[key] > now] for one in work if one.start > now]
        ready = sum(not keys for keys in unmet)
        soon = sum(bool(keys) and all(ended[key] <= now for key in keys) for keys in unmet)
        for why, many in (("turn", ready), ("landing", soon), ("shape", slots)):
            taken = min(max(idle, 0), many)
            found[why] += taken * (end - begin) / slots
            idle -= taken
    return found


def case(setting: Setting) -> Iterator[Measurement]:
    """Run random plans and compare what they took with the bound."""
    count = setting.pick(40, 8)
    spans, walls, bounds, apart = [], [], [], []
    for seed in range(1 if setting.quick else setting.repeats):
        jobs = random_jobs(count, seed)
        yard = Yard(root=setting.folder / f"makespan-{seed}", jobs=jobs, slots=SLOTS).make()
        walls.append(yard.run().wall_s)
        span = _span_s(yard)
        spans.append(span)
        apart.append(parts(_worked(yard, jobs), span, SLOTS))
        bounds.append(lower_bound(jobs, SLOTS))
        yard.remove()
    yield Measurement(
        case=CASE,
        name=f"makespan of {count} tasks of 1 s on average, heavy-tailed, from dispatch to the last landing",
        unit="s",
        values=tuple(spans),
        against="max(critical path, work / slots)",
        baseline=tuple(bounds),
        target=Target(limit=LIMIT, of="ratio"),
    )
    yield Measurement(
        case=CASE,
        name="the same with the start of the process, the complete gate and the receipt",
        unit="s",
        values=tuple(walls),
        against="max(critical path, work / slots)",
        baseline=tuple(bounds),
    )
    for part, says in PARTS.items():
        values = tuple(one[part] for one in apart)
        yield Measurement(case=CASE, name=f"of the makespan: {says}", unit="s", values=values)


def _span_s(yard: Yard) -> float:
    with closing(sqlite3.connect(yard.home / "loopwright.db")) as database:
        began, ended = database.execute("SELECT executed_at, completed_at FROM plans").fetchone()
    return _seconds(began, ended)


def _worked(yard: Yard, jobs: Sequence[Job]) -> list[Worked]:
    """Read from the rows when each agent was at work and when its task was done."""
    own = {job.key: job for job in jobs}
    with closing(sqlite3.connect(yard.home / "loopwright.db")) as database:
        (began,) = database.execute("SELECT executed_at FROM plans").fetchone()
        rows = database.execute(
            "SELECT tasks.key, runs.started_at, runs.ended_at, tasks.completed_at FROM runs"
            " JOIN tasks ON tasks.id = runs.task_id WHERE runs.role = 'implementer'"
        ).fetchall()
    return [
        Worked(
            key=key,
            needs=own[key].needs,
            start=_seconds(began, started),
            end=_seconds(began, ended),
            landed=_seconds(began, landed),
            own=own[key].seconds,
        )
        for key, started, ended, landed in rows
    ]


def _seconds(began: str, ended: str) -> float:
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()
