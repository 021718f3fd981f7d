"""Apply policy: load the frontier, decide, and commit to the decisions in one transaction."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, assert_never

from loopwright.core.healing.steps import may_bypass
from loopwright.core.policy import decide as policy
from loopwright.core.policy.budget import WAITS
from loopwright.core.policy.graph import claims
from loopwright.core.policy.quotas import Choice
from loopwright.core.policy.retry import Failed
from loopwright.core.rows.events import happened
from loopwright.core.rows.healing_rows import Healing
from loopwright.core.rows.model import (
    AGENT_ROLES,
    Attempt,
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
from loopwright.core.rows.turns import Turn
from loopwright.core.values.errors import GitFailed, StaleVersion, UserError
from loopwright.core.values.failures import Failure
from loopwright.core.values.states import (
    AttemptState,
    EnvelopeState,
    LoopState,
    PlanState,
    RunState,
    TaskState,
)
from loopwright.engine.attempt import contradictions, rounds
from loopwright.engine.money import pauses, quotas, spending
from loopwright.engine.people import commands, holds
from loopwright.engine.people.manual_steps import ask_by_hand
from loopwright.engine.people.served_projects import may_move, serves
from loopwright.engine.rows import healing, questions
from loopwright.engine.rows.failing import fail_attempt
from loopwright.engine.rows.legs import DRIVEN
from loopwright.engine.rows.moves import (
    MACHINE,
    begin_verify,
    commit_leg,
    move_attempt,
    move_loop,
    move_plan,
    move_run,
    move_task,
    need,
    next_run,
)
from loopwright.engine.rows.queue import new_attempt
from loopwright.engine.rows.world import World
from loopwright.engine.sources.status_writeback import tell_on_branch
from loopwright.engine.views import round_views
from loopwright.engine.worker.follow_on import follow_on
from loopwright.engine.worker.reconcile import living_hosts
from loopwright.ports import Tx

JUDGED = frozenset({AttemptState.CHECKING, AttemptState.LANDING})
"""States in which no agent works any more."""
_IN_ORDER = ("priority", "position", "created_at")
"""The order in which the tasks of a plan start; like `core.policy.decide.turn_of`."""
_TURN: dict[str, Any] = {"status": TaskState.QUEUED, "unmet": 0, "early": False, "taken_by": ""}
"""A task that may start."""
_DISPATCH_BATCH = 200
_LOOK_AHEAD = 32
_ENDING = policy.BeginVerify | policy.HoldPlan | policy.FailPlan

BeforeEnd = Callable[[Collection[str]], Awaitable[bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advanced:
    """The decisions of one pass."""

    legs: tuple[Leg, ...]
    dispatched: bool
    """Whether there are new tasks: another pass may start them."""
    look_again_s: float | None
    """In how many seconds something is due: relative, because the clock that decides may not be the worker's own."""


async def advance(world: World, before_end: BeforeEnd | None = None) -> Advanced:
    """Make one pass.

    Reading comes first, so that an idle home is never locked for writing. `before_end` is called with the
    plans that have nothing left to do before they end; it returns whether the sources of any of them were
    changed.
    """
    seen, now = await world.store.read(lambda tx: (policy.decide(_frontier(tx, world), tx.now()), tx.now()))
    if not seen.decisions:
        return Advanced(legs=(), dispatched=False, look_again_s=_seconds_until(seen.look_again_at, now))
    ending = [one.plan_id for one in seen.decisions if isinstance(one, _ENDING)]
    if ending and before_end is not None and await before_end(ending):
        return Advanced(legs=(), dispatched=True, look_again_s=None)
    for one in seen.decisions:
        if isinstance(one, policy.Dispatch):
            await _dispatch(world, one.plan_id)

    def commit(tx: Tx) -> tuple[list[Leg], float | None]:
        # Decided again on what the transaction sees: the rows may have changed since the first read.
        frontier = _frontier(tx, world)
        decided, turns = policy.decide(frontier, tx.now()), _turns(frontier)
        made = [leg for one in decided.decisions if (leg := _apply(tx, world, one)) is not None]
        legs = [replace(leg, turn=turns.get(leg.subject)) for leg in made]
        return legs, _seconds_until(decided.look_again_at, tx.now())

    legs, look_again_s = await world.store.transact("advance", commit)
    again = (policy.Dispatch, policy.TakeTurn, policy.NextRound, policy.AskByHand, policy.Bypass)
    dispatched = any(isinstance(one, again) for one in seen.decisions)
    return Advanced(legs=tuple(legs), dispatched=dispatched, look_again_s=look_again_s)


