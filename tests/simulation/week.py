"""Fifty loops on four slots for a simulated week: nothing starves, nothing stands still, budgets are kept.

The engine is the real one, as in every simulated run. Agents work for minutes instead of seconds, each loop gets new
work as soon as its plan has ended, and a person looks in twice a day. `python -m tests.simulation.week` plays it.
"""

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from tests.fakes.virtual_loop import VirtualClock, VirtualLoop
from tests.simulation.agents import Act
from tests.simulation.machines import Machine
from tests.simulation.promises.invariants import Violation
from tests.simulation.scenario import Scenario
from tests.simulation.universe import Universe, run

from loopwright.core.rows.model import Loop, Plan, Run, Task
from loopwright.core.rows.waiting_rows import Envelope
from loopwright.core.values.policy import Limits, Policy
from loopwright.core.values.states import (
    ENDED_PLAN,
    EnvelopeState,
    LoopState,
    PlanState,
    RunState,
    TaskState,
)
from loopwright.engine.intake.submit import Submission, submit
from loopwright.ports import RunSpec

LOOPS: Final = 50
SLOTS: Final = 4
PROJECTS: Final = 5
TASKS: Final = 6
"""Of the first plan of each loop."""
WEEK_S: Final = 7 * 86_400.0
MEAN_S: Final = 20.0
"""How long an agent works on average elsewhere."""
STRETCH: Final = 60.0
"""So many times as long it works in the full week: 20 minutes on average."""
LOOK_S: Final = 30.0
PERSON_S: Final = 43_200.0
FAULTS: Final = frozenset(
    {
        "crash",
        "usage_limit",
        "overload",
        "agent_lies",
        "agent_errs",
        "agent_dies",
        "question",
        "gate_flakes",
        "budget",
    }
)
STILL_S: Final = 900.0
"""So long at most no agent runs although one could: longer than any pause between two tries of a call."""


def longest_wait_s(stretch: float) -> float:
    """Return how long a loop with ready work may go without an agent: three rounds in which all others get one."""
    return 3 * LOOPS / SLOTS * MEAN_S * stretch


@dataclass
class Seen:
    """What a look at the rows has found so far."""

    served: Counter[str] = field(default_factory=Counter)
    """How many agents each loop has had."""
    longest_wait_s: float = 0.0
    waiting_since: dict[str, float] = field(default_factory=dict)
    still_since: float | None = None
    longest_still_s: float = 0.0
    looks: int = 0
    busy: int = 0
    """How often an agent ran for each slot, over all looks."""
    runs: set[str] = field(default_factory=set)


class PatientMachine(Machine):
    """A machine whose agents take their time."""

    stretch = STRETCH

    def _draw(self, spec: RunSpec, task: Task) -> Act:
        act = super()._draw(spec, task)
        act.seconds *= self.stretch
        return act


