"""Reconcile rows with reality: on start, and on every tick as a safety net."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from loopwright.core.policy.decide import turn_of
from loopwright.core.policy.retry import Failed
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Finish, Leg, Loop, Plan, Project, Run, Task, Worker
from loopwright.core.rows.turns import Turn
from loopwright.core.values.errors import GitFailed, UserError
from loopwright.core.values.failures import Failure
from loopwright.core.values.states import (
    ENDED_PLAN,
    AttemptState,
    LoopState,
    PlanState,
    RunState,
    TaskState,
)
from loopwright.engine.attempt.cleanup import cancelled_gates, tidy_attempt
from loopwright.engine.gates.gate_runs import end_all
from loopwright.engine.people.commands import is_to_be_ended
from loopwright.engine.people.served_projects import may_move
from loopwright.engine.rows import finishes
from loopwright.engine.rows.failing import fail_attempt
from loopwright.engine.rows.legs import DRIVEN
from loopwright.engine.rows.moves import MACHINE, begin_anew, commit_leg, need
from loopwright.engine.rows.world import World
from loopwright.ports import Tx

log = logging.getLogger(__name__)

QUARANTINE = timedelta(days=30)
"""How long rejected work is kept that the user did not ask for."""

_OVER = frozenset({AttemptState.LANDED, AttemptState.REJECTED, AttemptState.BROKEN, AttemptState.CANCELLED})


async def reconcile(
    world: World, *, only_end: bool = False, only_finish: str | None = None
) -> tuple[Leg, ...]:
    """Commit to a new leg for everything that should move and has no leg.

    With `only_end`, only for what the user asked to end; with `only_finish`, only for that finish of a plan.
    """

    def idle_beside(tx: Tx, flying: frozenset[str]) -> list[Attempt | Plan | Finish]:
        due = [one for one in finishes.due(tx) if f"{one.id}/{one.leg}" not in flying]
        ends = [one for one in due if may_move(tx, world, one)]
        if only_finish is not None:
            return [one for one in ends if one.id == only_finish]
        return [*_idle(tx, world, flying, only_end=only_end), *(() if only_end else ends)]

    shared = not world.membership.exclusive
    # Read before the leases: a worker without a lease is then dead, and not just new.
    owners = await world.engine.owners() if shared else []
    flying = frozenset(await world.engine.in_flight())

    def is_quiet(tx: Tx) -> bool:
        if _to_begin_anew(tx) or idle_beside(tx, flying):
            return False
        return not shared or not (
            any(_dead(tx, owners)) or _attempts_of_lost_hosts(tx) or _stranded(tx, world, flying)
        )

    # Usually so, and then one query is enough. Each later step reads again what it changes.
    if await world.store.read(is_quiet):
        return ()
    recovered = await _bury_dead_workers(world, owners)
    await _give_up_lost_hosts(world)
    await _begin_anew(world)
    # A dead worker's leg gets a successor with a new fence. If the worker wakes up after all, it changes nothing.
    flying = frozenset(await world.engine.in_flight()) - frozenset(recovered)
    await _forget_legs_of_lost_hosts(world, flying)
    if not await world.store.read(lambda tx: idle_beside(tx, flying)):
        return ()
    return await world.store.transact("reconcile", lambda tx: _restart(tx, idle_beside(tx, flying)))


def to_be_ended(tx: Tx, *, host_id: str | None = None) -> list[Attempt | Plan]:
    """Return what the user asked to end and has not ended yet; with a host, only what it can end itself."""
    plans = tx.find(Plan, status=PlanState.VERIFYING)
    attempts = tx.find(Attempt, interrupt=("pause", "cancel"), state=DRIVEN)
    return [
        *(one for one in attempts if host_id is None or one.host_id in (None, host_id)),
        *(plan for plan in plans if is_to_be_ended(tx, plan, _loop_of(tx, plan.id))),
    ]


async def tidy_leftovers(world: World, is_busy: Callable[[str], bool]) -> None:
    """Clean up after attempts that ended while no worker ran; a busy leg does it itself."""

    def load(tx: Tx) -> tuple[list[tuple[Project, Plan, Attempt]], list[Run]]:
        left = tx.find(Attempt, host_id=world.me.host_id, cleaned_at=None, state=_OVER)
        rows = []
        for attempt in left:
            plan = need(tx.get(Plan, attempt.plan_id), "the plan")
            rows.append((need(tx.get(Project, plan.project_id), "the project"), plan, attempt))
        return rows, cancelled_gates(tx, world)

    rows, gates = await world.store.read(load)
    for project, plan, attempt in rows:
        if not is_busy(attempt.id):
            await tidy_attempt(world, project, plan, attempt)
    await end_all(world, gates)


async def drop_old_quarantine(world: World) -> None:
    """Delete what was kept long enough, in projects with current work."""
    for project in await world.store.read(_active_projects):
        try:
            await world.repository(project).drop_quarantine(world.clock.now() - QUARANTINE)
        except (GitFailed, UserError, OSError) as trouble:
            log.warning("quarantine not looked at", extra={"project": project.path, "why": str(trouble)})


def _active_projects(tx: Tx) -> list[Project]:
    ids = {loop.project_id for loop in tx.find(Loop, state=LoopState.RUNNING)}
    return tx.find(Project, id=ids) if ids else []


def _idle(tx: Tx, world: World, flying: frozenset[str], *, only_end: bool) -> list[Attempt | Plan]:
    alive = living_hosts(tx, world)
    found: list[Attempt | Plan] = []
    loops: dict[str, Loop] = {}
    for attempt in tx.find(Attempt, state=DRIVEN):
        if f"{attempt.id}/{attempt.leg}" in flying or attempt.host_id not in alive:
            continue
        loop = loops.get(attempt.plan_id) or _loop_of(tx, attempt.plan_id)
        loops[attempt.plan_id] = loop
        if _should_move(loop, attempt) and may_move(tx, world, attempt):
            found.append(attempt)
    verifying = tx.find(Plan, status=PlanState.VERIFYING)
    found += [
        plan
        for plan in verifying
        if f"{plan.id}/{plan.verify_leg}" not in flying and may_move(tx, world, plan)
    ]
    if only_end:
        wanted = {row.id for row in to_be_ended(tx)}
        return [row for row in found if row.id in wanted]
    return found


def _should_move(loop: Loop, attempt: Attempt) -> bool:
    """Return whether to continue this attempt: a paused loop finishes running ones, but wakes no parked ones."""
    if attempt.interrupt:
        return True
    if loop.state is LoopState.RUNNING:
        return True
    return loop.state is LoopState.PAUSED and not attempt.wait_reason


def _restart(tx: Tx, idle: list[Attempt | Plan | Finish]) -> tuple[Leg, ...]:
    legs: list[Leg] = []
    # First what is to be watched: others may have to wait for a slot that such an agent has.
    for row in sorted(idle, key=lambda one: not _is_at_work(tx, one)):
        if isinstance(row, Finish):
            legs.append(finishes.commit_finish_leg(tx, row))
        elif isinstance(row, Plan):
            moved = tx.update(
                Plan,
                row.id,
                expect={"verify_leg": row.verify_leg},
                verify_leg=row.verify_leg + 1,
                verify_fence=row.verify_fence + 1,
            )
            legs.append(Leg(subject=row.id, n=moved.verify_leg, fence=moved.verify_fence))
        else:
            legs.append(replace(commit_leg(tx, row, wait_reason=""), turn=_turn(tx, row)))
    return tuple(legs)


def _turn(tx: Tx, attempt: Attempt) -> Turn | None:
    """Return the place in line of an attempt that needs an agent and has none."""
    if attempt.state not in (AttemptState.PREPARING, AttemptState.WORKING) or _is_at_work(tx, attempt):
        return None
    plan = need(tx.get(Plan, attempt.plan_id), "the plan")
    loop, task = tx.get(Loop, plan.loop_id), tx.get(Task, attempt.task_id)
    return turn_of(need(loop, "the loop"), plan, need(task, "the task"))


def _is_at_work(tx: Tx, row: Attempt | Plan | Finish) -> bool:
    run = tx.get(Run, row.run_id) if isinstance(row, Attempt) and row.run_id else None
    return run is not None and run.state is RunState.RUNNING


def _loop_of(tx: Tx, plan_id: str) -> Loop:
    plan = need(tx.get(Plan, plan_id), "the plan")
    return need(tx.get(Loop, plan.loop_id), "the loop")


def living_hosts(tx: Tx, world: World) -> frozenset[str | None]:
    """Return the hosts with a live worker, and None for attempts that no host has yet."""
    if world.membership.exclusive:
        return frozenset({None, world.me.host_id})
    now = tx.now()
    return frozenset({None, *(one.host_id for one in tx.find(Worker) if one.lease_until > now)})


def _dead(tx: Tx, owners: Sequence[str]) -> tuple[list[Worker], list[str]]:
    """Return the workers whose end was not recorded, and those that have legs and are not alive."""
    now = tx.now()
    workers = tx.find(Worker)
    alive = {one.id for one in workers if one.lease_until > now}
    unburied = [one for one in workers if one.lease_until <= now and one.slots > 0]
    return unburied, [one for one in owners if one not in alive]


async def _bury_dead_workers(world: World, owners: Sequence[str]) -> list[str]:
    """Report each dead worker once, and return the legs that it left behind."""
    if world.membership.exclusive:
        return []
    dead, ownerless = await world.store.read(lambda tx: _dead(tx, owners))
    recovered: list[str] = []
    if dead or ownerless:
        recovered = await world.engine.recover(sorted({*(worker.id for worker in dead), *ownerless}))
    if not dead:
        return recovered

    def bury(tx: Tx) -> None:
        for worker in dead:
            if tx.get(Worker, worker.id) != worker:
                continue  # it left by itself, or another worker recorded it first
            # The row stays: it records since when its host is silent. No slots means that it was recorded.
            tx.update(Worker, worker.id, slots=0, controls=False)
            tx.append(
                happened("worker_lost", MACHINE, worker=worker.id, hostname=worker.hostname, pid=worker.pid)
            )

    await world.store.transact("worker.lost", bury)
    return recovered


async def _begin_anew(world: World) -> None:
    """Queue tasks again whose attempts the user's decision has ended."""
    ended = await world.store.read(_to_begin_anew)
    if ended:

        def again(tx: Tx) -> None:
            for task in _to_begin_anew(tx):
                begin_anew(tx, world.ids, task)

        await world.store.transact("task.again", again)


