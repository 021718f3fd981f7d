"""A home without disk, processes or git: the engine's own functions over a store in memory.

`tests.simulation.Universe` builds its workers from the same `tests.fakes.world`. It stays a second world, because
there legs run by themselves in virtual time, while tests here stop between two moves of one leg.

Only what lies outside is doubled: time, the repository, the keepers and the gate. What a leg would write while an
agent works is written by `Hand`, through the same moves that a leg uses.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TypeVar

from tests.fakes.clock import FakeClock
from tests.fakes.seeded_engine import SeededEngine
from tests.fakes.world import Numbered, UnwatchedGate, WatchfulStore, fake_world

from loopwright.adapters.home.membership import LeasedMembership, LockedMembership
from loopwright.core.policy.retry import Failed
from loopwright.core.replies.questions import Asking
from loopwright.core.rows.events import RecordedEvent
from loopwright.core.rows.model import (
    Attempt,
    Command,
    Leg,
    Loop,
    Outcome,
    Plan,
    Project,
    Role,
    Run,
    Task,
    Worker,
)
from loopwright.core.values.accounts import Accounts, usual
from loopwright.core.values.errors import MergeConflict, UserError
from loopwright.core.values.failures import RULES, Failure, Level
from loopwright.core.values.findings import Check, CheckStatus, Verdict, VerdictStatus
from loopwright.core.values.ids import Kind
from loopwright.core.values.policy import GateCommand, Policy
from loopwright.core.values.states import AttemptState, RunState, TaskState
from loopwright.engine.attempt.attempt import PAUSED
from loopwright.engine.attempt.landing_line import LandingLines
from loopwright.engine.intake.submit import Submission, submit
from loopwright.engine.memory.interrupts import Interrupts
from loopwright.engine.money import quotas
from loopwright.engine.people import commands
from loopwright.engine.plans.rollback import carry_out
from loopwright.engine.plans.verify import VerifyLeg
from loopwright.engine.processes.process_environment import free_port_base
from loopwright.engine.rows.failing import fail_attempt
from loopwright.engine.rows.moves import cancel_attempt, change_attempt, complete_task, move_attempt, move_run
from loopwright.engine.rows.questions import wait_for_answers
from loopwright.engine.rows.world import HomePaths
from loopwright.engine.worker.advance import advance
from loopwright.engine.worker.leases import Lease
from loopwright.engine.worker.reconcile import reconcile
from loopwright.engine.worker.worker import apply_command
from loopwright.ports import (
    Base,
    Candidate,
    Exit,
    Failpoint,
    GateRequest,
    Membership,
    OutputLine,
    PlannedTask,
    PlannedWork,
    RunSpec,
    Sighting,
    Standing,
    Step,
    Tx,
    no_failpoint,
)
from loopwright.testing.memory_store import MemoryStore

T = TypeVar("T")
R = TypeVar("R")

GATE = GateCommand(name="tests", command="pytest")
PASSED = Verdict(
    status=VerdictStatus.PASSED, checks=(Check(id="1", name="tests", status=CheckStatus.PASSED),)
)
FAILED = Verdict(
    status=VerdictStatus.FAILED,
    checks=(Check(id="1", name="tests", status=CheckStatus.FAILED, message="1 != 2"),),
    reason="1 of 1 checks failed",
)
BROKEN = Verdict(status=VerdictStatus.INCONCLUSIVE, reason="no space left")


# --- what lies outside -------------------------------------------------------------------------------


class OneBranch:
    """A repository in which every branch exists and stands still, with a list of what landed; unless it is `broken`."""

    def __init__(self) -> None:
        self.broken: Exception | None = None
        self.branches: dict[str, str] = {}
        self.line: list[Step] = []
        """What landed, the newest first."""
        self.conflict: MergeConflict | None = None
        self._built: dict[str, Step] = {}
        self.differs: tuple[str, ...] = ()
        """What differs between any two commits."""

    def land(self, task_id: str) -> str:
        """Note a landing, as a leg does."""
        step = Step(sha=f"{len(self.line) + 1:040x}", tree=f"tree {task_id}", tasks=(task_id,))
        self.line.insert(0, step)
        return step.sha

    async def drop_quarantine(self, older_than: datetime) -> tuple[()]:
        return ()

    async def steps(self, tip: str, *, since: str) -> tuple[Step, ...]:
        self._check()
        return tuple(self.line)

    async def without(
        self, tip: str, *, landings: Sequence[str], command_id: str, **_facts: Any
    ) -> Candidate:
        self._check()
        if self.conflict is not None:
            raise self.conflict
        sha = f"{len(self.line) + 1:040x}"
        self._built[sha] = Step(sha=sha, tree=f"tree {sha}", command=command_id, takes_out=tuple(landings))
        return Candidate(parent=tip, sha=sha, tree=f"tree {sha}", empty=False)

    async def advance(self, branch: str, *, new: str, old: str) -> bool:
        self._check()
        if self.branches[branch] != old:
            return False
        self.line.insert(0, self._built[new])
        return True

    async def changed(self, old: str, new: str) -> tuple[str, ...]:
        return self.differs

    async def files_at(self, sha: str, paths: Sequence[str]) -> dict[str, bytes]:
        return {}

    async def file_at(self, sha: str, path: str) -> str | None:
        return "one\ntwo\n" if path == "app.py" else None

    async def ensure_branch(self, branch: str, sha: str) -> str:
        self._check()
        return self.branches.setdefault(branch, sha)

    async def tip(self, branch: str) -> str:
        self._check()
        return self.branches[branch]

    async def standing(self, branch: str) -> Standing:
        return Standing(tip=await self.tip(branch))

    async def tree_of(self, sha: str) -> str:
        return f"tree of {sha}"

    async def checkout(self, path: Path, sha: str, *, copy_files: Any = ()) -> None:
        self._check()

    async def remove_workspace(self, path: Path) -> None:
        self._check()

    def _check(self) -> None:
        if self.broken is not None:
            raise self.broken


class InstantKeepers:
    """Every process ends as soon as it is waited for; while `busy`, only when it is told to."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.started: list[str] = []
        self.busy = False
        self._asked = False

    def _exit(self) -> Exit:
        now = self._clock.now()
        ended_by: Literal["asked", "itself"] = "asked" if self._asked else "itself"
        return Exit(
            code=0, ended_by=ended_by, started_at=now, ended_at=now, output_bytes=0, output_sha256="0" * 64
        )

    def get_ready(self) -> None:
        """Nothing is needed ahead."""

    async def start(self, spec: RunSpec) -> None:
        self.started.append(spec.run_id)
        self._asked = False

    def look(self, directory: Path) -> Sighting:
        return Sighting(state="absent")

    async def follow(self, directory: Path, offset: int = 0) -> AsyncIterator[OutputLine]:
        for line in ():
            yield line

    async def wait(self, directory: Path) -> Exit:
        while self.busy:
            await asyncio.sleep(0)
        return self._exit()

    async def end(self, directory: Path, *, polite: bool = True) -> Exit:
        self._asked, self.busy = self.busy, False
        return self._exit()

    async def sweep(self, *run_ids: str) -> int:
        return 0

    def evidence(self, directory: Path) -> str:
        return ""

    def close(self) -> None:
        """Nothing is kept for the next start."""