class Week(Universe):
    """A home with many loops that never run out of work."""

    machine = PatientMachine

    def __init__(self, scenario: Scenario, loop: VirtualLoop, *, seconds: float, stretch: float) -> None:
        super().__init__(scenario, loop)
        self.seconds, self.stretch = seconds, stretch
        for one in self.machines:
            assert isinstance(one, PatientMachine)
            one.stretch = stretch
        self.seen = Seen()
        self._turns: Counter[int] = Counter()

    def _policy(self, chance: Any) -> Policy:
        policy = super()._policy(chance)
        return replace(
            policy,
            limits=Limits(hard=36_000.0, idle=None),
            # The promises about caps count a project's costs as if no day ended.
            max_cost_per_day=None,
            parallel=chance.choice((1, 2, 4)),
            host_lost_after=36_000.0,
            answer_within=chance.choice((600.0, 3_600.0)),
            on_task_error="hold",
            permission_mode="edit",
        )

    def submission(self, n: int, tasks: int, *, edit: int = 0) -> Submission:
        """Return the next work of a loop; a tenth of the loops is poor."""
        asked = super().submission(n, tasks, edit=edit)
        caps = {"max_cost": 60_000} if n % 10 == 0 else {}
        return replace(
            asked,
            root=Path(f"/simulated/repository{n % PROJECTS}"),
            policy=replace(asked.policy, **caps),
        )

    async def play(self) -> None:
        """Let the week pass."""
        for n in range(LOOPS):
            asked = self.submission(n, TASKS)
            self.database.transact_sync("submit", lambda tx, asked=asked: submit(tx, self.ids, asked))
        for worker in self.workers:
            worker.start()
        looks, every = 0, int(PERSON_S * self.stretch / STRETCH / LOOK_S)
        while self.loop.time() < self.seconds:
            await asyncio.sleep(LOOK_S)
            looks += 1
            self.watch.check()
            self._restart()
            self._look()
            self._give_work()
            await self.person.answer_all()
            if looks % every == 0:
                await self._visit()
        self.over = True

    async def _visit(self) -> None:
        """Give up every plan that waits for a person, so that its loop gets its next one."""
        await self.person.mend_accounts()
        for loop in list(self.database.all(Loop).values()):
            plan = self.database.all(Plan).get(loop.plan_id or "")
            waits = loop.state in (LoopState.PAUSED, LoopState.STOPPED, LoopState.FAILED)
            if plan is not None and plan.status not in ENDED_PLAN and (waits or plan.failed_tasks):
                await self.person.asks("cancel", plan.id)

    def _restart(self) -> None:
        for worker in self.workers:
            if (error := worker.ended_badly) is not None:
                raise Violation("no_defects", f"{worker.name} ended by itself: {error!r}") from error
            if not worker.process.alive:
                worker.start()

    def _give_work(self) -> None:
        """Give each loop whose plan has ended its next one."""
        for loop in self.database.all(Loop).values():
            plan = self.database.all(Plan).get(loop.plan_id or "")
            if plan is None or plan.status not in ENDED_PLAN:
                continue
            n = int(loop.source_path.removeprefix("plan").removesuffix(".yaml"))
            self._turns[n] += 1
            asked = self.submission(n, 1 + self._turns[n] % TASKS, edit=self._turns[n])
            self.database.transact_sync("submit", lambda tx, asked=asked: submit(tx, self.ids, asked))

    # --- what is seen -------------------------------------------------------------------------------

    def _look(self) -> None:
        seen, now = self.seen, self.loop.time()
        plans = self.database.all(Plan)
        agents = [one for one in self.database.all(Run).values() if one.agent is not None]
        for one in agents:
            if one.id not in seen.runs and one.state is not RunState.QUEUED:
                seen.runs.add(one.id)
                loop_id = plans[one.plan_id].loop_id
                seen.served[loop_id] += 1
                seen.waiting_since.pop(loop_id, None)
        running = [one for one in agents if one.state is RunState.RUNNING]
        seen.looks += 1
        seen.busy += min(SLOTS, len(running))
        is_open = all(one.state is EnvelopeState.OPEN for one in self.database.all(Envelope).values())
        ready = self._ready() if is_open else set()
        busy = {plans[one.plan_id].loop_id for one in running}
        for loop_id in ready - busy:
            since = seen.waiting_since.setdefault(loop_id, now)
            seen.longest_wait_s = max(seen.longest_wait_s, now - since)
            if now - since > longest_wait_s(self.stretch):
                raise Violation(
                    "no_starvation", f"{loop_id} has had no agent since {since:.0f}, at {now:.0f}"
                )
        for loop_id in seen.waiting_since.keys() - ready:
            del seen.waiting_since[loop_id]
        stands = bool(ready) and not running
        seen.still_since = (seen.still_since if seen.still_since is not None else now) if stands else None
        if seen.still_since is not None:
            seen.longest_still_s = max(seen.longest_still_s, now - seen.still_since)
            if now - seen.still_since > STILL_S:
                raise Violation(
                    "no_deadlock", f"nothing runs since {seen.still_since:.0f}; ready: {sorted(ready)}"
                )

    def _ready(self) -> set[str]:
        """Return the loops that have a task which could start now."""
        now = VirtualClock(self.loop).now()
        plans = self.database.all(Plan)
        loops = self.database.all(Loop)
        return {
            plan.loop_id
            for task in self.database.all(Task).values()
            if task.status is TaskState.QUEUED
            and not task.unmet
            and (task.not_before is None or task.not_before <= now)
            and (plan := plans[task.plan_id]).status is PlanState.RUNNING
            and (plan.not_before is None or plan.not_before <= now)
            and loops[plan.loop_id].state is LoopState.RUNNING
            and loops[plan.loop_id].plan_id == plan.id
        }


def scenario(seed: int) -> Scenario:
    """Return fifty loops on four slots of one worker, with faults that are rare."""
    return Scenario(
        seed=seed,
        tasks=LOOPS * TASKS,
        loops=LOOPS,
        workers=1,
        hosts=1,
        slots=SLOTS,
        exclusive=True,
        faults=FAULTS,
        often=dict.fromkeys(FAULTS, 0.1),
    )


def played(seed: int, *, seconds: float, stretch: float = STRETCH) -> Week:
    """Play so many simulated seconds; raise `Violation` when a promise is broken."""
    week = run(scenario(seed), lambda drawn, loop: Week(drawn, loop, seconds=seconds, stretch=stretch))
    assert isinstance(week, Week)
    return week


def main(arguments: Sequence[str]) -> int:
    """Play, and say what was seen."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.week", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hours", type=float, default=WEEK_S / 3_600)
    parser.add_argument("--stretch", type=float, default=STRETCH, help="how slow agents are")
    asked = parser.parse_args(arguments)
    began = time.monotonic()
    try:
        week = played(asked.seed, seconds=asked.hours * 3_600, stretch=asked.stretch)
    except Violation as broken:
        print("\n".join(broken.history[-200:]))
        print(f"BROKEN  {broken}")
        return 1
    print(f"{told(week)}; {time.monotonic() - began:.0f} s")
    return 0


def told(week: Week) -> str:
    """Return what was seen in a line."""
    seen = week.seen
    plans = Counter(one.status.value for one in week.database.all(Plan).values())
    tasks = Counter(one.status.value for one in week.database.all(Task).values())
    return (
        f"{week.loop.time() / 3_600:.0f} simulated hours, {len(week.database.all(Loop))} loops on {SLOTS} slots, "
        f"{len(seen.runs)} agents, {seen.busy / seen.looks / SLOTS:.0%} of the slots busy; plans {dict(plans)}, "
        f"tasks {dict(tasks)}; longest wait of a loop {seen.longest_wait_s / 60:.0f} min, "
        f"nothing ran for {seen.longest_still_s / 60:.0f} min; fewest agents of a loop "
        f"{min(seen.served[one] for one in week.database.all(Loop))}; faults {dict(week.trouble.struck)}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
