"""What it costs that a gate cannot be bent: gate runs and processor time of a task, with and without."""

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from bench.measure import Measurement, Setting, Target, taken_in_turn
from bench.meter import Metered
from bench.yard import Yard, independent

CASE = "integrity"
SECONDS = 0.1
TEST = """import unittest


class Case(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(1 + 1, 2)
"""
RUNNER = f"{sys.executable} -B -m unittest discover -q -s tests"
HIDDEN = "sh check.sh"
"""The same behind a script, where nothing of ours is loaded by the test runner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested(Yard):
    """A repository with a test file for each task, which the task may change or not."""

    watched: bool

    def make(self) -> Yard:
        """Create everything, with tests."""
        Yard.make(self)
        (self.repository / "tests").mkdir()
        for job in self.jobs:
            (self.repository / "tests" / f"test_{job.key}.py").write_text(TEST)
        (self.repository / "check.sh").write_text(f"exec {RUNNER}\n")
        self.git("add", "-A")
        self.git("commit", "-qm", "tests")
        return self

    def plan(self) -> dict[str, Any]:
        """Return the plan file: with everything that guards the gate, or with as little of it as can be."""
        plan = Yard.plan(self)
        plan["gates"] = [{"name": "whole", "run": RUNNER if self.watched else HIDDEN}]
        if not self.watched:
            plan["settings"]["gate_files"] = ["!**"]
        return plan


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    runs: Counter[str]
    cpu_ms: float


def case(setting: Setting) -> Iterator[Measurement]:
    """Do the same plan without integrity, with it, and with tasks that each change a test that was there."""
    count = setting.pick(20, 4)

    def way(name: str, *, watched: bool, edits: bool) -> "_Way":
        return _Way(setting=setting, name=name, count=count, watched=watched, edits=edits)

    ways = (
        way("off", watched=False, edits=False),
        way("on", watched=True, edits=False),
        way("off-edits", watched=False, edits=True),
        way("on-edits", watched=True, edits=True),
        replace(way("red", watched=True, edits=False), red_proof="logic"),
    )
    off, on, off_edits, on_edits, red = taken_in_turn(1 if setting.quick else setting.repeats, ways)
    for what, mine, theirs, most in (
        ("tasks that leave the gate's files alone", on, off, 1.0),
        ("tasks that each change a test", on_edits, off_edits, 2.0),
    ):
        yield Measurement(
            case=CASE,
            name=f"gate runs per task, {what}",
            unit="",
            values=tuple(one.runs["gate"] / count for one in mine),
            against="without integrity",
            baseline=tuple(one.runs["gate"] / count for one in theirs),
            target=Target(limit=most, of="value"),
        )
        yield Measurement(
            case=CASE,
            name=f"processor time per task, {what}",
            unit="ms",
            values=tuple(one.cpu_ms / count for one in mine),
            against="without integrity",
            baseline=tuple(one.cpu_ms / count for one in theirs),
        )
    yield Measurement(
        case=CASE,
        name="acceptance run without the work, per task",
        unit="",
        values=tuple((one.runs["baseline"] - 1) / count for one in red),
        against="red_proof off",
        baseline=tuple((one.runs["baseline"] - 1) / count for one in on),
        target=Target(limit=1.0, of="value"),
    )
    yield Measurement(
        case=CASE,
        name="processor time per task, acceptance run without the work",
        unit="ms",
        values=tuple(one.cpu_ms / count for one in red),
        against="red_proof off",
        baseline=tuple(one.cpu_ms / count for one in on),
    )
    yield Measurement(
        case=CASE,
        name="gate runs per plan, on the tree that it starts from",
        unit="",
        values=tuple(float(one.runs["baseline"]) for one in on),
        against="without integrity",
        baseline=tuple(float(one.runs["baseline"]) for one in off),
        target=Target(limit=1.0, of="value"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    setting: Setting
    name: str
    count: int
    watched: bool
    edits: bool
    red_proof: str = "off"

    def __call__(self, n: int) -> _Run:
        jobs = independent(self.count, SECONDS)
        if self.edits:
            jobs = tuple(replace(one, edits=f"tests/test_{one.key}.py") for one in jobs)
        yard = Tested(
            root=self.setting.folder / f"{self.name}-{n}",
            jobs=jobs,
            watched=self.watched,
            red_proof=self.red_proof,
        )
        took = yard.make().run()
        found = _Run(runs=Counter(yard.roles().values()), cpu_ms=cpu_ms(took))
        yard.remove()
        return found


def cpu_ms(took: Metered) -> float:
    """Return the processor time of everything that ran; the agents sleep."""
    return sum(one.own_cpu_s + one.below_cpu_s for one in (took.main, *took.others)) * 1000
