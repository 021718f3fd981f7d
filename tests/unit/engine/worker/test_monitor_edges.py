"""What the monitor does not report yet, and reports a moment later; and a hundred runs in which all is well."""

import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.unit.engine.worker.floor import Floor

from loopwright.core.rows.monitor_rows import Trouble
from loopwright.core.values.failures import Failure

Step = Callable[[Floor], Awaitable[None]]

FULL = "OSError: no space left on device"


# --- one less than too much, and then one more ----------------------------------------------------------------


async def _beats_again_in_time(floor: Floor) -> None:
    await floor.begin("a")
    for n in range(3):
        floor.tool("a", f"step {n}")
        floor.beating = False
        await floor.minutes(1.5)
        floor.beating = True
        await floor.minutes(0.5)


async def _stops_to_beat(floor: Floor) -> None:
    floor.beating = False
    await floor.minutes(2)


async def _quiet_for_a_while(floor: Floor) -> None:
    await floor.begin("a")
    await floor.minutes(14.5)


async def _quiet_twice(floor: Floor) -> None:
    await _quiet_for_a_while(floor)
    floor.tool("a", "something new")
    await floor.minutes(14.5)


async def _quiet_around_a_sleep_of_the_machine(floor: Floor) -> None:
    await floor.begin("a")
    await floor.minutes(7)
    floor.home.clock.advance(8 * 3600)
    await floor.minutes(7.5)


async def _one_look_more(floor: Floor) -> None:
    await floor.minutes(0.5)


async def _talks(floor: Floor) -> None:
    await floor.begin("a")
    await floor.minutes(14.5, lambda n: floor.says("a", f"I will soon begin with part {n}"))


async def _talks_on(floor: Floor) -> None:
    await floor.minutes(0.5, lambda _n: floor.says("a", "I really begin now"))


async def _calls_again(floor: Floor) -> None:
    await floor.begin("a")
    await floor.minutes(14.5, lambda _n: floor.tool("a", "ls", "a.py"))


async def _two_calls(floor: Floor) -> None:
    await floor.begin("a")
    await floor.minutes(15, lambda n: floor.tool("a", ("git status", "git diff")[n % 2], "nothing"))


async def _fills_caches(floor: Floor) -> None:
    await floor.begin("a")
    await floor.minutes(14.5, lambda n: floor.write("a", f"node_modules/x/{n}.js"))


async def _saves_now_and_then(floor: Floor) -> None:
    await floor.begin("a")
    await floor.minutes(40, lambda n: n % 28 == 0 and floor.write("a", "src/a.py"))


async def _saves_no_more(floor: Floor) -> None:
    await floor.minutes(15)


async def _builds_for_long(floor: Floor) -> None:
    await floor.begin("a")
    floor.tool("a", "make all", None)
    await floor.minutes(29.5)


async def _builds_then_thinks(floor: Floor) -> None:
    await floor.begin("a")
    for target in ("app", "docs"):
        floor.tool("a", f"make {target}", None)
        await floor.minutes(25)
        floor.ends("a", "built")
        await floor.minutes(14.5)


def _fails(floor: Floor, times: int) -> None:
    for n in range(times):
        floor.tool("a", f"edit {n}", "no such file: b.py", ok=False)


async def _four_errors(floor: Floor) -> None:
    await floor.begin("a")
    _fails(floor, 4)
    await floor.minutes(0.5)


async def _four_errors_twice(floor: Floor) -> None:
    await _four_errors(floor)
    floor.tool("a", "read b.py")
    _fails(floor, 4)
    await floor.minutes(0.5)


async def _errors_in_turn(floor: Floor) -> None:
    await floor.begin("a")
    for n in range(6):
        floor.tool("a", f"pytest {n}", ("assert 1 == 2", "no module named b")[n % 2], ok=False)
    _fails(floor, 4)
    await floor.minutes(0.5)


async def _fifth_error(floor: Floor) -> None:
    _fails(floor, 1)
    await floor.minutes(0.5)


async def _two_tasks_fail_alike(floor: Floor) -> None:
    await floor.begin("a", "b", "c", "d")
    for key, detail in (("a", FULL), ("b", FULL), ("c", "assert 1 == 2")):
        floor.home.hand.fail(floor.legs[key], Failure.GATE, detail)
    await floor.minutes(0.5)


