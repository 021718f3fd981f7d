"""The promises, each as a function with one sentence. They are looked at after every commit and every effect."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.machines import Kept, Machine, is_good
from tests.simulation.rows import Change
from tests.simulation.scenario import Scenario

from loopwright.core.gates.gates import plan_commands, task_commands
from loopwright.core.gates.verdicts import gate_key
from loopwright.core.policy.decide import ahead
from loopwright.core.policy.graph import claims, scopes_overlap
from loopwright.core.replies.qa import TYPE as LOOK
from loopwright.core.rows.model import (
    AGENT_ROLES,
    Attempt,
    Command,
    CommandState,
    Loop,
    Plan,
    Role,
    Run,
    Task,
    VerdictRecord,
    Worker,
)
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.failures import RULES, Failure, Level
from loopwright.core.values.findings import VerdictStatus
from loopwright.core.values.healing import HealStep
from loopwright.core.values.states import (
    ENDED_PLAN,
    ENDED_RUN,
    LIVE_ATTEMPT,
    AttemptState,
    LoopState,
    PlanState,
    RunState,
    TaskState,
)
from loopwright.engine.people.handover import HUMAN
from loopwright.engine.rows.legs import DRIVEN
from loopwright.engine.worker.advance import JUDGED

if TYPE_CHECKING:
    from tests.simulation.universe import Universe

_STATE: Final[Mapping[type[Any], str]] = {Plan: "status", Attempt: "state", Run: "state"}


class Violation(AssertionError):
    """A promise was broken."""

    history: list[str]
    scenario: Scenario

    def __init__(self, promise: str, detail: str) -> None:
        super().__init__(f"{promise}: {detail}")
        self.promise = promise


Problems = Iterator[str]
OnCommit = Callable[["Watch", str, tuple[Change, ...]], Problems]
OnEffect = Callable[["Watch", Mapping[str, Any]], Problems]
AtEnd = Callable[["Watch"], Problems]

ON_COMMIT: list[tuple[frozenset[type[Any]], OnCommit]] = []
"""Each with the kinds of rows whose changes it looks at; none for one that looks at every commit."""
_LOOKS: dict[frozenset[type[Any]], list[OnCommit]] = {}
"""Those that look when rows of these kinds have changed, once it was asked for."""
ON_EFFECT: dict[str, list[OnEffect]] = defaultdict(list)
AT_END: list[AtEnd] = []


def on_commit(*kinds: type[Any]) -> Callable[[OnCommit], OnCommit]:
    def register(look: OnCommit) -> OnCommit:
        ON_COMMIT.append((frozenset(kinds), look))
        _LOOKS.clear()
        return look

    return register


def on_effect(kind: str) -> Callable[[OnEffect], OnEffect]:
    def register(look: OnEffect) -> OnEffect:
        ON_EFFECT[kind].append(look)
        return look

    return register


def at_end(look: AtEnd) -> AtEnd:
    AT_END.append(look)
    return look


class Watch:
    """Looks at everything that happens, and remembers the first promise that was broken."""

    def __init__(self, universe: "Universe") -> None:
        self.universe = universe
        self.broken: Violation | None = None
        self.closed = False
        self.live: dict[str, set[str]] = defaultdict(set)
        """The live attempts of each task."""
        self.rejected: dict[str, int] = defaultdict(int)
        self.fences: dict[str, int] = {}
        """The fence that each leg was given."""
        self.refuted: set[str] = set()
        """Plans whose verification failed, and that no person touched since."""
        self.caps_at_start: dict[str, Mapping[str, int | None]] = {}
        self.over: dict[str, tuple[float, Mapping[str, int | None]]] = {}
        """Since when runs have cost as much as they may, and the caps that they had then."""
        self.told: dict[str, int] = {}
        """What each run has told last of its cost."""
        self.full: dict[tuple[str, str], tuple[float, Mapping[str, int | None]]] = {}
        """Since when the agents of a plan on one machine have spent together what it has, and its caps then."""
        self.probes: dict[str, str] = {}
        """The last run that found out about each closed account."""

    def all(self, kind: type[Any]) -> Mapping[str, Any]:
        return self.universe.database.all(kind)

    def committed(self, name: str, changes: tuple[Change, ...]) -> None:
        """Look at a transaction."""
        if self.closed:
            return
        self._index(changes)
        changed = frozenset([change.kind for change in changes])
        looks = _LOOKS.get(changed)
        if looks is None:
            found = [look for kinds, look in ON_COMMIT if not kinds or not kinds.isdisjoint(changed)]
            looks = _LOOKS[changed] = found
        for look in looks:
            self._take(look.__name__, look(self, name, changes))

    def effect(self, kind: str, about: Mapping[str, Any]) -> None:
        """Look at something that changed outside the database."""
        if self.closed:
            return
        for look in ON_EFFECT[kind]:
            self._take(look.__name__, look(self, about))

    def at_the_end(self) -> None:
        """Look at what is left when everything has come to rest."""
        for look in AT_END:
            self._take(look.__name__, look(self))
        self.check()

    def wrong_move(self, name: str, wrong: AssertionError) -> None:
        """Hear of a move that its table does not have, or that no event tells of, from the store itself."""
        self._take("only_legal_moves", iter([f"{name}: {wrong}"]))

    def defect(self, what: str) -> None:
        """Hear of an exception that the engine did not expect."""
        self._take("no_defects", iter([what]))

    def check(self) -> None:
        """Raise what was found."""
        if self.broken is not None:
            raise self.broken

    def _take(self, promise: str, problems: Problems) -> None:
        for problem in problems:
            self.universe.history.note(f"** {promise}: {problem}")
            self.broken = self.broken or Violation(promise, problem)

    def _index(self, changes: tuple[Change, ...]) -> None:
        for change in changes:
            if change.kind is not Attempt:
                continue
            now = change.after.state
            self.fences[f"{change.id}/{change.after.leg}"] = change.after.fence
            before = change.before.state if change.before else None
            if now in LIVE_ATTEMPT:
                self.live[change.after.task_id].add(change.id)
            else:
                self.live[change.after.task_id].discard(change.id)
            lost = change.after.failure is not None and RULES[change.after.failure].level is Level.RACE
            # What a person did by hand uses up nothing that the machine may do.
            by_hand = change.after.agent == HUMAN
            # A look that found something did what it was for.
            looked = change.after.failure is Failure.ISSUES
            # A try without the task that failed is a healing step, which has its own limit.
            bypassed = change.after.healing is HealStep.BYPASS
            counts = not (lost or by_hand or looked or bypassed)
            if now is AttemptState.REJECTED and before is not now and counts:
                self.rejected[change.after.task_id] += 1


def moves(changes: tuple[Change, ...], kind: type[Any], state: str) -> Iterator[Change]:
    """Yield the rows of a kind that moved to a state."""
    name = _STATE[kind]
    for change in changes:
        if change.kind is kind and getattr(change.after, name) == state != getattr(change.before, name, None):
            yield change


# --- after every commit ----------------------------------------------------------------------------------


@on_commit(Attempt)
def one_live_attempt_per_task(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """At most one attempt at a task is alive, and its fence only grows."""
    for change in changes:
        if change.kind is not Attempt:
            continue
        if len(watch.live[change.after.task_id]) > 1:
            yield f"{name} left {sorted(watch.live[change.after.task_id])} alive"
        if change.before is not None and change.after.fence < change.before.fence:
            yield f"{name} turned the fence of {change.id} back"


@on_commit(Attempt)
def a_taken_over_leg_changes_nothing(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """What a leg writes counts only while no later leg holds the fence."""
    leg_id = _writing_leg()
    fence = watch.fences.get(leg_id)
    if fence is None:
        return
    for change in changes:
        if change.kind is Attempt and leg_id.startswith(f"{change.id}/") and change.before is not None:
            tidied = change.after.state == change.before.state and change.before.state not in LIVE_ATTEMPT
            if change.before.fence != fence and not tidied:
                yield f"{name} of {leg_id} changed an attempt with fence {change.before.fence}"


def _writing_leg() -> str:
    """Return the id of the leg that is running, by the name of its task."""
    task = asyncio.current_task()
    return task.get_name().removeprefix("leg ") if task is not None else ""


@on_commit(Attempt, Plan)
def slots_are_never_exceeded(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """Nothing is begun beyond what the living workers have room for, but a verification that a person asks for."""
    woken = [one for one in moves(changes, Attempt, "WORKING") if one.before.state == "WAITING"]
    begun = [*moves(changes, Attempt, AttemptState.PREPARING), *woken]
    started = [*begun, *moves(changes, Plan, PlanState.VERIFYING)]
    if not started or name == "command.reverify":
        return
    universe = watch.universe
    now = universe.database._clock.now()
    living = [one for one in watch.all(Worker).values() if one.lease_until > now]
    exclusive = universe.scenario.exclusive
    slots = universe.scenario.slots if exclusive else sum(one.slots for one in living)
    hosts = {None, *(one.host_id for one in living)}
    driven = [
        one
        for one in watch.all(Attempt).values()
        if one.state in DRIVEN and not one.wait_reason and (exclusive or one.host_id in hosts)
    ]
    verifying = [one for one in watch.all(Plan).values() if one.status is PlanState.VERIFYING]
    if not exclusive:
        if len(driven) + len(verifying) > slots:
            yield f"{name} started {len(started)}: now {len(driven)} + {len(verifying)} are busy in {slots} slots"
        return
    # Alone in a home, some are made ready for the next free slot, and some may be judged: neither runs an agent.
    judged = sum(one.state in JUDGED for one in driven)
    # A more urgent loop takes its place before those that are only made ready.
    preparing = sum(one.state is AttemptState.PREPARING for one in driven)
    most = slots + ahead(slots) + min(preparing, slots + ahead(slots))
    if begun and (len(driven) - judged > most or len(driven) > most + slots):
        yield f"{name} started {len(begun)}: now {len(driven)} are under way, {judged} judged, in {slots} slots"
    if len(verifying) > slots:
        yield f"{name} verifies {len(verifying)} plans in {slots} slots"


@on_commit(Run)
def no_more_agents_than_slots(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """No agent is started while as many run as a worker, or a plan, may have."""
    universe = watch.universe
    for change in moves(changes, Run, RunState.RUNNING):
        run = change.after
        if run.role not in AGENT_ROLES or not universe.scenario.exclusive:
            continue
        running = [one for one in universe.running() if one.role in AGENT_ROLES]
        mine = [one for one in running if one.plan_id == run.plan_id]
        parallel = watch.all(Plan)[run.plan_id].policy.parallel
        # The one that is started now does not run yet.
        if len(running) >= universe.scenario.slots or len(mine) >= parallel:
            yield f"{name} starts {run.id} while {len(running)} agents run, {len(mine)} of its plan"


@on_commit(Run)
def nothing_starts_in_a_paused_loop(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """No agent is started in a loop that a person or the budget holds."""
    for change in moves(changes, Run, RunState.RUNNING):
        if change.after.role in AGENT_ROLES:
            plan = watch.all(Plan)[change.after.plan_id]
            loop = watch.all(Loop)[plan.loop_id]
            if loop.state is not LoopState.RUNNING:
                yield f"{name} starts {change.id} while {loop.id} is {loop.state.value}"


@on_commit(Plan)
def verified_means_gated(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """A plan says VERIFIED only after gate:all passed on its final tree, with every task in it."""
    for change in moves(changes, Plan, PlanState.VERIFIED):
        plan, target = change.after, watch.universe.target
        tree = target.commits[plan.result_sha].tree
        # A person may have a plan verified without what they cancelled.
        tasks = [
            one
            for one in watch.all(Task).values()
            if one.plan_id == plan.id and one.status is not TaskState.CANCELLED
        ]
        tasks.sort(key=lambda one: one.position)
        key = gate_key(plan_commands(plan, tuple(command for one in tasks for command in one.acceptance)))
        proofs = [
            one
            for one in watch.all(VerdictRecord).values()
            if one.plan_id == plan.id
            and one.tree == tree
            and one.gate_key == key
            and one.run_id == plan.verify_run_id
            and one.verdict.status is VerdictStatus.PASSED
        ]
        if not proofs:
            yield f"{plan.id} is VERIFIED at {plan.result_sha[:8]} without a passing gate:all on that tree"
        for task in (one for one in tasks if not one.origin and one.type != LOOK):
            if not is_good(f"accept {task.key}", target.trees[tree]):
                yield f"{plan.id} is VERIFIED, but {task.key} is not in its tree"


@on_commit(Run, Plan)
def a_failed_verify_stays_failed(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """A failed verification is never run again without a person."""
    asked = ("retry", "reverify", "reject", "rollback", "accept_discovered")
    if name in {f"command.{verb}" for verb in asked}:
        for change in changes:
            if change.kind is Plan:
                watch.refuted.discard(change.id)
    for change in moves(changes, Run, RunState.COMPLETE):
        verdict = change.after.verdict
        if change.after.role is Role.VERIFY and verdict.status is VerdictStatus.FAILED:
            watch.refuted.add(change.after.plan_id)
    for change in moves(changes, Run, RunState.RUNNING):
        if change.after.role is Role.VERIFY and change.after.plan_id in watch.refuted:
            yield f"{name} verifies {change.after.plan_id} again"


@on_commit(Task)
def attempts_are_counted_once(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """Only an attempt that was judged and rejected counts, and no task has more of them than it may."""
    for change in changes:
        if change.kind is Task:
            task = change.after
            if task.attempts != watch.rejected[task.id]:
                yield f"{name}: {task.key} counts {task.attempts}, rejected were {watch.rejected[task.id]}"
            if task.attempts > task.max_attempts:
                yield f"{name}: {task.key} had {task.attempts} attempts of {task.max_attempts}"


@on_commit()
def a_command_is_answered_as_it_is_carried_out(
    watch: Watch, name: str, changes: tuple[Change, ...]
) -> Problems:
    """What a person asked for is answered in the very transaction that does it, so that it is done once."""
    if name.startswith("command.") and not any(change.kind is Command for change in changes):
        yield f"{name} leaves its command waiting"


@on_commit(Worker)
def one_controller(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """At most one worker with a live lease applies policy."""
    if any(change.kind is Worker for change in changes):
        now = watch.universe.database._clock.now()
        rows = [one.id for one in watch.all(Worker).values() if one.controls and one.lease_until > now]
        if len(rows) > 1:
            yield f"{name} left {rows} in control"


@on_commit()
def who_may_act_has_a_lease(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """A worker that believes that it may act has a lease that has not lapsed."""
    if watch.universe.scenario.exclusive:
        return
    now = watch.universe.database._clock.now()
    for worker in watch.universe.workers:
        if worker.process.running and worker.loop is not None and worker.loop.lease.valid():
            row = watch.all(Worker).get(worker.loop.lease.worker.id)
            if row is None or row.lease_until <= now:
                yield f"{worker.process.name} believes that it may act"


@on_commit(Task)
def counts_are_right(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """What is kept as a count on a row equals what counting gives."""
    plans = {change.after.plan_id for change in changes if change.kind is Task and change.after}
    for plan_id in plans:
        plan = watch.all(Plan)[plan_id]
        tasks = {one.id: one for one in watch.all(Task).values() if one.plan_id == plan_id}
        failed = [one for one in tasks.values() if one.status in (TaskState.ERROR, TaskState.CANCELLED)]
        complete = {one.id for one in tasks.values() if one.status is TaskState.COMPLETE}
        if (plan.open_tasks, plan.failed_tasks) != (len(tasks) - len(failed) - len(complete), len(failed)):
            yield f"{name}: {plan_id} counts {plan.open_tasks} open and {plan.failed_tasks} failed tasks"
        for task in tasks.values():
            if task.unmet != len(set(task.depends_on) - complete):
                yield f"{name}: {task.key} counts {task.unmet} unmet dependencies"


@on_commit(Plan)
def one_open_plan_per_loop(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """A loop has one plan that is not ended, whatever its source becomes."""
    if not any(change.kind is Plan and change.before is None for change in changes):
        return
    seen = set()
    for plan in watch.all(Plan).values():
        if plan.status not in ENDED_PLAN:
            if plan.loop_id in seen:
                yield f"{name} gave {plan.loop_id} a second open plan"
            seen.add(plan.loop_id)


# --- after every effect ----------------------------------------------------------------------------------


def plan_of_branch(watch: Watch, branch: str) -> Plan:
    return next(one for one in watch.all(Plan).values() if one.branch == branch)


@on_effect("landed")
def nothing_lands_twice(watch: Watch, about: Mapping[str, Any]) -> Problems:
    """A task is on the plan branch at most once, but for what a person had taken back."""
    plan = plan_of_branch(watch, about["branch"])
    seen: set[str] = set()
    gone: set[str] = set()
    for commit in watch.universe.target.line(about["new"], plan.base_sha):
        gone.update(commit.takes_out)
        if commit.trailers is not None and commit.sha not in gone:
            if commit.trailers.task in seen:
                yield f"{watch.all(Task)[commit.trailers.task].key} landed twice"
            seen.add(commit.trailers.task)


@on_effect("landed")
def what_lands_was_judged(watch: Watch, about: Mapping[str, Any]) -> Problems:
    """Nothing lands without a passing verdict of its task's gate on exactly that tree."""
    target = watch.universe.target
    commit = target.commits[about["new"]]
    if commit.trailers is None:
        return  # it takes work back
    task = watch.all(Task)[commit.trailers.task]
    plan = watch.all(Plan)[task.plan_id]
    key = gate_key(task_commands(plan, task))
    proofs = [
        one
        for one in watch.all(VerdictRecord).values()
        if one.plan_id == plan.id and one.tree == commit.tree and one.gate_key == key
    ]
    if not any(one.verdict.status is VerdictStatus.PASSED for one in proofs):
        yield f"{task.key} landed as {commit.sha[:8]} without a passing verdict on tree {commit.tree[:8]}"
    if not all(is_good(one.command, target.trees[commit.tree]) for one in task_commands(plan, task)):
        yield f"{task.key} landed as {commit.sha[:8]}, which is not good"