def _seconds_until(at: datetime | None, now: datetime) -> float | None:
    return None if at is None else max(0.0, (at - now).total_seconds())


def _turns(frontier: policy.Frontier) -> Mapping[str, Turn]:
    """Return the turn of each attempt that may start or continue, by its id."""
    return {
        task.attempt_id: policy.turn_of(front.loop, front.plan, task)
        for front in frontier.fronts
        for task in (*front.ready, *front.parked)
        if task.attempt_id is not None
    }


def _frontier(tx: Tx, world: World) -> policy.Frontier:
    room, verify_room = _room(tx, world)
    standing = quotas.standing(tx)
    closed = any(one.state is EnvelopeState.CLOSED for one in standing.values())
    fronts = []
    decided = commands.being_decided(tx)
    driven = tx.find(Loop, state=(LoopState.RUNNING, LoopState.PAUSED), order_by=("priority",))
    held = holds.live_holds_if_any_wait(tx, driven)
    for loop in (one for one in driven if one.state is LoopState.RUNNING or one.resume_at is not None):
        plan = tx.get(Plan, loop.plan_id) if loop.plan_id else None
        if plan is None or plan.id in decided or not serves(tx, world, plan.project_id):
            continue
        front = _front(tx, world, loop, plan, room=room, closed=closed)
        if held is not None:
            turn = holds.turn_of(tx, loop, plan, front.ready, held)
            front = replace(front, asks=turn.claims, held_up=turn.held_up)
        fronts.append(front)
    return policy.Frontier(
        fronts=tuple(fronts),
        room=room,
        verify_room=verify_room,
        envelopes=standing,
        accounts=quotas.names(world.accounts),
        served=dict(world.served),
    )


def _room(tx: Tx, world: World) -> tuple[int, int | None]:
    """Return how many more attempts may start, and verifications if those are counted separately.

    Paused and stopped loops count too: their agents may not have ended yet.
    """
    hosts = living_hosts(tx, world)
    # An attempt that was stopped between two stages keeps its state, but no leg drives it.
    driven = [
        one
        for one in tx.find(Attempt, state=DRIVEN, wait_reason="")
        if one.host_id in hosts and may_move(tx, world, one)
    ]
    verifying = sum(may_move(tx, world, one) for one in tx.find(Plan, status=PlanState.VERIFYING))
    slots = _slots(tx, world)
    if not world.membership.exclusive:
        return slots - verifying - len(driven), None
    judged = sum(one.state in JUDGED for one in driven)
    return policy.room(slots, working=len(driven) - judged, judged=judged), slots - verifying


def _slots(tx: Tx, world: World) -> int:
    if world.membership.exclusive:
        return world.me.slots
    now = tx.now()
    return sum(worker.slots for worker in tx.find(Worker) if worker.lease_until > now)