class Oracle(UnwatchedGate):
    """A gate that says what it was told to say."""

    def __init__(self) -> None:
        self.answer = PASSED
        self.asked: list[tuple[GateCommand, ...]] = []

    def verdict(self, request: GateRequest, exit: Exit) -> Verdict:
        self.asked.append(request.commands)
        return self.answer


class Untouched:
    """Stands for a port that must not be used here."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} must not be used here")


def agents(*known: str) -> Callable[[str], Any]:
    """Return a registry that knows these names and no other."""

    def agent(name: str) -> Any:
        if name not in known:
            raise UserError(
                f"there is no agent named {name!r}",
                code="adapter_not_found",
                hint=f"known are: {', '.join(known)}",
            )
        return Untouched()

    return agent


# --- a home ------------------------------------------------------------------------------------------


def planned(key: str, *depends_on: str, **changes: Any) -> PlannedTask:
    """Return a task as a source gives it."""
    return PlannedTask(**{"key": key, "title": f"Do {key}", "depends_on": depends_on} | changes)


@dataclass(kw_only=True)
class Home:
    """One worker's view of a home, with the levers that a test pulls."""

    exclusive: bool = True
    slots: int = 4
    host: str = "host-a"
    clock: FakeClock = field(default_factory=FakeClock)
    failpoint: Failpoint = no_failpoint
    chance: float = 0.5
    fix_cycles: int = 0
    """Most tests are about what follows when the machine mends nothing by itself."""
    store: MemoryStore = None  # type: ignore[assignment]
    engine: SeededEngine = None  # type: ignore[assignment]
    ids: Numbered = field(default_factory=Numbered)
    repository: OneBranch = field(default_factory=OneBranch)
    gate: Oracle = field(default_factory=Oracle)
    agent: Callable[[str], Any] = field(default_factory=lambda: agents("claude", "other"))
    accounts: Accounts = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.store is None:
            self.store = WatchfulStore(self.clock, failpoint=self.failpoint)
        if self.engine is None:
            self.engine = SeededEngine(0, on_error=_no_error)
        self.membership: Membership = (
            LockedMembership(Path("/nowhere")) if self.exclusive else LeasedMembership()
        )
        self.keepers = InstantKeepers(self.clock)
        self.hand = Hand(self)
        self.world = fake_world(
            self.host,
            slots=self.slots,
            paths=HomePaths(root=Path("/nowhere")),
            store=self.store,
            clock=self.clock,
            ids=self.ids,
            chance=lambda: self.chance,
            keepers=self.keepers,
            repository=lambda _project: self.repository,  # type: ignore[arg-type, return-value]
            agent=self.agent,
            gate=self.gate,
            engine=self.engine,
            membership=self.membership,
            accounts=self.accounts,
        )

    async def launch(self) -> "Home":
        """Let the engine take legs; each stays in flight until it is ended here."""

        async def execute(leg: Leg) -> None:
            await asyncio.Event().wait()

        await self.engine.launch(execute, worker_id=f"worker of {self.host}", slots=self.slots)
        return self

    def beside(self, host: str) -> "Home":
        """Return another worker's view of the same home, on another host."""
        return Home(
            exclusive=self.exclusive,
            slots=self.slots,
            host=host,
            clock=self.clock,
            store=self.store,
            engine=self.engine.peer(),
            ids=self.ids,
            repository=self.repository,
            gate=self.gate,
            agent=self.agent,
            accounts=self.accounts,
        )

    # --- taking work in ---

    def submission(self, *tasks: PlannedTask, **changes: Any) -> Submission:
        """Return a submission of these tasks."""
        policy = replace(changes.pop("policy", Policy()), fix_cycles=self.fix_cycles)
        sha256 = changes.pop("sha256", "a" * 64)
        values: dict[str, Any] = {
            "root": Path("/somewhere/repo"),
            "subfolder": "",
            "source_kind": "yaml",
            "source_path": "plan.yaml",
            "work": PlannedWork(title="A plan", tasks=tasks, sha256=sha256),
            "base": Base(ref="main", sha="1" * 40),
            "policy": policy,
            "gates": (GATE,),
            "actor": "me",
        }
        return Submission(**values | changes)

    def submit(self, *tasks: PlannedTask, **changes: Any) -> Plan:
        """Submit a plan of these tasks."""
        asked = self.submission(*tasks, **changes)
        return self.store.transact_sync("submit", lambda tx: submit(tx, self.ids, asked)).plan

    # --- letting time pass ---

    async def turn(self) -> list[Leg]:
        """Apply policy until it has nothing more to say; start and return the legs."""
        legs: list[Leg] = []
        while True:
            advanced = await advance(self.world)
            for leg in advanced.legs:
                await self.engine.start(leg)
            legs += advanced.legs
            if not advanced.dispatched:
                return legs

    async def reconcile(self) -> list[Leg]:
        """Bring rows and reality together; start and return the legs."""
        legs = await reconcile(self.world)
        for leg in legs:
            await self.engine.start(leg)
        return list(legs)

    def lease(self, *, seconds: float = 15.0) -> Lease:
        """Return the lease of one more worker on this host, which has not joined yet."""
        now = self.clock.now()
        blank = Worker(
            id="",
            host_id=self.host,
            boot_id="boot",
            pid=7,
            hostname=self.host,
            slots=self.slots,
            version="0",
            started_at=now,
            lease_until=now,
        )
        return Lease(self.store, self.clock, self.ids, self.membership, me=blank, seconds=seconds)

    async def ended(self, leg: Leg) -> None:
        """Take a leg out of flight."""
        await self.engine.cancel(leg)

    async def verify(
        self, leg: Leg, answer: Verdict = PASSED, *, interrupts: Interrupts | None = None
    ) -> None:
        """Run the verification for real, with the gate saying this."""
        self.gate.answer = answer
        await VerifyLeg(self.world, leg, interrupts=interrupts or Interrupts()).run()
        await self.ended(leg)

    async def command(self, verb: str, target: str, **arguments: Any) -> Command:
        """Write a command down and carry it out."""

        def ask(tx: Tx) -> Command:
            return commands.request(tx, self.ids, actor="me", verb=verb, target=target, arguments=arguments)

        command = self.store.transact_sync("request", ask)
        if verb in commands.BY_GIT:
            return await carry_out(self.world, LandingLines(), command)
        return await apply_command(self.store, self.ids, command)

    # --- looking ---

    def get(self, kind: type[R], id: str | None) -> R:
        """Return one row that is there."""
        row = self.store.read_sync(lambda tx: tx.get(kind, id or ""))
        assert row is not None, f"no {kind.__name__} {id}"
        return row

    def all(self, kind: type[R], **where: Any) -> list[R]:
        """Return the rows that match."""
        return self.store.read_sync(lambda tx: tx.find(kind, **where))

    def plan(self) -> Plan:
        """Return the only plan."""
        [plan] = self.all(Plan)
        return plan

    def loop(self) -> Loop:
        """Return the only loop."""
        [loop] = self.all(Loop)
        return loop

    def project(self) -> Project:
        """Return the only project."""
        [project] = self.all(Project)
        return project

    def task(self, key: str) -> Task:
        """Return the task of this key."""
        [task] = self.all(Task, key=key)
        return task

    def attempt(self, key: str) -> Attempt:
        """Return the present attempt at the task of this key."""
        return self.get(Attempt, self.task(key).attempt_id)

    def events(self, *types: str) -> list[RecordedEvent]:
        """Return what happened."""
        return self.store.read_sync(lambda tx: tx.events(types=types, limit=100_000))

    def told(self, *types: str) -> list[str]:
        """Return the types of what happened, in order."""
        return [event.type for event in self.events(*types)]

    def everything(self) -> dict[str, Any]:
        """Return all rows, to see that nothing changed."""
        return {
            f"{kind.__name__} {key}": row
            for kind, rows in self.store._rows.items()
            for key, row in rows.items()
        }


