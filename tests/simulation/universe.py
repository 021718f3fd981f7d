"""A whole home in one thread: real core, real engine, real workers; everything around them simulated."""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.fakes.seeded_engine import Faults, SeededEngine
from tests.fakes.virtual_loop import Process, VirtualClock, VirtualLoop
from tests.fakes.world import Numbered, fake_world
from tests.simulation.agents import COMMANDS, PRICES, SimAgent
from tests.simulation.answers import draw_policy
from tests.simulation.machines import GATE_ALL, Machine, SimGate, SimKeepers, acceptance
from tests.simulation.people import Person
from tests.simulation.promises import (
    by_hand,
    contradictions,
    dialogue,
    discovered,
    ends,
    healing,
    looks,
    money,
    prompt_loops,
    reviews,
    taking_back,
    territory,
)
from tests.simulation.promises.invariants import Violation, Watch
from tests.simulation.rows import Change, Connection, Database
from tests.simulation.scenario import Scenario
from tests.simulation.services import AGENT, OTHER, Services
from tests.simulation.target import SimRepository, Target
from tests.simulation.trouble import History, Trouble

from loopwright.adapters.home.membership import LeasedMembership
from loopwright.core.rows.model import Attempt, Finish, Leg, Loop, Plan, Run, Task
from loopwright.core.rows.waiting_rows import Envelope
from loopwright.core.values.errors import StoreUnavailable
from loopwright.core.values.policy import Limits, Policy
from loopwright.core.values.states import ENDED_PLAN, OPEN_FINISH, AttemptState, LoopState, TaskState
from loopwright.engine.intake.submit import Submission, submit
from loopwright.engine.people.handover import HUMAN
from loopwright.engine.rows.world import HomePaths, World
from loopwright.engine.worker.worker import WorkerLoop
from loopwright.ports import Base, PlannedTask, PlannedWork

STORM_S = 300.0
"""How long things may go wrong."""
QUIET_S = 30.0
"""So long without any change means that nothing will change by itself: longer than a lease, the look that follows
its end, and any wait that a leg keeps to itself. Too short a time would break `no_stall`, and hide nothing."""
HOST_LOST_S = 60.0
"""How long a machine may be silent before its work is begun anew elsewhere."""
LATE_S = 60.0
"""How late the start of a leg may arrive."""
LONGEST_S = 60_000.0
"""By then everything has come to rest, or never will."""
MOST_COMMITS = 40_000
MOST_READS = 500
"""More without any commit is looked at."""
MORE_PROMISES = (
    contradictions,
    dialogue,
    money,
    reviews,
    ends,
    looks,
    territory,
    taking_back,
    by_hand,
    discovered,
    prompt_loops,
    healing,
)
"""Modules that register theirs when they are imported, beside those of `invariants`."""


class LockHeld:
    """The membership of a home that one worker holds by a lock: who simulates starts no second one."""

    exclusive = True

    def acquire(self, note: Mapping[str, Any]) -> bool:
        return True

    def holder(self) -> Mapping[str, Any] | None:
        return None

    def beat(self) -> None:
        pass

    def beats(self) -> int:
        return 0

    def end_holder(self) -> int | None:
        return None

    def release(self) -> None:
        pass

    def attend(self, project_id: str) -> None:
        pass

    def attended(self, project_id: str) -> bool:
        return False


class NoFiles:
    """State files are an export: what is simulated has no folder to write them to."""

    async def beside(self, write: Callable[[], object]) -> None:
        write()

    def put(self, project: Path, kind: str, id: str, document: Mapping[str, Any], **_how: Any) -> Path:
        raise AssertionError("the project's folder does not exist")

    def put_private(self, path: Path, text: str) -> None:
        """Nothing reads what is in the home."""

    def append_events(self, project: Path, events: Any) -> None:
        raise AssertionError("the project's folder does not exist")