async def _third_task_fails_alike(floor: Floor) -> None:
    floor.home.hand.fail(floor.legs["d"], Failure.GATE, FULL)
    await floor.minutes(0.5)


async def _two_calls_are_refused(floor: Floor) -> None:
    await floor.begin("a", "b", "c")
    floor.refused("a", "b")
    await floor.minutes(0.5)


async def _third_call_is_refused(floor: Floor) -> None:
    floor.refused("c")
    await floor.minutes(0.5)


async def _three_refusals_in_more_than_an_hour(floor: Floor) -> None:
    await floor.begin("a", "b", "c", "d")
    floor.refused("a")
    for key in ("b", "c"):
        floor.home.clock.advance(31 * 60)
        floor.refused(key)
        await floor.minutes(0.5)


async def _fourth_refusal(floor: Floor) -> None:
    floor.refused("d")
    await floor.minutes(0.5)


async def _four_files_outside(floor: Floor) -> None:
    await floor.begin("a", scope=("src/**",))
    for n in range(4):
        floor.write("a", f"docs/{n}.md")
    await floor.minutes(0.5)


async def _half_outside(floor: Floor) -> None:
    await floor.begin("a", scope=("src/**",))
    for n in range(5):
        floor.write("a", f"docs/{n}.md")
        floor.write("a", f"src/{n}.py")
    await floor.minutes(0.5)


async def _one_more_outside(floor: Floor) -> None:
    floor.write("a", "docs/more.md")
    await floor.minutes(0.5)


async def _two_loops_beside_each_other(floor: Floor) -> None:
    await floor.begin("a")
    await floor.begin("b", plan="other.yaml")
    for key in ("a", "b"):
        floor.write(key, f"src/{key}.py")
        floor.write(key, "__pycache__/app.pyc")
        floor.write(key, ".cache/app")
    await floor.minutes(0.5)


async def _two_tasks_of_one_loop(floor: Floor) -> None:
    await floor.begin("a", "c")
    await floor.begin("b", plan="other.yaml")
    for key in ("a", "c"):
        floor.write(key, "src/app.py")
    await floor.minutes(0.5)


async def _two_loops_one_after_the_other(floor: Floor) -> None:
    await floor.begin("c")
    floor.write("c", "src/app.py")
    await floor.minutes(0.5)
    floor.refused("c", failure=Failure.GATE)
    await floor.begin("a", plan="second.yaml")
    await floor.begin("b", plan="third.yaml")
    floor.write("a", "src/app.py")
    await floor.minutes(0.5)


async def _other_loop_writes_it_too(floor: Floor) -> None:
    floor.write("a", "src/app.py")
    floor.write("b", "src/app.py")
    await floor.minutes(0.5)


async def _land(floor: Floor, *tasks: str) -> None:
    for key in tasks:
        floor.home.hand.land(floor.legs[key])
    await floor.minutes(0.5)


async def _just_as_dear_as_allowed(floor: Floor) -> None:
    await floor.begin("a", "b", "c", "d", max_cost=1_000_000)
    await _land(floor, "a", "b", "c")
    floor.spent(750_000)
    await floor.minutes(0.5)


async def _a_little_dearer(floor: Floor) -> None:
    floor.spent(750_001)
    await floor.minutes(0.5)


async def _too_few_done_to_tell(floor: Floor) -> None:
    await floor.begin("a", "b", "c", "d", max_cost=1_000_000)
    floor.spent(900_000)
    await _land(floor, "a", "b")


async def _one_more_done(floor: Floor) -> None:
    await _land(floor, "c")