def _no_error(leg: Leg, error: BaseException) -> None:
    raise AssertionError(f"leg {leg.id} failed") from error


_BEFORE_AN_AGENT = frozenset({AttemptState.PREPARING, AttemptState.WORKING})


class Hand:
    """Writes what a leg writes while it carries an attempt on, stage by stage, under the leg's fence."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def _now(self, work: Callable[[Tx], T]) -> T:
        return self._home.store.transact_sync("leg", work)

    def go_on(self, leg: Leg) -> bool:
        """Do one stage, or obey an interrupt; say whether the leg has more to do."""
        attempt = self._home.get(Attempt, leg.subject)
        if attempt.interrupt and not (
            attempt.state is AttemptState.LANDING and attempt.interrupt == "cancel"
        ):
            self._obey(leg)
            return False
        match attempt.state:
            case AttemptState.PREPARING:
                self._now(lambda tx: self._prepare(tx, leg))
            case AttemptState.WORKING:
                self._now(lambda tx: self._work(tx, leg))
            case AttemptState.CHECKING:
                self._now(lambda tx: move_attempt(tx, attempt, AttemptState.LANDING, fence=leg.fence))
            case AttemptState.LANDING:
                self._now(lambda tx: self._land(tx, leg))
                return False
            case _:
                return False
        return True

    def land(self, leg: Leg) -> Task:
        """Carry the attempt on to its landing."""
        while self.go_on(leg):
            pass
        return self._home.get(Task, self._home.get(Attempt, leg.subject).task_id)

    def until(self, leg: Leg, state: AttemptState) -> Attempt:
        """Carry the attempt on until it is in this state."""
        while (attempt := self._home.get(Attempt, leg.subject)).state is not state:
            assert self.go_on(leg), f"{attempt.state} came to an end before {state}"
        return attempt

    def fail(
        self,
        leg: Leg,
        failure: Failure,
        detail: str = "it did not work",
        *,
        lasted: float | None = None,
        lasting: bool = False,
    ) -> Task:
        """End the attempt with a failure."""
        failed = Failed(
            failure=failure,
            detail=detail,
            lasted=None if lasted is None else timedelta(seconds=lasted),
            lasting=lasting,
        )
        counts = RULES[failure].level in (Level.ATTEMPT, Level.RACE)

        def over(tx: Tx) -> Task:
            attempt = tx.get(Attempt, leg.subject)
            assert attempt is not None
            return fail_attempt(
                tx,
                self._home.ids,
                attempt,
                failed,
                fence=leg.fence,
                counts=counts,
                chance=self._home.chance,
                evidence=f"evidence of: {detail}",
            )

        return self._now(over)

    def judge(self, leg: Leg, verdict: Verdict) -> Run:
        """Record a gate run on the attempt's candidate."""

        def judged(tx: Tx) -> Run:
            attempt = change_attempt(tx, leg.subject, leg.fence)
            run = Run(
                id=self._home.ids(Kind.RUN),
                plan_id=attempt.plan_id,
                task_id=attempt.task_id,
                attempt_id=attempt.id,
                role=Role.GATE,
                state=RunState.QUEUED,
                created_at=tx.now(),
            )
            tx.insert(run)
            return move_run(tx, move_run(tx, run, RunState.RUNNING), RunState.COMPLETE, verdict=verdict)

        return self._now(judged)

    def park(self, leg: Leg, wake_at: datetime | None) -> Attempt:
        """Let a working attempt wait for the service."""
        self.until(leg, AttemptState.WORKING)

        def park(tx: Tx) -> Attempt:
            attempt = tx.get(Attempt, leg.subject)
            assert attempt is not None
            run = tx.get(Run, attempt.run_id or "")
            assert run is not None
            if run.state is RunState.QUEUED:
                run = move_run(tx, run, RunState.RUNNING)
            move_run(tx, run, RunState.ERROR, cost_micros=0)
            waiting = AttemptState.WAITING
            return move_attempt(tx, attempt, waiting, fence=leg.fence, wake_at=wake_at, wait_reason="quota")

        return self._now(park)

    def work(self, leg: Leg) -> Attempt:
        """Carry the attempt on until its agent works, or until it may not."""
        while (attempt := self._home.get(Attempt, leg.subject)).state in _BEFORE_AN_AGENT:
            if attempt.state is AttemptState.WORKING and self._run(attempt).state is not RunState.QUEUED:
                break
            self.go_on(leg)
        return attempt

    def limit(self, leg: Leg, failure: Failure, *, retry_at: datetime | None = None, of: str = "") -> Attempt:
        """Let a working attempt find its account closed."""
        run = self._run(self.work(leg))
        failed = Failed(failure=failure, detail=f"it said {failure}", retry_at=retry_at, limited_model=of)

        def park(tx: Tx) -> Attempt:
            attempt = change_attempt(tx, leg.subject, leg.fence)
            quotas.settle_account(tx, run, quotas.AccountReport(refused=failed), chance=self._home.chance)
            move_run(tx, run, RunState.ERROR, cost_micros=0)
            waits = quotas.parked(tx, run, failed)
            return move_attempt(tx, attempt, AttemptState.WAITING, fence=leg.fence, **waits)

        return self._now(park)

    def _run(self, attempt: Attempt) -> Run:
        return self._home.get(Run, attempt.run_id)

    def ask(self, leg: Leg, *asked: Asking) -> Attempt:
        """Let a working attempt ask a person."""
        self.until(leg, AttemptState.WORKING)

        def ask(tx: Tx) -> Attempt:
            attempt = tx.get(Attempt, leg.subject)
            assert attempt is not None
            run = tx.get(Run, attempt.run_id or "")
            assert run is not None
            if run.state is RunState.QUEUED:
                run = move_run(tx, run, RunState.RUNNING)
            run = move_run(tx, run, RunState.AWAITING_RESPONSE, cost_micros=1, ended_at=tx.now())
            plan = tx.get(Plan, attempt.plan_id)
            assert plan is not None
            ids = self._home.ids
            return wait_for_answers(tx, ids, plan, attempt, run, asked, fence=leg.fence)

        return self._now(ask)

    def _prepare(self, tx: Tx, leg: Leg) -> None:
        me = self._home.world.me
        attempt = change_attempt(
            tx,
            leg.subject,
            leg.fence,
            base_sha="2" * 40,
            workspace="/nowhere",
            host_id=me.host_id,
            port_base=free_port_base(tx, me.host_id),
        )
        move_attempt(tx, attempt, AttemptState.WORKING, fence=leg.fence)

    def _work(self, tx: Tx, leg: Leg) -> None:
        attempt = change_attempt(tx, leg.subject, leg.fence)
        run = tx.get(Run, attempt.run_id or "")
        assert run is not None
        if run.state is RunState.QUEUED:
            accounts = self._home.world.accounts
            account = quotas.account_of(tx, accounts, attempt, run) or usual(accounts, attempt.agent)
            if quotas.admit(tx, attempt, run, fence=leg.fence, account=account):
                plan = tx.get(Plan, attempt.plan_id)
                assert plan is not None
                quotas.note_account(tx, attempt, plan, run, account)
                change_attempt(tx, attempt.id, leg.fence, account=account)
                move_run(tx, run, RunState.RUNNING, host_id=self._home.world.me.host_id, account=account)
            return
        quotas.settle_account(tx, run, quotas.AccountReport(answered=True), chance=self._home.chance)
        move_run(tx, run, RunState.COMPLETE, cost_micros=10)
        move_attempt(tx, attempt, AttemptState.CHECKING, fence=leg.fence, tip_sha="3" * 40)

    def _land(self, tx: Tx, leg: Leg) -> None:
        attempt = change_attempt(tx, leg.subject, leg.fence)
        move_attempt(tx, attempt, AttemptState.LANDED, fence=leg.fence)
        task = tx.get(Task, attempt.task_id)
        assert task is not None
        sha = self._home.repository.land(task.id)
        complete_task(tx, task, outcome=Outcome.VERIFIED, landed_sha=sha)

    def _obey(self, leg: Leg) -> None:
        """Stop as a leg does: the agent's work is kept, and the attempt is parked, given back, or cancelled."""

        def stop(tx: Tx) -> None:
            attempt = change_attempt(tx, leg.subject, leg.fence)
            if attempt.interrupt == "cancel":
                cancel_attempt(tx, attempt, fence=leg.fence)
                return
            run = tx.get(Run, attempt.run_id or "")
            if attempt.state is AttemptState.WORKING and run is not None and run.state is RunState.RUNNING:
                move_run(tx, run, RunState.CANCELLED, cost_micros=1)
                waiting = AttemptState.WAITING
                move_attempt(tx, attempt, waiting, fence=leg.fence, interrupt="", wait_reason=PAUSED)
            else:
                change_attempt(tx, attempt.id, leg.fence, interrupt="", wait_reason=PAUSED)

        self._now(stop)