@on_effect("landed")
def a_branch_only_grows(watch: Watch, about: Mapping[str, Any]) -> Problems:
    """What was on the plan branch stays on it."""
    if watch.universe.target.commits[about["new"]].parents[0] != about["old"]:
        yield f"{about['old'][:8]} is no longer on {about['branch']}"


@on_effect("workspace_gone")
def no_work_is_lost(watch: Watch, about: Mapping[str, Any]) -> Problems:
    """A workspace goes only when everything that an agent left in it is in a commit that a ref reaches."""
    workspace, target = about["workspace"], watch.universe.target
    if workspace is None or not workspace.touched:
        return
    tree = target.tree(workspace.files)
    kept = [one for one in target.commits.values() if one.tree == tree]
    if not any(target.reaches(target.refs.values(), one.sha) for one in kept):
        yield f"the work of {workspace.marker} went with its workspace"


@on_effect("workspace_gone")
def nobody_works_where_it_is_cleaned_up(watch: Watch, about: Mapping[str, Any]) -> Problems:
    """A workspace goes only when no agent is left in it."""
    host, path = about["place"]
    machine = next(one for one in watch.universe.machines if one.name == host)
    for kept in _agents(machine):
        if kept.spec.cwd == path:
            yield f"{kept.spec.run_id} works in {path.name}"


