"""The monitor sees agents through their progress, their files and their heartbeat, in simulated time."""

import os
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.doubles import Home, InstantKeepers, planned

from loopwright.core.rows.model import Attempt, Leg, Plan, Run, Task
from loopwright.core.rows.monitor_rows import Trouble, Watched
from loopwright.core.values.failures import Failure
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import RunState
from loopwright.engine.processes.runs import Progress
from loopwright.engine.rows.moves import move_run
from loopwright.engine.rows.world import HomePaths
from loopwright.engine.worker.monitor import Monitor
from loopwright.ports import AgentEvent, Sighting, Tx


class Beating(InstantKeepers):
    """Every process is alive, and its keeper beat at the moment noted here."""

    beats: dict[str, datetime]

    def look(self, directory: Path) -> Sighting:
        return Sighting(state="alive", beat_at=self.beats.get(directory.name))


class Floor:
    """Agents at work in one home, each with a run directory and a workspace on the disk."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = Home(slots=4)
        self.keepers = Beating(self.home.clock)
        self.keepers.beats = {}
        self.home.world = replace(
            self.home.world,
            paths=HomePaths(root=root),
            keepers=self.keepers,
            me=replace(self.home.world.me, host_id="host-a"),
        )
        self.monitor = Monitor(self.home.world)
        self.legs: dict[str, Leg] = {}
        self.progress: dict[str, Progress] = {}
        self.beating = True

    async def begin(
        self, *tasks: str, scope: tuple[str, ...] = (), plan: str = "plan.yaml", **policy: int
    ) -> None:
        """Let an agent work at each of these tasks."""
        if not self.legs:
            await self.home.launch()
        self.home.submit(
            *(planned(one, scope=scope) for one in tasks),
            source_path=plan,
            policy=replace(Policy(parallel=4), **policy),
        )
        for leg in await self.home.turn():
            attempt = self.home.hand.work(leg)
            key = self.home.get(Task, attempt.task_id).key
            workspace = self.root / "workspaces" / key
            workspace.mkdir(parents=True)
            directory = self.root / "runs" / (attempt.run_id or "")
            directory.mkdir(parents=True)

            def place(tx: Tx, attempt: Attempt = attempt, workspace: Path = workspace) -> None:
                tx.update(Attempt, attempt.id, workspace=str(workspace))
                tx.update(Run, attempt.run_id or "", host_id="host-a", started_at=tx.now())

            self.home.store.transact_sync("place", place)
            self.legs[key], self.progress[key] = leg, Progress(directory)

    def tool(self, task: str, call: str, result: str | None = "fine", *, ok: bool = True) -> None:
        """Let an agent call a tool."""
        self.progress[task](AgentEvent(kind="ToolStart", text=call, data={"input": call}))
        if result is not None:
            self.progress[task](AgentEvent(kind="ToolEnd", text=result, data={"ok": ok}))

    def ends(self, task: str, result: str) -> None:
        """End the tool that works."""
        self.progress[task](AgentEvent(kind="ToolEnd", text=result, data={"ok": True}))

    def says(self, task: str, text: str) -> None:
        self.progress[task](AgentEvent(kind="Text", text=text))

    def write(self, task: str, name: str) -> None:
        """Let an agent write a file."""
        path = self.root / "workspaces" / task / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
        at = self.home.clock.now().timestamp() + 1
        os.utime(path, (at, at))

    async def minutes(self, count: float, act: Callable[[int], object] = lambda _n: None) -> None:
        """Let time pass; `act` happens before each look."""
        for n in range(int(count * 60 / self.home.world.look_s)):
            self.home.clock.advance(self.home.world.look_s)
            if self.beating:
                now = self.home.clock.now()
                self.keepers.beats = {one.id: now for one in self.home.all(Run)}
            act(n)
            await self.monitor.look(controls=True)

    def found(self) -> set[str]:
        return {one.kind for one in self.home.all(Trouble)}


# --- twenty things that go wrong -----------------------------------------------------------------------


async def _keeper_stops(floor: Floor) -> None:
    await floor.begin("a")
    await floor.minutes(2, lambda n: floor.tool("a", f"step {n}"))
    floor.beating = False
    await floor.minutes(3, lambda n: floor.tool("a", f"more {n}"))


async def _machine_is_slow(floor: Floor) -> None:
    await floor.begin("a")
    floor.beating = False
    floor.keepers.beats = dict.fromkeys([floor.home.attempt("a").run_id or ""], floor.home.clock.now())
    await floor.minutes(4, lambda n: floor.tool("a", f"step {n}"))


async def _silent(floor: Floor) -> None:
    await floor.begin("a")
    await floor.minutes(16)


async def _chatty(floor: Floor) -> None:
    await floor.begin("a")
    await floor.minutes(16, lambda n: floor.says("a", f"I will soon begin with part {n}"))


async def _same_call(floor: Floor) -> None:
    await floor.begin("a")
    await floor.minutes(17, lambda _n: floor.tool("a", "ls", "a.py"))


async def _same_call_other_times(floor: Floor) -> None:
    await floor.begin("a")
    await floor.minutes(17, lambda n: floor.tool("a", "pytest", f"3 passed in 0.{n:02}s"))


async def _tool_never_ends(floor: Floor) -> None:
    await floor.begin("a")
    floor.tool("a", "npm install", None)
    await floor.minutes(31)


async def _only_caches(floor: Floor) -> None:
    await floor.begin("a")
    await floor.minutes(17, lambda n: floor.write("a", f"__pycache__/a{n}.pyc"))


async def _only_hidden_files(floor: Floor) -> None:
    await floor.begin("a")
    await floor.minutes(17, lambda n: floor.write("a", f".git/objects/{n}"))


async def _only_thoughts(floor: Floor) -> None:
    await floor.begin("a")
    think = floor.progress["a"]
    await floor.minutes(
        16, lambda n: think(AgentEvent(kind="Text", text=f"thought {n}", data={"thinking": True}))
    )


async def _two_calls_in_turn(floor: Floor) -> None:
    await floor.begin("a")
    await floor.minutes(18, lambda n: floor.tool("a", ("git status", "git diff")[n % 2], "nothing"))


async def _only_retries(floor: Floor) -> None:
    await floor.begin("a")
    await floor.minutes(
        16, lambda n: floor.progress["a"](AgentEvent(kind="Retry", text=f"try {n}", data={"attempt": n}))
    )


async def _same_error(floor: Floor) -> None:
    await floor.begin("a")
    await floor.minutes(3, lambda n: floor.tool("a", f"edit {n}", "no such file: b.py", ok=False))


async def _same_error_other_numbers(floor: Floor) -> None:
    await floor.begin("a")
    await floor.minutes(
        3, lambda n: floor.tool("a", f"python s{n}.py", f"TypeError at line {n} (0x7f{n:04x})", ok=False)
    )


async def _three_tasks_one_error(floor: Floor) -> None:
    await floor.begin("a", "b", "c")
    for key in ("a", "b", "c"):
        floor.home.hand.fail(floor.legs[key], Failure.GATE, "OSError: no space left on device")
    await floor.minutes(1)


async def _service_refuses(floor: Floor, failure: Failure = Failure.OVERLOADED) -> None:
    await floor.begin("a", "b", "c", "d")

    def refused(tx: Tx) -> None:
        for run in tx.find(Run, state=RunState.RUNNING):
            move_run(tx, run, RunState.ERROR, failure=failure)

    floor.home.store.transact_sync("refused", refused)
    await floor.minutes(1)


async def _dies_at_once(floor: Floor) -> None:
    await _service_refuses(floor, Failure.CRASH)


async def _leaves_its_scope(floor: Floor) -> None:
    await floor.begin("a", scope=("src/api/**",))
    await floor.minutes(4, lambda n: floor.write("a", f"docs/page{n}.md"))


async def _two_loops_one_file(floor: Floor) -> None:
    await floor.begin("a")
    await floor.begin("b", plan="other.yaml")
    floor.write("a", "src/app.py")
    floor.write("b", "src/app.py")
    await floor.minutes(1)


async def _dear_tasks(floor: Floor) -> None:
    await floor.begin("a", "b", "c", "d", max_cost=1_000_000)
    for key in ("a", "b", "c"):
        floor.home.hand.land(floor.legs[key])
    plan = floor.home.plan()
    floor.home.store.transact_sync("spent", lambda tx: tx.update(Plan, plan.id, spent_micros=900_000))
    await floor.minutes(1)


Fault = Callable[[Floor], Awaitable[None]]

FAULTS: dict[str, tuple[Fault, ...]] = {
    "stale_heartbeat": (_keeper_stops, _machine_is_slow),
    "stuck": (
        _silent,
        _chatty,
        _same_call,
        _same_call_other_times,
        _tool_never_ends,
        _only_caches,
        _only_hidden_files,
        _only_thoughts,
        _two_calls_in_turn,
        _only_retries,
    ),
    "repeated_error": (_same_error, _same_error_other_numbers, _three_tasks_one_error),
    "service_errors": (_service_refuses, _dies_at_once),
    "digression": (_leaves_its_scope,),
    "conflict": (_two_loops_one_file,),
    "budget_pace": (_dear_tasks,),
}


@pytest.mark.capability("C105")
@pytest.mark.parametrize(
    ("kind", "fault"),
    [(kind, one) for kind, faults in FAULTS.items() for one in faults],
    ids=lambda one: getattr(one, "__name__", one),
)
async def test_each_of_twenty_faults_is_found(kind: str, fault: Fault, tmp_path: Path) -> None:
    floor = Floor(tmp_path)
    await fault(floor)
    assert floor.found() == {kind}


def test_there_are_twenty_faults() -> None:
    assert sum(len(faults) for faults in FAULTS.values()) == 20


# --- what is well ----------------------------------------------------------------------------------------


class Honest:
    """An agent that reads, thinks up to 5 minutes, builds up to 20, gets errors and corrects them."""

    def __init__(self, floor: Floor, task: str, seed: int) -> None:
        self.floor, self.task = floor, task
        self.chance = random.Random(f"{task} {seed}")
        self.busy_until = 0
        self.builds = False

    def act(self, n: int) -> None:
        if self.busy_until > n:
            return
        if self.builds:
            self.builds = False
            self.floor.ends(self.task, "built")
        match self.chance.choice(("read", "read", "write", "think", "build", "errors", "elsewhere")):
            case "read":
                self.floor.tool(self.task, f"read {self.chance.random()}")
            case "write":
                self.floor.write(self.task, f"src/{self.task}/{self.chance.randrange(9)}.py")
            case "think":
                self.busy_until = n + self.chance.randrange(10)
            case "build":
                self.floor.tool(self.task, f"make {self.chance.random()}", None)
                self.builds, self.busy_until = True, n + self.chance.randrange(40)
            case "errors":
                for _ in range(self.chance.randrange(4)):
                    self.floor.tool(self.task, f"pytest -k {self.chance.random()}", "1 failed", ok=False)
                self.floor.tool(self.task, f"edit {self.chance.random()}")
            case _:
                self.floor.write(self.task, f"notes-{self.task}.md")


async def test_a_hundred_healthy_runs_raise_at_most_one_alert(tmp_path: Path) -> None:
    alarms: set[str] = set()
    for seed in range(25):
        floor = Floor(tmp_path / str(seed))
        for task in "abcd":
            await floor.begin(task, scope=("src/**", f"notes-{task}.md"), plan=f"{task}.yaml")
        agents = [Honest(floor, task, seed) for task in "abcd"]
        seen: set[str] = set()
        for n in range(60):
            await floor.minutes(0.5, lambda _n, n=n, agents=agents: [one.act(n) for one in agents])
            seen |= {f"{seed} {one.id} {one.message}" for one in floor.home.all(Trouble)}
        await floor.home.engine.close()
        alarms |= seen
    assert len(alarms) <= 1


@pytest.mark.capability("C106")
async def test_a_trouble_is_one_row_and_one_event_and_goes_when_its_cause_does(tmp_path: Path) -> None:
    floor = Floor(tmp_path)
    await floor.begin("a")
    await floor.minutes(16)
    (first,) = floor.home.all(Trouble)
    await floor.minutes(5)
    (later,) = floor.home.all(Trouble)
    assert (later.id, later.since) == (first.id, first.since)
    assert len(floor.home.events("trouble_found")) == 1
    floor.tool("a", "read", "something new")
    await floor.minutes(1)
    assert floor.home.all(Trouble) == []


async def test_what_was_seen_of_an_agent_goes_with_its_run(tmp_path: Path) -> None:
    floor = Floor(tmp_path)
    await floor.begin("a")
    await floor.minutes(1)
    assert len(floor.home.all(Watched)) == 1
    floor.home.hand.fail(floor.legs["a"], Failure.GATE)
    run = floor.home.all(Run)[0]
    if run.state is RunState.RUNNING:
        floor.home.store.transact_sync("end", lambda tx: tx.delete(Run, run.id))
    await floor.minutes(0.5)
    assert all(one.id != run.id for one in floor.home.all(Watched))


async def test_a_new_worker_remembers_since_when_an_agent_has_done_nothing(tmp_path: Path) -> None:
    floor = Floor(tmp_path)
    await floor.begin("a")
    await floor.minutes(10)
    floor.monitor = Monitor(floor.home.world)
    await floor.minutes(6)
    assert floor.found() == {"stuck"}


async def test_a_machine_that_slept_says_nothing_about_its_agents(tmp_path: Path) -> None:
    floor = Floor(tmp_path)
    await floor.begin("a")
    await floor.minutes(1)
    floor.home.clock.advance(timedelta(hours=8).total_seconds())
    await floor.minutes(0.5)
    assert floor.found() == set()


# --- a stuck agent is started again ----------------------------------------------------------------------


async def _until_stuck(floor: Floor) -> None:
    await floor.minutes(16)
    assert "stuck" in floor.found()


@pytest.mark.capability("C087")
async def test_with_auto_heal_a_stuck_agent_is_ended_and_its_task_begins_again(tmp_path: Path) -> None:
    floor = Floor(tmp_path)
    await floor.begin("a", auto_heal=True)
    first = floor.home.attempt("a")
    await _until_stuck(floor)
    assert floor.home.get(Attempt, first.id).interrupt == "cancel"
    floor.home.hand.go_on(floor.legs["a"])
    await floor.home.ended(floor.legs["a"])
    await floor.home.reconcile()
    task = floor.home.task("a")
    assert (task.attempts, task.attempt_id != first.id) == (0, True)
    assert "stopped making progress" in task.note
    await floor.minutes(0.5)
    assert floor.found() == set()


async def test_without_auto_heal_a_stuck_agent_is_only_reported(tmp_path: Path) -> None:
    floor = Floor(tmp_path)
    await floor.begin("a")
    await _until_stuck(floor)
    assert floor.home.attempt("a").interrupt == ""


async def test_at_most_three_stuck_agents_of_a_plan_are_started_again_in_an_hour(tmp_path: Path) -> None:
    floor = Floor(tmp_path)
    await floor.begin("a", "b", "c", "d", auto_heal=True)
    await _until_stuck(floor)
    assert [floor.home.attempt(one).interrupt for one in "abcd"].count("cancel") == 3
