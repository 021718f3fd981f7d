"""The monitor sees agents through their progress, their files and their heartbeat, in simulated time."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.engine.worker.floor import Floor

from loopwright.core.rows.model import Attempt, Run
from loopwright.core.rows.monitor_rows import Trouble, Watched
from loopwright.core.values.failures import Failure
from loopwright.core.values.states import RunState
from loopwright.engine.worker.monitor import Monitor
from loopwright.ports import AgentEvent

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
    floor.refused("a", "b", "c", "d", failure=failure)
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
    floor.spent(900_000)
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


# --- what becomes of a trouble -----------------------------------------------------------------------------


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