@on_effect("process")
def one_agent_per_workspace(watch: Watch, about: Mapping[str, Any]) -> Problems:
    """Two agents never work in one workspace at once."""
    machine, kept = about["machine"], about["kept"]
    if not kept.is_gate:
        others = [one for one in _agents(machine) if one.spec.cwd == kept.spec.cwd]
        if others:
            yield f"{kept.spec.run_id} joins {others[0].spec.run_id} in {kept.spec.cwd.name}"


def _agents(machine: Machine) -> list[Kept]:
    return [one for one in machine.kept.values() if one.state == "alive" and not one.is_gate]


@on_effect("process")
def finished_work_is_not_bought_again(watch: Watch, about: Mapping[str, Any]) -> Problems:
    """An attempt whose agent finished never starts another agent, unless a reviewer sent it back."""
    machine, kept = about["machine"], about["kept"]
    if kept.is_gate or kept.goes_back:
        return
    for one in machine.kept.values():
        if not one.is_gate and one.spec.cwd == kept.spec.cwd and one.is_done:
            yield f"{one.spec.run_id} had finished, and {kept.spec.run_id} is started"


@on_effect("process")
def an_agent_sees_what_it_depends_on(watch: Watch, about: Mapping[str, Any]) -> Problems:
    """An agent starts only where the tasks that it depends on have landed."""
    machine, kept = about["machine"], about["kept"]
    if kept.is_gate:
        return
    target = watch.universe.target
    if kept.reviews:
        if (machine.name, kept.spec.cwd) not in target.checkouts:
            yield f"{kept.spec.run_id} reviews without a tree"
        return
    workspace = target.workspaces.get((machine.name, kept.spec.cwd))
    if workspace is None or not workspace.ready:
        yield f"{kept.spec.run_id} starts without a workspace"
        return
    task = watch.all(Task)[kept.spec.env["LOOPWRIGHT_TASK"]]
    base = target.files(workspace.base_sha)
    for other_id in task.depends_on:
        other = watch.all(Task)[other_id]
        if other.landed_sha is not None and not is_good(f"accept {other.key}", base):
            yield f"{task.key} starts without {other.key}"