def _to_begin_anew(tx: Tx) -> list[Task]:
    # Through their plans: tasks have no index of their states alone, and most are of plans that have ended.
    plans = [one.id for one in tx.find(Plan, status=frozenset(PlanState) - ENDED_PLAN)]
    going = tx.find(Task, plan_id=plans, status=(TaskState.RUNNING, TaskState.AWAITING_RESPONSE))
    wanted = [task.attempt_id for task in going if task.attempt_id]
    ended = {one.id for one in tx.find(Attempt, id=wanted, state=AttemptState.CANCELLED)} if wanted else set()
    return [task for task in going if task.attempt_id in ended]


async def _give_up_lost_hosts(world: World) -> None:
    """Give attempts of a lost host to another host after `host_lost_after`: a new attempt, with a new fence."""
    if world.membership.exclusive:
        return
    if not await world.store.read(_attempts_of_lost_hosts):
        return

    def give_up(tx: Tx) -> None:
        for attempt in _attempts_of_lost_hosts(tx):
            fenced = tx.update(Attempt, attempt.id, expect={"fence": attempt.fence}, fence=attempt.fence + 1)
            failed = Failed(failure=Failure.HOST_LOST, detail=f"host {attempt.host_id} went silent")
            fail_attempt(tx, world.ids, fenced, failed, fence=None, counts=False, chance=world.chance())

    await world.store.transact("host.lost", give_up)


