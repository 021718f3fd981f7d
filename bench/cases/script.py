"""Many small tasks with a real pytest gate, beside a `make -j2` script with worktrees and the same commands."""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.cases.keeper import starter_cpu_s
from bench.measure import Measurement, Setting, Target, taken_in_turn
from bench.meter import Metered
from bench.projects import ROOT, Project
from bench.yard import independent

CASE = "script"
WALL, CPU, PEAK_MB, OWN_MS = 1.6, 2.0, 150.0, 400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """Processor seconds of one run of the product, by what they were for."""

    orchestrator: float
    keepers: float
    gates: float
    """The gates' commands, with our program that runs them."""
    agents: float
    git: float

    @property
    def own(self) -> float:
        """What is neither agents nor gates."""
        return self.orchestrator + self.keepers + self.git


def cpu_of(took: Metered, roles: dict[int, str], starter_s: float) -> Cpu:
    """Sort the processor time of a run by what it was for.

    The starting half of a keeper is a child of the orchestrator, as git is: what `starter_s` of them took is
    counted for keepers, and the rest of the orchestrator's children is git. What no keeper of a plan's run ran is the
    check of the base before the plan.
    """
    agents = [one for one in took.others if roles.get(one.pid) == "implementer"]
    gates = [one for one in took.others if one not in agents]
    starters = starter_s * (len(agents) + len(gates))
    return Cpu(
        orchestrator=took.main.own_cpu_s,
        keepers=starters + sum(one.own_cpu_s for one in (*agents, *gates)),
        gates=sum(one.below_cpu_s for one in gates),
        agents=sum(one.below_cpu_s for one in agents),
        git=max(0.0, took.main.below_cpu_s - starters),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    took: Metered
    cpu: Cpu | None = None


def case(setting: Setting) -> Iterator[Measurement]:
    """Do the same tasks with the product and with the script, alternately."""
    count = setting.pick(50, 10)
    starter_s = starter_cpu_s(setting.place("starters"), setting.pick(100, 20))

    def product(n: int) -> _Run:
        yard = Project(root=setting.folder / f"product-{n}", jobs=independent(count, 0)).make()
        took = yard.run_plan(0)
        cpu = cpu_of(took, yard.roles(), starter_s)
        for command, size in took.memory_parts:
            setting.say(f"  at the peak: {size / 1e6:6.1f} MB  {command.replace(str(ROOT), '.')[:100]}")
        yard.remove()
        return _Run(took=took, cpu=cpu)

    def script(n: int) -> _Run:
        yard = Project(root=setting.folder / f"script-{n}", jobs=independent(count, 0)).make()
        took = yard.baseline()
        yard.remove()
        return _Run(took=took)

    ours, theirs = taken_in_turn(setting.repeats, (product, script))
    label = f"{count} pytest tasks, 2 slots"

    def beside(name: str, unit: str, mine: list[float], other: list[float], target: Target) -> Measurement:
        return Measurement(
            case=CASE,
            name=f"{name}, {label}",
            unit=unit,
            values=tuple(mine),
            against="make -j2 script",
            baseline=tuple(other),
            target=target,
            group="Plan of pytest tasks against make -j2",
            at=name,
        )

    wall, cpu = Target(limit=WALL, of="ratio"), Target(limit=CPU, of="ratio")
    yield beside("wall time", "s", [r.took.wall_s for r in ours], [r.took.wall_s for r in theirs], wall)
    yield beside("CPU", "s CPU", [r.took.cpu_s for r in ours], [r.took.cpu_s for r in theirs], cpu)
    yield beside(
        "peak memory",
        "MB",
        [r.took.memory_bytes / 1e6 for r in ours],
        [r.took.memory_bytes / 1e6 for r in theirs],
        Target(limit=PEAK_MB, of="value"),
    )
    shares = [one.cpu for one in ours if one.cpu]
    yield _per_task(
        "outside gates and agents", [one.own for one in shares], count, Target(limit=OWN_MS, of="value")
    )
    yield _per_task("of the orchestrator with its start", [one.orchestrator for one in shares], count)
    yield _per_task("of git", [one.git for one in shares], count)
    yield _per_task("of keepers", [one.keepers for one in shares], count)
    yield _per_task("of gates", [one.gates for one in shares], count)


def _per_task(name: str, values: list[float], count: int, target: Target | None = None) -> Measurement:
    each = tuple(value / count * 1000 for value in values)
    return Measurement(case=CASE, name=f"CPU {name}, per task", unit="ms CPU", values=each, target=target)