@on_effect("read")
def nothing_polls(watch: Watch, about: Mapping[str, Any]) -> Problems:
    """Whoever waits for a moment or a change does not ask for it all the time."""
    if about["reads"] > 50 * (about["seconds"] + 5):
        yield f"{about['reads']} reads in {about['seconds']:.1f} s, and nothing changed"


# --- at the end ------------------------------------------------------------------------------------------


@at_end
def every_run_has_an_end(watch: Watch) -> Problems:
    """Every run that was started has an end, in the rows and on the machine."""
    for run in watch.all(Run).values():
        attempt = watch.all(Attempt).get(run.attempt_id or "")
        over = attempt is not None and attempt.state not in LIVE_ATTEMPT
        if run.state is RunState.RUNNING and (over or attempt is None):
            yield f"{run.role.value} {run.id} is still {run.state.value}"
    for machine in watch.universe.machines:
        for kept in machine.kept.values():
            row = watch.all(Run)[kept.spec.run_id]
            if kept.state == "alive" and row.state in ENDED_RUN:
                yield f"{row.role.value} {row.id} is {row.state.value}, but runs on {machine.name}"


@at_end
def no_stall(watch: Watch) -> Problems:
    """When faults stop, every plan comes to an end or waits for a named person or a named time."""
    for loop in watch.all(Loop).values():
        plan = watch.all(Plan)[loop.plan_id]
        if plan.status in ENDED_PLAN:
            continue
        if loop.state is LoopState.RUNNING:
            yield from _nobody_to_wait_for(watch, plan)
        elif not (loop.reason or plan.reason):
            yield f"{plan.id} waits, and nobody says what for"
    for attempt in watch.all(Attempt).values():
        if attempt.state in DRIVEN and not attempt.wait_reason:
            yield f"{attempt.id} is {attempt.state.value} and nobody carries it on"
    for command in watch.all(Command).values():
        if command.state is CommandState.PENDING:
            yield f"nobody answers {command.verb} {command.target}"