async def _forget_legs_of_lost_hosts(world: World, flying: frozenset[str]) -> None:
    """Remove ended work from the queue of a host without a worker: it would wait there forever."""
    if world.membership.exclusive:
        return
    for leg_id in await world.store.read(lambda tx: _stranded(tx, world, flying)):
        subject, _, n = leg_id.rpartition("/")
        await world.engine.cancel(Leg(subject=subject, n=int(n), fence=0))


def _stranded(tx: Tx, world: World, flying: frozenset[str]) -> list[str]:
    if not flying:
        return []
    subjects = {leg_id: leg_id.rpartition("/")[0] for leg_id in flying}
    alive = living_hosts(tx, world)
    over = tx.find(Attempt, id=set(subjects.values()), state=_OVER)
    lost = {one.id for one in over if one.host_id not in alive}
    return [leg_id for leg_id, subject in subjects.items() if subject in lost]


def _attempts_of_lost_hosts(tx: Tx) -> list[Attempt]:
    now = tx.now()
    last_seen: dict[str, datetime] = {}
    for worker in tx.find(Worker):
        last_seen[worker.host_id] = max(worker.lease_until, last_seen.get(worker.host_id, worker.lease_until))
    lost = []
    for attempt in tx.find(Attempt, state=DRIVEN | {AttemptState.WAITING}):
        if attempt.host_id is None:
            continue
        # A worker that left properly has no row any more: then the attempt's own last change counts.
        seen = last_seen.get(attempt.host_id, attempt.updated_at)
        if seen > now:
            continue
        # In a loop that does not run, work waits for its host; but cancelled work need not wait.
        if attempt.interrupt != "cancel" and _loop_of(tx, attempt.plan_id).state is not LoopState.RUNNING:
            continue
        plan = need(tx.get(Plan, attempt.plan_id), "the plan")
        if now - seen > timedelta(seconds=plan.policy.host_lost_after):
            lost.append(attempt)
    return lost