def _front(tx: Tx, world: World, loop: Loop, plan: Plan, *, room: int, closed: bool) -> policy.Front:
    if plan.status is not PlanState.RUNNING or loop.state is not LoopState.RUNNING:
        return policy.Front(loop=loop, plan=plan)
    going = (TaskState.RUNNING, TaskState.AWAITING_RESPONSE)
    running = tx.find(Task, plan_id=plan.id, status=going, manual=False, order_by=_IN_ORDER)
    places = {task.id: place for place, task in enumerate(running)}
    attempts = tx.find(Attempt, id=[task.attempt_id for task in running]) if running else []
    attempts.sort(key=lambda one: places[one.task_id])
    waiting = tuple(one for one in attempts if one.state is AttemptState.WAITING)
    parked = {one.task_id for one in waiting}
    # On shared homes an engine counts legs, whatever they do: there checking takes a slot like all else.
    alone = world.membership.exclusive
    checked = {one.task_id for one in attempts if alone and one.state in JUDGED}
    working = tuple(task for task in running if task.id not in parked | checked)
    room = min(room, policy.plan_room(plan, len(working), len(checked), alone=alone))
    ready = _ready(tx, plan, room, closed=closed)
    unsettled = (TaskState.QUEUED, TaskState.AWAITING_RESPONSE)
    steps = tx.find(Task, plan_id=plan.id, manual=True, status=unsettled, order_by=_IN_ORDER)
    return policy.Front(
        loop=loop,
        plan=plan,
        ready=ready,
        manual=tuple(one for one in steps if all(getattr(one, key) == _TURN[key] for key in _TURN)),
        by_hand=tuple(one for one in steps if one.status is TaskState.AWAITING_RESPONSE),
        taken=_taken(tx, plan) if plan.open_tasks and not (ready or running) else (),
        blocked=_blocked(tx, plan) if plan.failed_tasks and not (ready or running) else (),
        unreviewed=unreviewed(tx, plan) if plan.policy.max_unreviewed else 0,
        working=working,
        preparing=sum(one.state is AttemptState.PREPARING and one.task_id not in checked for one in attempts),
        judged=tuple(task for task in running if task.id in checked),
        waiting=waiting,
        parked=tuple(task for task in running if task.id in parked),
        undecided=contradictions.undecided(tx, waiting),
        decided=contradictions.decided(tx, waiting),
        reviewers=_reviewers(tx, plan, waiting),
        handed_on={task.attempt_id: task for task in running if task.passed_over and task.attempt_id},
        last_round=round_views.last(tx, plan) if plan.policy.rounds.on and not plan.open_tasks else None,
    )


def _reviewers(tx: Tx, plan: Plan, waiting: tuple[Attempt, ...]) -> dict[str, Run]:
    """Return the reviewers' runs among those that parked attempts continue with, by attempt."""
    if not waiting or (plan.policy.review.mode == "off" and not plan.policy.review.agent):
        return {}
    runs = tx.find(Run, id=[one.run_id for one in waiting], role=Role.REVIEWER)
    return {run.attempt_id: run for run in runs if run.attempt_id is not None}


def _ready(tx: Tx, plan: Plan, room: int, *, closed: bool) -> tuple[Task, ...]:
    """Return what may start next, no more than needed: this query runs several times per task."""

    def first(limit: int) -> list[Task]:
        return tx.find(Task, plan_id=plan.id, manual=False, **_TURN, order_by=_IN_ORDER, limit=limit)

    # While nothing can start, it only matters whether there is one.
    found = first(max(room, 1))
    if room > 0 and (closed or any(claims(task) or task.not_before for task in found)):
        found = first(room + _LOOK_AHEAD)  # some of them may have to wait, and others go first
    return tuple(found)


def _taken(tx: Tx, plan: Plan) -> tuple[Task, ...]:
    """Return the tasks that the user works on; queried only if nothing else can move."""
    queued = tx.find(Task, plan_id=plan.id, status=TaskState.QUEUED, unmet=0, order_by=("position",))
    return tuple(task for task in queued if task.taken_by)


def _blocked(tx: Tx, plan: Plan) -> tuple[Task, ...]:
    """Return tasks that wait only for failed ones and may skip them; queried only if nothing else can move."""
    if not plan.policy.auto_heal:
        return ()
    tasks = {task.id: task for task in tx.find(Task, plan_id=plan.id)}
    steps = tx.find(Healing, plan_id=plan.id)
    return tuple(
        task
        for task in tasks.values()
        if task.status is TaskState.QUEUED
        and not (task.manual or task.taken_by)
        and may_bypass(
            plan,
            task,
            [tasks[one] for one in task.depends_on],
            [one.step for one in steps if one.task_id == task.id],
        )
    )


