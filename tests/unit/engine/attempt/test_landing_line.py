"""Many attempts that wait to land: how long it takes, counted in gates one after the other."""

from dataclasses import replace

import pytest
from tests.fakes.virtual_loop import VirtualLoop
from tests.simulation.agents import Act
from tests.simulation.machines import Kept, Machine
from tests.simulation.scenario import Scenario
from tests.simulation.universe import Universe

from loopwright.core.rows.model import Attempt, Plan, Role, Run, Task
from loopwright.core.values.failures import Failure
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import AttemptState, PlanState, RunState
from loopwright.engine.intake.submit import Submission
from loopwright.ports import RunSpec

TASKS = 12
RED = "p0t5"
GATE_S = 100.0
ONE_BY_ONE = 13
"""Eleven that are good, the red one, and its second attempt."""


class SlowGates(Machine):
    """A machine where agents are all done at once, gates are slow, and the first attempt at one task is bad."""

    def _draw(self, spec: RunSpec, task: Task) -> Act:
        before = [one for one in self.kept.values() if one.act and one.spec.cwd != spec.cwd]
        again = any(self._task_of(one.spec.env["LOOPWRIGHT_TASK"]) == task for one in before)
        is_bad = task.key == RED and not again
        said = {"event": "result", "ok": True, "summary": "bad" if is_bad else "good"}
        return Act(seconds=1.0, last_words=said)

    def _gate(self, kept: Kept) -> float:
        return GATE_S


class Queue(Universe):
    """Twelve tasks that do not depend on each other."""

    machine = SlowGates

    def submission(self, n: int, tasks: int, *, edit: int = 0) -> Submission:
        asked = super().submission(n, tasks, edit=edit)
        free = tuple(replace(task, depends_on=(), scope=(), priority=50) for task in asked.work.tasks)
        # How it was before the work is another run, and it is the gates that are counted here.
        policy = Policy(
            agent="sim",
            parallel=TASKS,
            parallel_gates=self.at_once,
            permission_mode="edit",
            red_proof="off",
        )
        return replace(asked, work=replace(asked.work, tasks=free), policy=policy)

    at_once = 1


def waited(at_once: int) -> tuple[Queue, float]:
    """Let all of them land, and return how many gates' time it took from the first that was done."""
    loop = VirtualLoop()
    scenario = Scenario(
        seed=1, tasks=TASKS, loops=1, workers=1, hosts=1, slots=TASKS, exclusive=True, faults=frozenset()
    )
    queue = Queue(scenario, loop)
    queue.at_once = at_once
    try:
        loop.run_until_complete(queue.play())
    finally:
        loop.set_exception_handler(lambda _loop, _context: None)
        loop.run_until_complete(queue.leave())
        loop.close()
    runs = [run for run in queue.database.all(Run).values() if run.ended_at is not None]
    done = min(run.ended_at for run in runs if run.role is Role.IMPLEMENTER)
    landed = max(one.ended_at for one in queue.database.all(Attempt).values() if one.ended_at is not None)
    return queue, (landed - done).total_seconds() / GATE_S


@pytest.mark.capability("C073")
def test_twelve_that_wait_with_a_red_one_among_them_take_fewer_gates_one_after_the_other() -> None:
    took = {}
    for at_once in (1, 2, 4):
        queue, took[at_once] = waited(at_once)
        [plan] = queue.database.all(Plan).values()
        assert plan.status is PlanState.VERIFIED
        attempts = list(queue.database.all(Attempt).values())
        assert sum(one.state is AttemptState.LANDED for one in attempts) == TASKS
        rejected = [one.failure for one in attempts if one.state is AttemptState.REJECTED]
        assert rejected == [Failure.GATE], "the red one, once, and nobody else for it"
        runs = [run for run in queue.database.all(Run).values() if run.role is Role.GATE]
        judged = [run for run in runs if run.state is RunState.COMPLETE]
        # In vain: the red one alone, to see whether others are to blame, and at most those on top of it, once.
        assert len(judged) <= ONE_BY_ONE + at_once
    assert ONE_BY_ONE <= took[1] < ONE_BY_ONE + 1
    # One more where the red one happens to be judged beside one that was good.
    assert took[2] < 9
    assert took[4] < 6
