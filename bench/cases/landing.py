"""What it costs to land a task in a project with real tests and default settings, beside the bare time of its gate."""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.measure import Measurement, Setting, Target, taken_in_turn
from bench.projects import Project, Runner, now, runners
from bench.yard import Job

CASE = "landing"
SECONDS = 3.0
FIXED_S = 1.5
"""What every plan may take on top, whatever its gate takes."""
COLD, WARM, TEN = 3.2, 2.2, 1.6
MOST_GATES = 2.0
BASE_GATES = (1.0, 0.0)
"""How often the gate runs on the base besides, cold and with a warm baseline."""
PLAN_GATES = 2
"""How often a plan of several tasks runs it besides: on the base, and on its result with the tests of the base."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Took:
    bare_s: tuple[float, float]
    """The gate alone, the first time and again."""
    wall_s: tuple[float, float]
    gates: tuple[int, int]


def case(setting: Setting) -> Iterator[Measurement]:
    """Land one task twice on the same commit, and ten tasks of one plan, with each runner that is installed."""
    found, missing = runners()
    for name in missing:
        setting.say(f"  {name} is not installed: left out")
    for runner in found.values():
        yield from _landed(setting, runner)
    yield from _ten(setting, found["pytest"])


def _landed(setting: Setting, runner: Runner) -> Iterator[Measurement]:
    def once(n: int) -> _Took:
        yard = Project(
            root=setting.folder / f"{runner.name.replace(' ', '')}-{n}",
            jobs=(Job(key="one", seconds=0), Job(key="two", seconds=0)),
            runner=runner,
            seconds=SECONDS,
            plans=2,
        ).make()
        bare = yard.bare_s()
        walls, gates = [], []
        for plan in range(2):
            since = now()
            walls.append(yard.run_plan(plan).wall_s)
            gates.append(yard.full_gates(since))
        yard.remove()
        return _Took(bare_s=bare, wall_s=(walls[0], walls[1]), gates=(gates[0], gates[1]))

    (took,) = taken_in_turn(setting.repeats, (once,))
    for n, (what, limit) in enumerate((("cold", COLD), ("warm baseline", WARM))):
        yield Measurement(
            case=CASE,
            name=f"{runner.name}: one-task plan, {what}, less {FIXED_S:g} s",
            unit="s",
            values=tuple(one.wall_s[n] - FIXED_S for one in took),
            against="the gate alone",
            baseline=tuple(one.bare_s[n] for one in took),
            target=Target(limit=limit, of="ratio"),
            group=f"One-task plan against its bare gate, {what}",
            at=runner.name,
        )
        yield Measurement(
            case=CASE,
            name=f"{runner.name}: full gate runs, base included, {what}",
            unit="",
            values=tuple(float(one.gates[n]) for one in took),
            target=Target(limit=MOST_GATES + BASE_GATES[n], of="value"),
        )


def _ten(setting: Setting, runner: Runner) -> Iterator[Measurement]:
    count = setting.pick(10, 4)

    def once(n: int) -> tuple[float, float, int]:
        jobs = tuple(Job(key=f"t{each}", seconds=0) for each in range(count))
        root = setting.folder / f"ten-{n}"
        yard = Project(root=root, jobs=jobs, runner=runner, seconds=SECONDS).make()
        (_, bare), since = yard.bare_s(), now()
        wall = yard.run_plan(0).wall_s
        gates = yard.full_gates(since)
        yard.remove()
        return wall, bare * count, gates

    (took,) = taken_in_turn(setting.repeats, (once,))
    yield Measurement(
        case=CASE,
        name=f"{runner.name}: plan of {count} tasks",
        unit="s",
        values=tuple(wall for wall, _, _ in took),
        against=f"the gate alone, {count} times",
        baseline=tuple(bare for _, bare, _ in took),
        target=Target(limit=TEN, of="ratio"),
    )
    yield Measurement(
        case=CASE,
        name=f"{runner.name}: full gate runs per landing, plan of {count} tasks",
        unit="",
        values=tuple((gates - PLAN_GATES) / count for _, _, gates in took),
        target=Target(limit=MOST_GATES, of="value"),
    )