def recount(home: Home) -> dict[str, tuple[int, int]]:
    """Return (counted, kept) for each count that is kept on a row, by a scan over everything."""
    counts: dict[str, tuple[int, int]] = {}
    failing = (TaskState.ERROR, TaskState.CANCELLED)
    for plan in home.all(Plan):
        tasks = home.all(Task, plan_id=plan.id)
        unsettled = [one for one in tasks if one.status not in (*failing, TaskState.COMPLETE)]
        met = {one.id for one in tasks if one.status is TaskState.COMPLETE}
        met |= {one.id for one in tasks if one.manual and one.status is TaskState.CANCELLED}
        early = _early({one.id: one for one in tasks}, met)
        counts[f"open tasks of {plan.id}"] = (len(unsettled), plan.open_tasks)
        counts[f"failed tasks of {plan.id}"] = (
            sum(one.status in failing and one.id not in met for one in tasks),
            plan.failed_tasks,
        )
        for task in tasks:
            counts[f"unmet of {task.key}"] = (len(set(task.depends_on) - met), task.unmet)
            counts[f"early of {task.key}"] = (task.id in early, task.early)
    return counts


def _early(tasks: dict[str, Task], met: set[str]) -> set[str]:
    """Return whose turn it is not, in the most naive way: whoever comes after one that can still move."""
    waits = (TaskState.ERROR, TaskState.CANCELLED, TaskState.AWAITING_RESPONSE)
    stuck = {one.id for one in tasks.values() if one.id not in met and (one.status in waits or one.taken_by)}
    for _ in tasks:
        begun = (TaskState.CREATED, TaskState.QUEUED)
        stuck |= {
            one.id for one in tasks.values() if one.status in begun and stuck.intersection(one.depends_on)
        }
    moving = set(tasks) - met - stuck
    early: set[str] = set()
    for _ in tasks:
        early |= {one.id for one in tasks.values() if (moving | early).intersection(one.after)}
    return early