def _nobody_to_wait_for(watch: Watch, plan: Plan) -> Problems:
    """Say what does not move in a plan that runs, although no person has to do anything first."""
    tasks = [one for one in watch.all(Task).values() if one.plan_id == plan.id]
    attempts = [watch.all(Attempt)[one.attempt_id] for one in tasks if one.attempt_id is not None]
    waiting = [one for one in attempts if one.state is AttemptState.WAITING]
    asking = [one for one in waiting if any(watch.all(Question)[q].state == "OPEN" for q in one.questions)]
    if not asking and not any(one.taken_by for one in tasks):
        yield f"{plan.id} is {plan.status.value} and nothing happens"
    for attempt in waiting:
        if attempt not in asking:
            yield f"{attempt.id} waits for nobody: {attempt.wait_reason}"
    parked = [watch.all(Task)[one.task_id] for one in waiting]
    for task in tasks:
        kept_off = any(scopes_overlap(claims(task), claims(one)) for one in parked)
        # What a person took over begins when they hand it back; the simulated one tires of that.
        if task.status is TaskState.QUEUED and not task.unmet and not kept_off and not task.taken_by:
            yield f"{task.key} could start"


@at_end
def all_work_is_kept(watch: Watch) -> Problems:
    """What an attempt brought forth is pinned, landed, or still in its workspace."""
    target = watch.universe.target
    for attempt in watch.all(Attempt).values():
        if attempt.tip_sha is not None and not target.reaches(target.refs.values(), attempt.tip_sha):
            yield f"{attempt.tip_sha[:8]} of {attempt.id} is not reachable"