def unreviewed(tx: Tx, plan: Plan) -> int:
    """Return how many results of a plan the user has not reviewed."""
    landed = tx.find(Task, plan_id=plan.id, status=TaskState.COMPLETE, reviewed_by="")
    return sum(task.landed_sha is not None for task in landed)


def _apply(tx: Tx, world: World, decision: policy.Decision) -> Leg | None:
    match decision:
        case policy.Dispatch():
            return None  # committed in separate batches
        case policy.TakeTurn(plan_id=plan_id, tasks=tasks):
            holds.claim(tx, world.ids, need(tx.get(Plan, plan_id), "the plan"), tasks)
        case policy.StartAttempt(task_id=task_id, instead=instead):
            return _start(tx, need(tx.get(Task, task_id), "the task"), instead)
        case policy.AskByHand(task_id=task_id):
            ask_by_hand(tx, world.ids, need(tx.get(Task, task_id), "the task"))
        case policy.Bypass(task_id=task_id):
            healing.bypass(tx, world.ids, need(tx.get(Task, task_id), "the task"))
        case policy.WakeAttempt(attempt_id=attempt_id, instead=instead):
            return _go_on(tx, world, need(tx.get(Attempt, attempt_id), "the attempt"), instead)
        case policy.OpenEnvelope(envelope_id=envelope_id):
            quotas.open_again(tx, envelope_id)
        case policy.BeginVerify(plan_id=plan_id, stopped=stopped, green=green):
            if stopped is not None:
                rounds.note_end(tx, plan_id, stopped, green=green)
            return begin_verify(tx, need(tx.get(Plan, plan_id), "the plan"))
        case policy.NextRound(plan_id=plan_id):
            rounds.begin_next(tx, world.ids, need(tx.get(Plan, plan_id), "the plan"))
        case policy.HoldPlan(plan_id=plan_id, reason=reason):
            plan = tx.update(Plan, plan_id, reason=reason, outcome=Outcome.NEEDS_HUMAN)
            tx.append(happened("plan_held", MACHINE, plan=plan, reason=reason))
            loop = need(tx.get(Loop, plan.loop_id), "the loop")
            move_loop(tx, loop, LoopState.FAILED, "loop_failed", MACHINE, reason)
        case policy.FailPlan(plan_id=plan_id, reason=reason):
            plan = need(tx.get(Plan, plan_id), "the plan")
            fail_plan(tx, plan, reason)
        case policy.PauseLoop(loop_id=loop_id, reason=reason, over=over):
            loop = need(tx.get(Loop, loop_id), "the loop")
            if over is None:
                move_loop(tx, loop, LoopState.PAUSED, "loop_paused", MACHINE, reason)
            else:
                plan = need(tx.get(Plan, loop.plan_id or ""), "the plan")
                pauses.pause_and_ask(tx, world.ids, plan, over)
        case policy.ResumeLoop(loop_id=loop_id):
            pauses.go_on_by_itself(tx, need(tx.get(Loop, loop_id), "the loop"))
        case _:
            assert_never(decision)
    return None


def fail_plan(tx: Tx, plan: Plan, reason: str) -> None:
    """End a plan without a verdict, and its loop with it."""
    about = {"reason": reason}
    outcome = Outcome.NOT_VERIFIED
    move_plan(tx, plan, PlanState.FAILED, "plan_failed", about=about, reason=reason, outcome=outcome)
    loop = need(tx.get(Loop, plan.loop_id), "the loop")
    if loop.state is LoopState.RUNNING:
        move_loop(tx, loop, LoopState.FAILED, "loop_failed", MACHINE, reason)


