"""Whether a task costs the same in a small and in a large plan, with little and with much history."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.instant import instant_world, submission, work
from bench.measure import Measurement, Setting, Target
from loopwright.adapters.home.statefiles import ProjectStateFiles
from loopwright.adapters.machine.host import new_id
from loopwright.adapters.store.sql import SqlStore
from loopwright.core.rows.model import Attempt, Outcome, Plan, Task
from loopwright.core.values.states import AttemptState, TaskState
from loopwright.engine.intake.submit import submit
from loopwright.engine.rows.moves import complete_task, move_attempt, need
from loopwright.engine.rows.world import World
from loopwright.engine.worker.advance import advance
from loopwright.ports import Tx

CASE = "growth"
LIMIT = 1.25
GROUP = "Cost per task against a plan of 100 tasks"
WORKED = 60
"""How many tasks are done while it is measured, in the middle of the plan."""
BATCH = 500
LOOKS = 5
"""How often a plan is looked at for its status: one look at a small plan is over in ten milliseconds."""


@dataclass(kw_only=True)
class Costs:
    """Milliseconds per task of a plan of one size, a value per repeat."""

    planning: list[float] = field(default_factory=list)
    dispatching: list[float] = field(default_factory=list)
    working: list[float] = field(default_factory=list)
    working_cpu: list[float] = field(default_factory=list)
    status: list[float] = field(default_factory=list)


NAMES = {
    "planning": "planning (reading in a plan)",
    "dispatching": "dispatching",
    "working": "scheduling and landing in the middle of the plan, in rows, without git and processes",
    "working_cpu": "CPU of the same",
    "status": "status of the whole plan",
}


def case(setting: Setting) -> Iterator[Measurement]:
    """Measure plans of growing size; the smallest is the baseline of the others."""
    sizes = (100, 1000) if setting.quick else (100, 1000, 10_000)
    costs = {size: Costs() for size in sizes}
    for n in range(1 if setting.quick else setting.repeats):
        for size in sizes if n % 2 == 0 else reversed(sizes):
            _measure(setting.place(f"growth-{size}-{n}"), size, costs[size])
    for size in sizes:
        for kind, name in NAMES.items():
            target = Target(limit=LIMIT, of="ratio") if size == sizes[-1] and kind != "working_cpu" else None
            yield Measurement(
                case=CASE,
                name=f"{name}, {size} tasks, per task",
                unit="ms CPU" if kind == "working_cpu" else "ms",
                values=tuple(getattr(costs[size], kind)),
                against=f"{sizes[0]} tasks",
                baseline=tuple(getattr(costs[sizes[0]], kind)),
                target=target,
                group="" if kind == "working_cpu" or size == sizes[0] else GROUP,
                at=f"{kind} {size}",
            )


def _measure(folder: Path, size: int, costs: Costs) -> None:
    project = folder / "project"
    project.mkdir()
    store = SqlStore.open(folder / "loopwright.db")
    world = instant_world(folder, store)
    asked = submission(project, "plan", size)

    def took(work: Callable[[], object]) -> float:
        began = time.monotonic()
        work()
        return (time.monotonic() - began) * 1000

    plan_ids: list[str] = []
    costs.planning.append(
        took(
            lambda: plan_ids.append(
                store.transact_sync("submit", lambda tx: submit(tx, new_id, asked)).plan.id
            )
        )
        / size
    )
    [plan_id] = plan_ids
    asyncio.run(_work(world, store, plan_id, size, costs))
    looked = [sys.executable, "-m", "bench.looked", str(folder), plan_id]
    costs.status.append(median(float(subprocess.check_output(looked)) for _ in range(LOOKS)) / size)


async def _work(world: World, store: SqlStore, plan_id: str, size: int, costs: Costs) -> None:
    began = time.monotonic()
    await advance(world)
    costs.dispatching.append((time.monotonic() - began) * 1000 / size)
    worked = min(WORKED, size // 3)
    done = (size - worked) // 2
    while done > 0:
        batch = min(BATCH, done)
        store.transact_sync("land", lambda tx, batch=batch: _land(tx, plan_id, batch))  # type: ignore[misc]
        done -= batch
    goal = store.read_sync(lambda tx: _open(tx, plan_id)) - worked

    marks: list[tuple[float, float]] = []

    async def finished() -> bool:
        over = await store.read(lambda tx: _open(tx, plan_id)) <= goal
        if over or not marks:
            # From the end of the first pass, which exports what happened until now, to before the last export.
            marks.append((time.monotonic(), time.process_time()))
        return over

    await work(world, ProjectStateFiles(), finished)
    costs.working.append((marks[-1][0] - marks[0][0]) * 1000 / worked)
    costs.working_cpu.append((marks[-1][1] - marks[0][1]) * 1000 / worked)
    world.membership.release()
    await store.close()


def _open(tx: Tx, plan_id: str) -> int:
    return need(tx.get(Plan, plan_id), "the plan").open_tasks


def _land(tx: Tx, plan_id: str, batch: int) -> None:
    """Take tasks from QUEUED to COMPLETE as the pipeline does, only all at once."""
    path = (
        AttemptState.PREPARING,
        AttemptState.WORKING,
        AttemptState.CHECKING,
        AttemptState.LANDING,
        AttemptState.LANDED,
    )
    ready = tx.find(
        Task, plan_id=plan_id, status=TaskState.QUEUED, unmet=0, order_by=("position",), limit=batch
    )
    for task in ready:
        attempt = need(tx.get(Attempt, task.attempt_id or ""), "the attempt")
        for state in path:
            attempt = move_attempt(tx, attempt, state)
        running = tx.update(Task, task.id, status=TaskState.RUNNING)
        complete_task(tx, running, outcome=Outcome.VERIFIED, landed_sha="2" * 40)
        tx.update(Attempt, attempt.id, cleaned_at=tx.now())