@at_end
def landed_is_on_the_branch(watch: Watch) -> Problems:
    """A task says that it is complete only if its work is on the plan branch, and says as which commit."""
    target = watch.universe.target
    for task in watch.all(Task).values():
        plan = watch.all(Plan)[task.plan_id]
        # A look brings nothing, nor does what was added and found nothing left to do.
        brings = task.landed_sha is not None or not (task.origin or task.type == LOOK)
        brings = brings and task.status is TaskState.COMPLETE
        if brings and not is_good(f"accept {task.key}", target.files(target.refs[plan.branch])):
            yield f"{task.key} is COMPLETE, but not on {plan.branch}"
        gone: set[str] = set()
        for commit in target.line(target.refs.get(plan.branch, plan.base_sha), plan.base_sha):
            gone.update(commit.takes_out)
            mine = commit.trailers is not None and commit.trailers.task == task.id and commit.sha not in gone
            if mine and task.status is TaskState.COMPLETE and task.landed_sha != commit.sha:
                yield f"{task.key} landed as {commit.sha[:8]}, and says {task.landed_sha}"


@at_end
def the_record_is_whole(watch: Watch) -> Problems:
    """Events are numbered without a gap, and each names the hash of the one before it in its chain."""
    from loopwright.adapters.store.chain import chain_of

    heads: dict[str, str] = {}
    events = watch.universe.database.read_sync(lambda tx: tx.events(limit=10**9, as_stored=True))
    for n, event in enumerate(events, start=1):
        if event.n != n:
            yield f"event {n} is numbered {event.n}"
        chain = chain_of(event)
        if chain in heads and event.prev_hash != heads[chain]:
            yield f"event {n} does not follow the one before it"
        heads[chain] = event.hash