def _start(tx: Tx, task: Task, instead: Choice | None) -> Leg:
    attempt = _given_to(tx, need(tx.get(Attempt, task.attempt_id or ""), "the queued attempt"), instead)
    about = {"n": attempt.n, "agent": attempt.agent}
    if instead is not None and instead.because:
        about |= {"because": instead.because}
    move_task(tx, task, TaskState.RUNNING, "task_started", about=about, not_before=None)
    return commit_leg(tx, move_attempt(tx, attempt, AttemptState.PREPARING))


def _given_to(tx: Tx, attempt: Attempt, instead: Choice | None) -> Attempt:
    """Let the attempt probe its envelope, or give it to the agent that takes over."""
    if instead is None:
        return attempt
    for probed in instead.probes:
        quotas.begin_probe(tx, probed, attempt)
    if not instead.because:
        return attempt
    run = tx.get(Run, attempt.run_id) if attempt.run_id else None
    if run is not None and run.state is RunState.QUEUED:
        tx.update(Run, run.id, agent=instead.agent, model=instead.model)
    return tx.update(
        Attempt,
        attempt.id,
        agent=instead.agent,
        account=None,
        model=instead.model,
        stands_in=instead.because,
    )


def _go_on(tx: Tx, world: World, attempt: Attempt, instead: Choice | None) -> Leg | None:
    """Wake a parked attempt, unless its question has no answer: then its task is blocked."""
    unanswered = questions.overdue(tx, attempt)
    if unanswered:
        failed = Failed(failure=Failure.UNANSWERED, detail=f"Its question was: {unanswered}"[:2000])
        fail_attempt(tx, world.ids, attempt, failed, fence=None, counts=False, chance=world.chance())
        return None
    if left := questions.open_of(tx, attempt):
        # It was woken too early, for example by resuming the loop.
        due = [one.deadline for one in left if one.deadline is not None]
        tx.update(Attempt, attempt.id, wake_at=min(due, default=None), updated_at=tx.now())
        return None
    if contradictions.is_decided(tx, attempt):
        return contradictions.judge_again(tx, attempt)
    run = tx.get(Run, attempt.run_id) if attempt.wait_reason == WAITS and attempt.run_id else None
    plan = need(tx.get(Plan, attempt.plan_id), "the plan")
    if run is not None and spending.has_to_wait(tx, world, plan, run):
        tx.update(Attempt, attempt.id, **spending.waiting(tx, plan), updated_at=tx.now())
        return None
    return wake(tx, world, _given_to(tx, attempt, instead))


def wake(tx: Tx, world: World, attempt: Attempt) -> Leg:
    """Commit to the next leg of a parked attempt: a new run in the same workspace."""
    plan = need(tx.get(Plan, attempt.plan_id), "the plan")
    task = need(tx.get(Task, attempt.task_id), "the task")
    if task.status is TaskState.AWAITING_RESPONSE:
        move_task(tx, task, TaskState.RUNNING, "task_resumed")
    before = tx.get(Run, attempt.run_id) if attempt.run_id else None
    if before is not None and before.state is RunState.AWAITING_RESPONSE:
        move_run(tx, before, RunState.COMPLETE, ended_at=before.ended_at)
    # An attempt that was parked before its agent started still has its run to do.
    queued = before is not None and before.state is RunState.QUEUED
    run = before if before is not None and queued else next_run(tx, world.ids, attempt, plan, before)
    # And if it would be the first, its workspace is updated: much may have landed in the meantime.
    begun = not queued or tx.count(Run, attempt_id=attempt.id, role=AGENT_ROLES) > 1
    woken = move_attempt(
        tx,
        attempt,
        AttemptState.WORKING if begun else AttemptState.PREPARING,
        about={"agent": attempt.agent, "because": attempt.stands_in} if attempt.stands_in else None,
        run_id=run.id,
        wake_at=None,
        wait_reason="",
        envelope_id=None,
    )
    return commit_leg(tx, woken)