class Worker:
    """One worker process on a machine, which may die and be started again."""

    def __init__(self, universe: "Universe", n: int, machine: Machine) -> None:
        self._universe = universe
        self.name = f"worker{n}"
        self.machine = machine
        self.process = Process(self.name)
        self.process.alive = False
        self.loop: WorkerLoop | None = None
        self._incarnation = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the process anew: it remembers nothing."""
        self._incarnation += 1
        self.process = Process(f"{self.name}.{self._incarnation}")
        self._universe.processes.append(self.process)
        self._universe.history.note(f"{self.process.name} starts")
        self._task = self.process.start(self._work())

    async def _work(self) -> None:
        universe = self._universe
        self.loop = WorkerLoop(universe.world(self), NoFiles(), patience_s=60.0)
        try:
            await self.loop.run(universe.is_over)
        except StoreUnavailable as away:
            universe.history.note(f"{self.process.name} gives up: {away}")
        finally:
            self.process.kill()

    @property
    def ended_badly(self) -> BaseException | None:
        """What the process died of, if it died of itself."""
        if self._task is None or not self._task.done() or self._task.cancelled():
            return None
        return self._task.exception()


class Universe:
    """Everything there is in one run."""

    machine = Machine
    """What its hosts are."""

    def __init__(self, scenario: Scenario, loop: VirtualLoop) -> None:
        self.scenario = scenario
        self.loop = loop
        self.history = History()
        self.trouble = Trouble(scenario, self.history, loop)
        self.ids = Numbered()
        self.paths = HomePaths(root=Path("/simulated"))
        self.target = Target()
        self.services = Services(self.trouble)
        self.watch = Watch(self)
        self.database = Database(VirtualClock(loop), self._committed, self.watch.wrong_move)
        self.person = Person(self)
        self.reads, self.read_since = 0, 0.0
        """How often the rows were read since the last commit, and when that was."""
        self.over = False
        self.calm_at = 0.0
        """Since when nothing goes wrong any more."""
        self.commits = 0
        self.changed_at = 0.0
        self.processes: list[Process] = []
        self.engines: list[SeededEngine] = []
        self.engine = self._engine()
        self.machines = [self._machine(n) for n in range(scenario.hosts)]
        self.workers = [Worker(self, n, self.machines[n % scenario.hosts]) for n in range(scenario.workers)]
        self._edits = 0

    # --- making things ------------------------------------------------------------------------------

    def _machine(self, n: int) -> Machine:
        chance = self.trouble.chance("clocks")
        ahead, rate = chance.uniform(-30, 30), chance.uniform(0.95, 1.05)
        skewed = self.trouble.has("skew")
        clock = VirtualClock(self.loop, ahead_s=ahead if skewed else 0.0, rate=rate if skewed else 1.0)
        name = f"host{n}"
        return self.machine(
            name, self.target, self.trouble, clock, self.services, self._task_of, self.watch.effect
        )

    def _task_of(self, task_id: str) -> Task:
        return self.database.all(Task)[task_id]

    def _engine(self, host_id: str | None = None) -> SeededEngine:
        often = {name: 0.05 * self.scenario.often[name] for name in self.scenario.faults}
        faults = Faults(
            lose=often.get("lost_start", 0.0),
            delay=often.get("late_start", 0.0),
            duplicate=often.get("double_start", 0.0),
            delay_s=LATE_S,
        )
        calm = self.trouble.calm or self.scenario.most is not None
        made = SeededEngine(
            self.scenario.seed, on_error=self._leg_broke, faults=None if calm else faults, host_id=host_id
        )
        self.engines.append(made)
        return made

    def _leg_broke(self, leg: Leg, error: BaseException) -> None:
        self.watch.defect(f"leg {leg.id} let an exception escape: {error!r}")

    def escaped(self, _loop: Any, about: Mapping[str, Any]) -> None:
        """Hear of an exception in a callback."""
        self.watch.defect(f"{about['message']}: {about.get('exception')!r}")

    def world(self, worker: Worker) -> World:
        """Return the ports of one worker process."""
        machine, scenario = worker.machine, self.scenario
        # An embedded engine forgets with its process; a cluster's does not.
        engine = self._engine(machine.name) if scenario.exclusive else self.engine.peer(machine.name)
        chance = self.trouble.chance("backoff")
        return fake_world(
            machine.name,
            slots=scenario.slots,
            paths=self.paths,
            store=Connection(self.database, machine.clock, self.trouble, self._read),
            clock=machine.clock,
            ids=self.ids,
            chance=chance.random,
            keepers=SimKeepers(machine, self.trouble),
            repository=lambda _project: SimRepository(  # type: ignore[arg-type, return-value]
                self.target, self.trouble, machine.name, self.watch.effect
            ),
            agent=_agent,
            asked=lambda directory, _secrets: machine.asked(directory),
            discovered=lambda directory, _secrets: machine.noticed(directory),
            gate=SimGate(machine),
            engine=engine,
            membership=LockHeld() if scenario.exclusive else LeasedMembership(),
            caches=False,
        )

    def has_agent(self, run: Run) -> bool:
        """Say whether the process of a run is there."""
        folder = self.paths.run(run.id)
        kept = [machine.kept.get(folder) for machine in self.machines]
        return any(one is not None and one.state == "alive" for one in kept)

    def running(self) -> list[Run]:
        """Return the runs whose process is there."""
        kept = [one for machine in self.machines for one in machine.kept.values() if one.state == "alive"]
        rows = self.database.all(Run)
        return [rows[run_id] for run_id in dict.fromkeys(one.spec.run_id for one in kept) if run_id in rows]

    # --- work ---------------------------------------------------------------------------------------

    def submission(self, n: int, tasks: int, *, edit: int = 0) -> Submission:
        """Return the work of one loop: a random DAG, in which a task waits only for earlier ones."""
        chance = self.trouble.chance(f"plan {n} {edit}")
        density = chance.choice((0.0, 0.5, 1.0, 2.0))
        planned = []
        for position in range(tasks):
            count = min(position, int(chance.expovariate(1) * density))
            waits_for = sorted(chance.sample(range(position), count))
            key = f"p{n}t{position}"
            planned.append(
                PlannedTask(
                    key=key,
                    title=f"Do {key}",
                    acceptance=(acceptance(key),),
                    depends_on=tuple(f"p{n}t{one}" for one in waits_for),
                    priority=chance.choice((10, 50, 50, 90)),
                    scope=(f"s{chance.randint(0, 3)}/**",) if chance.random() < 0.2 else (),
                )
            )
        if self.trouble.has("look"):
            planned.append(looks.planned(n, planned))
        base = self.target.commit(self.target.tree({"README": "hello", "shared.txt": "nobody"}), ())
        self.target.refs.setdefault(ends.BASE, base.sha)
        asked = Submission(
            root=Path("/simulated/repository"),
            subfolder="",
            source_kind="yaml",
            source_path=f"plan{n}.yaml",
            work=PlannedWork(title=f"Plan {n}", tasks=tuple(planned), sha256=f"{n}.{edit}"),
            base=Base(ref="main", sha=base.sha),
            policy=replace(
                healing.with_healing(self.trouble, self._policy(chance), f"{n} {edit}"),
                review=draw_policy(self.trouble, f"{n} {edit}"),
                finish=self.trouble.chance(f"end {n} {edit}").choice(ends.WAYS),
            ),
            gates=(GATE_ALL,),
            actor="person",
        )
        return prompt_loops.as_prompt(self.trouble, asked) if self.trouble.has("rounds") and n == 0 else asked

    def _policy(self, chance: random.Random) -> Policy:
        policy = Policy(
            agent=AGENT,
            parallel=chance.choice((1, 2, 3, 8)),
            max_attempts=chance.choice((1, 3)),
            max_call_retries=chance.choice((1, 5)),
            on_task_error=chance.choice(("hold", "hold", "fail")),
            limits=Limits(hard=200.0),
            host_lost_after=HOST_LOST_S,
            permission_mode=chance.choice(("edit",) * 6 + ("read-only", "sandboxed-all")),
            allowed_commands=chance.choice(((), (), COMMANDS[:1])),
            answer_within=chance.choice((None, 20.0, 90.0, 400.0)),
            wait_for_limits=chance.random() < 0.8,
            longest_wait=chance.choice((None, 604_800.0, 60.0)),
            fallback=chance.choice(((), (), (OTHER,), (f"{OTHER}:big",))),
            prices=PRICES,
            # Of a stream of its own: what else follows from a seed stays what it was.
            parallel_gates=self.trouble.chance("parallel gates").choice((1, 2, 4)),
            fix_cycles=self.trouble.chance("fix cycles").choice((0, 1, 3)),
        )
        if not self.trouble.has("budget"):
            return policy
        return replace(
            policy,
            max_cost=chance.choice((None, chance.randint(20_000, 400_000))),
            max_cost_per_run=chance.choice((None, chance.randint(5_000, 120_000))),
            max_cost_per_task=chance.choice((None, chance.randint(50_000, 200_000))),
            max_cost_per_day=chance.choice((None, chance.randint(50_000, 600_000))),
            reserve_per_run=self.trouble.chance("reserve").choice((None, 10_000, 60_000)),
        )

    def edited(self, plan: Plan) -> Submission:
        """Return the source of a plan as it is after one more edit."""
        self._edits += 1
        source = self.database.all(Loop)[plan.loop_id].source_path
        n = int(source.removeprefix("plan").removesuffix(".yaml"))
        return self.submission(n, min(6, self._tasks_of(n)), edit=self._edits)

    def _tasks_of(self, n: int) -> int:
        whole, loops = self.scenario.tasks, self.scenario.loops
        return whole // loops + (1 if n < whole % loops else 0)

    # --- playing ------------------------------------------------------------------------------------

    async def play(self) -> None:
        """Let the storm rage, then let everything come to rest, and look at what is left."""
        for n in range(self.scenario.loops):
            asked = self.submission(n, self._tasks_of(n))
            self.database.transact_sync("submit", lambda tx, asked=asked: submit(tx, self.ids, asked))
        for worker in self.workers:
            worker.start()
        helpers = [asyncio.ensure_future(self._nemesis()), asyncio.ensure_future(self.person.meddle())]
        await self._until(lambda: self.loop.time() > STORM_S or self._at_rest())
        self.trouble.calm = True
        self.calm_at = self.loop.time()
        self.history.note("-- the storm is over --")
        for engine in self.engines:
            engine.calm()
        for helper in helpers:
            await helper
        for worker in self.workers:
            worker.process.thaw()
        await self.person.mend_accounts()
        self.changed_at = self.loop.time()
        await self._rest()
        for task in self.loop.lost():
            self.watch.defect(f"nobody heard what {task.get_name()} died of: {task.exception()!r}")
        self.watch.at_the_end()
        self.over = True

    async def _rest(self) -> None:
        while True:
            await self._until(self._is_quiet)
            if not await self.person.put_in_order():
                return
            self.changed_at = self.loop.time()

    def _is_quiet(self) -> bool:
        """Say whether nothing has changed for long, nothing runs, and nothing waits for its time."""
        runs = any(one.state == "alive" for machine in self.machines for one in machine.kept.values())
        if runs or self._waits_for_a_time():
            self.changed_at = self.loop.time()
        late_s = LATE_S if self.trouble.has("late_start") else 0.0
        lost_s = HOST_LOST_S if any(one.gone for one in self.machines) else 0.0
        return self.loop.time() - max(self.changed_at, self.calm_at + max(late_s, lost_s)) > QUIET_S

    def _waits_for_a_time(self) -> bool:
        now = VirtualClock(self.loop).now()
        running = {one.id for one in self.database.all(Loop).values() if one.state is LoopState.RUNNING}
        plans = {one.id: one for one in self.database.all(Plan).values() if one.loop_id in running}
        waiting = [
            one
            for one in self.database.all(Attempt).values()
            if one.state is AttemptState.WAITING and one.plan_id in plans
        ]
        queued = [one for one in self.database.all(Task).values() if one.plan_id in plans]
        opens = [one.until for one in self.database.all(Envelope).values()]
        times = [
            *(opens if any(one.status not in ENDED_PLAN for one in plans.values()) else ()),
            *(one.wake_at for one in waiting),
            *(one.not_before for one in queued if one.status is TaskState.QUEUED),
            *(plan.not_before for plan in plans.values()),
            *(one.not_before for one in self.database.all(Finish).values() if one.state in OPEN_FINISH),
        ]
        return any(at is not None and at > now for at in times)

    def _at_rest(self) -> bool:
        return all(plan.status in ENDED_PLAN for plan in self.database.all(Plan).values())

    async def _until(self, condition: Any) -> None:
        while not condition():
            self.watch.check()
            if self.trouble.calm:
                await self.person.answer_all()
            for worker in self.workers:
                if (error := worker.ended_badly) is not None:
                    raise Violation("no_defects", f"{worker.name} ended by itself: {error!r}") from error
                if worker.process.alive or worker.machine.gone:
                    continue
                if self.trouble.calm or self.trouble.chance("restart").random() < 0.1:
                    worker.start()
                elif self.trouble.has("answer"):
                    await self.person.answer_meanwhile()
            if self.loop.time() > LONGEST_S or self.commits > MOST_COMMITS:
                raise Violation("no_stall", f"it does not come to rest: {self.commits} commits")
            await asyncio.sleep(1.0)

    async def _nemesis(self) -> None:
        """Freeze workers and restart machines."""
        chance = self.trouble.chance("nemesis")
        while not self.trouble.calm:
            await asyncio.sleep(chance.expovariate(1 / 30))
            worker = chance.choice(self.workers)
            if worker.process.running and self.trouble.strikes("freeze", 0.2, worker.process.name):
                worker.process.freeze()
                asyncio.get_running_loop().call_later(chance.choice((2, 14, 30, 120)), worker.process.thaw)
            machine = chance.choice(self.machines)
            if self.trouble.strikes("reboot", 0.05, machine.name):
                self._take_down(machine)
            others = [one for one in self.machines if one is not machine and not one.gone]
            if others and self.trouble.strikes("gone", 0.05, machine.name):
                machine.gone = True
                self._take_down(machine)

    def _take_down(self, machine: Machine) -> None:
        machine.reboot()
        for worker in self.workers:
            if worker.machine is machine:
                worker.process.kill()

    async def is_over(self) -> bool:
        """Say whether the workers may go."""
        return self.over

    @property
    def is_held(self) -> bool:
        """Say whether a worker has the home."""
        return any(worker.process.alive for worker in self.workers)

    def _committed(self, name: str, changes: tuple[Change, ...]) -> None:
        self.commits += 1
        self.reads, self.read_since = 0, self.loop.time()
        if any(change.kind in (Attempt, Plan, Task, Loop, Finish) for change in changes):
            self.changed_at = self.loop.time()
        self.watch.committed(name, changes)

    def _read(self) -> None:
        self.reads += 1
        if self.reads > MOST_READS:
            self.watch.effect("read", {"reads": self.reads, "seconds": self.loop.time() - self.read_since})

    # --- leaving ------------------------------------------------------------------------------------

    async def leave(self) -> None:
        """Let every task end, the dead ones too: a coroutine that is only thrown away complains."""
        mine = asyncio.current_task()
        self.watch.closed = self.trouble.over = True
        left: list[Any] = []
        for _ in range(50):
            for process in self.processes:
                process.raise_from_the_dead()
            left = [task for task in self.loop.unfinished() if task is not mine]
            if not left:
                return
            for task in left:
                task.cancel()
            await asyncio.sleep(100.0)
        raise AssertionError(f"these do not end: {left}")


def _agent(name: str) -> SimAgent:
    assert name != HUMAN, "a person cannot be started"
    return SimAgent(name=name)


def play(scenario: Scenario) -> Universe:
    """Play a scenario; raise `Violation` with its history when a promise was broken."""
    return run(scenario, Universe)


def run(scenario: Scenario, made: Callable[[Scenario, VirtualLoop], Universe]) -> Universe:
    """Play a scenario in a universe of some kind."""
    logger = logging.getLogger("loopwright")
    heard = _Heard()
    logger.addHandler(heard)
    propagates, logger.propagate = logger.propagate, False
    loop = VirtualLoop()
    universe = made(scenario, loop)
    heard.universe = universe
    loop.set_exception_handler(universe.escaped)
    try:
        try:
            loop.run_until_complete(universe.play())
        finally:
            loop.set_exception_handler(lambda _loop, _context: None)
            loop.run_until_complete(universe.leave())
            loop.close()
    except Violation as broken:
        broken.history = universe.history.lines
        broken.scenario = scenario
        raise
    finally:
        logger.removeHandler(heard)
        logger.propagate = propagates
    return universe


class _Heard(logging.Handler):
    """Puts what the engine logs into the history; an error there is a defect of the engine."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.universe: Universe | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if self.universe is not None:
            why = getattr(record, "why", "") or (repr(record.exc_info[1]) if record.exc_info else "")
            self.universe.history.note(f"log: {record.getMessage()} {why}")
            if record.levelno >= logging.ERROR and not self.universe.watch.closed:
                self.universe.watch.defect(f"{record.getMessage()}: {why}")
