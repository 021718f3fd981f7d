"""What the product adds to a task: against a shell script under make, and against the bare time of the agents."""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.cases.keeper import starter_cpu_s
from bench.measure import Measurement, Setting, Target, taken_in_turn
from bench.meter import Metered
from bench.yard import Yard, independent

CASE = "overhead"
FULL = ((1, 0.1), (10, 0.1), (50, 0.1), (200, 0.1), (1, 1.0), (10, 1.0), (50, 1.0), (200, 1.0))
QUICK = ((1, 0.1), (10, 0.1), (10, 1.0))
WALL_TARGETS = {(50, 1.0): 1.10, (50, 0.1): 1.6}
CPU_MS = 80.0
PEAK_MB = 130.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """Processor seconds of one run of the product, by what they were for."""

    orchestrator: float
    keepers: float
    gate_runners: float
    """Our program that runs the gate's commands, with those commands, which are `test` and `true`."""
    agents: float
    git: float

    @property
    def added(self) -> float:
        """What is ours: without agents and git."""
        return self.orchestrator + self.keepers + self.gate_runners


def cpu_of(took: Metered, roles: dict[int, str], starter_s: float) -> Cpu:
    """Sort the processor time of a run by what it was for.

    The starting half of a keeper is a child of the orchestrator, as git is: what `starter_s` of them took is
    counted for keepers, and the rest of the orchestrator's children is git.
    """
    agents = [one for one in took.others if roles.get(one.pid) == "implementer"]
    gates = [one for one in took.others if roles.get(one.pid) in ("gate", "verify")]
    starters = starter_s * (len(agents) + len(gates))
    return Cpu(
        orchestrator=took.main.own_cpu_s,
        keepers=starters + sum(one.own_cpu_s for one in (*agents, *gates)),
        gate_runners=sum(one.below_cpu_s for one in gates),
        agents=sum(one.below_cpu_s for one in agents),
        git=max(0.0, took.main.below_cpu_s - starters),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    took: Metered
    cpu: Cpu | None = None


def case(setting: Setting) -> Iterator[Measurement]:
    """Run plans of several sizes with the product and with the script, alternately."""
    # As many as a plan of 50 tasks has: the process that they are forked from is loaded once for all of them.
    starter_s = starter_cpu_s(setting.place("starters"), setting.pick(100, 20))
    for count, seconds in QUICK if setting.quick else FULL:
        # The largest take minutes each: as often as a spread needs.
        repeats = 1 if setting.quick else min(2, setting.repeats) if count >= 200 else setting.repeats
        yield from _size(setting, count, seconds, repeats, starter_s)


def _size(
    setting: Setting, count: int, seconds: float, repeats: int, starter_s: float
) -> Iterator[Measurement]:
    label = f"{count} × {seconds:g} s"
    jobs = independent(count, seconds)

    def product(n: int) -> _Run:
        yard = Yard(root=setting.folder / f"product-{count}-{seconds}-{n}", jobs=jobs).make()
        took = yard.run()
        cpu = cpu_of(took, yard.roles(), starter_s)
        yard.remove()
        return _Run(took=took, cpu=cpu)

    def script(n: int) -> _Run:
        yard = Yard(root=setting.folder / f"script-{count}-{seconds}-{n}", jobs=jobs).make()
        took = yard.baseline()
        yard.remove()
        return _Run(took=took)

    ours, theirs = taken_in_turn(repeats, (product, script))
    walls = tuple(one.took.wall_s for one in ours)
    base = tuple(one.took.wall_s for one in theirs)
    limit = WALL_TARGETS.get((count, seconds))
    yield Measurement(
        case=CASE,
        name=f"wall time, {label}, 2 slots",
        unit="s",
        values=walls,
        against="make -j2 script",
        baseline=base,
        target=Target(limit=limit, of="ratio") if limit else None,
        group=f"Wall time against make -j2, tasks of {seconds:g} s",
        at=f"{count} tasks" if count > 1 else "1 task",
    )
    yield Measurement(
        case=CASE,
        name=f"the same against the bare time of the agents, {label}",
        unit="s",
        values=walls,
        against="agent time / slots",
        baseline=(count * seconds / min(2, count),) * len(walls),
    )
    yield Measurement(
        case=CASE,
        name=f"added wall time per task, {label}",
        unit="ms",
        values=tuple((mine - other) / count * 1000 for mine, other in zip(walls, base, strict=True)),
    )
    if count == 50 or (setting.quick and count == 10 and seconds < 1):
        yield from _shares(ours, count, seconds, label)


def _shares(runs: list[_Run], count: int, seconds: float, label: str) -> Iterator[Measurement]:
    cpus = [one.cpu for one in runs if one.cpu]
    strict = seconds >= 1 or count != 50

    def per_task(name: str, values: list[float], target: Target | None = None) -> Measurement:
        return Measurement(
            case=CASE,
            name=f"{name}, per task, {label}",
            unit="ms CPU",
            values=tuple(value / count * 1000 for value in values),
            target=target,
        )

    yield per_task(
        "added CPU (orchestrator with its start, keepers, gate runners)",
        [cpu.added for cpu in cpus],
        Target(limit=CPU_MS, of="value") if strict else None,
    )
    yield per_task("CPU of the orchestrator", [cpu.orchestrator for cpu in cpus])
    yield per_task("CPU of keepers of agent and gate, with their start", [cpu.keepers for cpu in cpus])
    yield per_task("CPU of gate runners with the gate's commands", [cpu.gate_runners for cpu in cpus])
    yield per_task("CPU of git", [cpu.git for cpu in cpus])
    yield per_task("CPU of agents", [cpu.agents for cpu in cpus])
    yield Measurement(
        case=CASE,
        name=f"peak memory of orchestrator and keepers, {label}, 2 slots",
        unit="MB",
        values=tuple(_peak_bytes(one.took) / 1e6 for one in runs),
        target=Target(limit=PEAK_MB, of="value") if strict else None,
    )


def _peak_bytes(took: Metered) -> int:
    """Return the orchestrator's peak and, on top, that of the largest keeper, or program under one, for each slot."""
    return took.main.peak_bytes + 2 * max((one.peak_bytes for one in took.others), default=0)