async def _dispatch(world: World, plan_id: str) -> None:
    """Create every task's first attempt, in batches, so that another pass can continue after a kill."""
    plan, project = await world.store.read(lambda tx: _plan_and_project(tx, plan_id))
    try:
        repository = world.repository(project)
        plan = await follow_on(world, repository, plan)
        tip = await repository.ensure_branch(plan.branch, plan.base_sha)
        if plan.books and tip == plan.base_sha:
            await tell_on_branch(world, repository, project, plan)
    except (GitFailed, UserError, OSError) as trouble:
        # The machine or the repository is at fault, not the plan: the user fixes it and resumes.
        reason = f"the plan branch could not be created: {trouble}"

        def pause(tx: Tx) -> None:
            loop = need(tx.get(Loop, _current(tx, plan_id).loop_id), "the loop")
            move_loop(tx, loop, LoopState.PAUSED, "loop_paused", MACHINE, reason)

        await world.store.transact("dispatch.paused", pause)
        return
    if plan.status is PlanState.DRAFT:

        def begin(tx: Tx) -> None:
            current = _current(tx, plan_id)
            move_plan(tx, current, PlanState.DISPATCHING, "plan_dispatching", executed_at=tx.now())

        await world.store.transact("dispatch.begin", begin)
    while await world.store.transact("dispatch.tasks", lambda tx: _dispatch_batch(tx, world, plan_id)):
        pass
    await world.store.transact("dispatch.over", lambda tx: _dispatched(tx, _current(tx, plan_id)))


def _dispatched(tx: Tx, plan: Plan) -> None:
    if plan.status is not PlanState.DISPATCHING:
        raise StaleVersion(f"{plan.id} was dispatched by another controller")
    move_plan(tx, plan, PlanState.RUNNING, "plan_dispatched")


def _plan_and_project(tx: Tx, plan_id: str) -> tuple[Plan, Project]:
    plan = _current(tx, plan_id)
    return plan, need(tx.get(Project, plan.project_id), "the project")


def _current(tx: Tx, plan_id: str) -> Plan:
    return need(tx.get(Plan, plan_id), "the plan")


def _dispatch_batch(tx: Tx, world: World, plan_id: str) -> int:
    plan = _current(tx, plan_id)
    batch = tx.find(
        Task, plan_id=plan_id, status=TaskState.CREATED, order_by=("position",), limit=_DISPATCH_BATCH
    )
    for task in batch:
        if task.manual:
            move_task(tx, task, TaskState.QUEUED, "task_queued")
            continue
        try:
            world.agent(task.agent or plan.policy.agent)
        except UserError as trouble:
            # One run that cannot be created must not hold up the others.
            reason = str(trouble)
            attempt = _not_created(tx, world, plan, task, reason)
            move_task(
                tx,
                task,
                TaskState.ERROR,
                "task_failed",
                about={"reason": reason},
                reason=reason,
                failure=Failure.CANNOT_START,
                outcome=Outcome.NEEDS_HUMAN,
                attempt_id=attempt.id,
            )
            continue
        attempt = new_attempt(tx, world.ids, plan, task, n=1)
        move_task(tx, task, TaskState.QUEUED, "task_queued", attempt_id=attempt.id)
    return len(batch)


def _not_created(tx: Tx, world: World, plan: Plan, task: Task, reason: str) -> Attempt:
    """Record an attempt whose run could not be created, as ERROR."""
    attempt = new_attempt(tx, world.ids, plan, task, n=1)
    run = need(tx.get(Run, attempt.run_id or ""), "the run")
    move_run(tx, run, RunState.ERROR, summary=reason, failure=Failure.CANNOT_START)
    return move_attempt(
        tx,
        attempt,
        AttemptState.BROKEN,
        about={"failure": Failure.CANNOT_START.value, "detail": reason},
        failure=Failure.CANNOT_START,  # and no detail: it does not help the next agent
    )