EDGES: dict[str, tuple[tuple[Step, Step], ...]] = {
    "stale_heartbeat": ((_beats_again_in_time, _stops_to_beat),),
    "stuck": (
        (_quiet_for_a_while, _one_look_more),
        (_quiet_twice, _one_look_more),
        (_quiet_around_a_sleep_of_the_machine, _one_look_more),
        (_talks, _talks_on),
        (_calls_again, _one_look_more),
        (_two_calls, _one_look_more),
        (_fills_caches, _one_look_more),
        (_saves_now_and_then, _saves_no_more),
        (_builds_for_long, _one_look_more),
        (_builds_then_thinks, _one_look_more),
    ),
    "repeated_error": (
        (_four_errors, _fifth_error),
        (_four_errors_twice, _fifth_error),
        (_errors_in_turn, _fifth_error),
        (_two_tasks_fail_alike, _third_task_fails_alike),
    ),
    "service_errors": (
        (_two_calls_are_refused, _third_call_is_refused),
        (_three_refusals_in_more_than_an_hour, _fourth_refusal),
    ),
    "digression": ((_four_files_outside, _one_more_outside), (_half_outside, _one_more_outside)),
    "conflict": (
        (_two_loops_beside_each_other, _other_loop_writes_it_too),
        (_two_tasks_of_one_loop, _other_loop_writes_it_too),
        (_two_loops_one_after_the_other, _other_loop_writes_it_too),
    ),
    "budget_pace": (
        (_just_as_dear_as_allowed, _a_little_dearer),
        (_too_few_done_to_tell, _one_more_done),
    ),
}


@pytest.mark.capability("C105")
@pytest.mark.parametrize(
    ("kind", "nearly", "more"),
    [(kind, *each) for kind, edges in EDGES.items() for each in edges],
    ids=lambda one: getattr(one, "__name__", one),
)
async def test_each_fault_is_reported_from_its_limit_on_and_not_before(
    kind: str, nearly: Step, more: Step, tmp_path: Path
) -> None:
    floor = Floor(tmp_path)
    await nearly(floor)
    assert [one.payload["message"] for one in floor.home.events("trouble_found")] == []
    await more(floor)
    assert floor.found() == {kind}


# --- what is well ---------------------------------------------------------------------------------------------


class Honest:
    """An agent that reads, thinks up to 14 minutes, builds up to 29, gets errors and corrects them."""

    def __init__(self, floor: Floor, task: str, seed: int) -> None:
        self.floor, self.task = floor, task
        self.chance = random.Random(f"{task} {seed}")
        self.busy_until = 0
        self.builds = self.thought = False

    def act(self, n: int) -> None:
        if self.busy_until > n:
            return
        if self.builds:
            self.builds = False
            self.floor.ends(self.task, "built")
        ways = ["read", "read", "write", "build", "errors", "elsewhere"]
        way = self.chance.choice(ways if self.thought else [*ways, "think"])
        self.thought = way == "think"
        match way:
            case "read":
                self.floor.tool(self.task, f"read {self.chance.random()}")
            case "write":
                self.floor.write(self.task, f"src/{self.task}/{self.chance.randrange(9)}.py")
            case "think":
                self.busy_until = n + self.chance.randrange(28)
            case "build":
                self.floor.tool(self.task, f"make {self.chance.random()}", None)
                self.builds, self.busy_until = True, n + self.chance.randrange(58)
            case "errors":
                for _ in range(self.chance.randrange(5)):
                    self.floor.tool(self.task, f"pytest -k {self.chance.random()}", "1 failed", ok=False)
                self.floor.tool(self.task, f"edit {self.chance.random()}")
            case _:
                self.floor.write(self.task, f"notes-{self.task}.md")


@pytest.mark.parametrize("homes", [5, pytest.param(25, marks=pytest.mark.more)])
async def test_of_a_hundred_healthy_runs_at_most_one_raises_an_alert(tmp_path: Path, homes: int) -> None:
    """Four agents work in each home for an hour; the short form plays twenty of the hundred."""
    alarms: set[str] = set()
    for seed in range(homes):
        floor = Floor(tmp_path / str(seed))
        for task in "abcd":
            await floor.begin(task, scope=(f"src/{task}/**", f"notes-{task}.md"), plan=f"{task}.yaml")
        agents = [Honest(floor, task, seed) for task in "abcd"]
        hiccups = random.Random(seed)
        for n in range(120):
            # A machine under load beats late, but within a minute and a half.
            floor.beating = n % 4 == 0 or hiccups.random() < 0.9
            await floor.minutes(0.5, lambda _n, n=n, agents=agents: [one.act(n) for one in agents])
            alarms |= {f"{seed} {one.id} {one.message}" for one in floor.home.all(Trouble)}
        await floor.home.engine.close()
    assert len(alarms) <= 1
