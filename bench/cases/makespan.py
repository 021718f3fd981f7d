"""How close the schedule of a random plan comes to the best that any schedule could do."""

import random
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import datetime

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


def case(setting: Setting) -> Iterator[Measurement]:
    """Run random plans and compare what they took with the bound."""
    count = setting.pick(40, 8)
    spans, walls, bounds = [], [], []
    for seed in range(1 if setting.quick else setting.repeats):
        jobs = random_jobs(count, seed)
        yard = Yard(root=setting.folder / f"makespan-{seed}", jobs=jobs, slots=SLOTS).make()
        walls.append(yard.run().wall_s)
        spans.append(_span_s(yard))
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


def _span_s(yard: Yard) -> float:
    database = sqlite3.connect(yard.home / "loopwright.db")
    try:
        began, ended = database.execute("SELECT executed_at, completed_at FROM plans").fetchone()
    finally:
        database.close()
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()
