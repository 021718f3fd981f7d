"""All scheduling policy as one pure function over the affected frontier.

It never sees a whole plan: rows keep counts of unmet dependencies and open tasks. So the cost of a pass
depends on the work that is due, not on the size of the plan.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from loopwright.core.policy import fallback
from loopwright.core.policy.budget import WAITS, Over, over_budget
from loopwright.core.policy.graph import claims, scopes_overlap
from loopwright.core.policy.quotas import Admission, Choice, Held, unwilling
from loopwright.core.policy.retry import LONGEST_PAUSE
from loopwright.core.policy.rounds import Last, Stop, following, is_late
from loopwright.core.policy.share import Claim, aged, fair_shares
from loopwright.core.rows.model import Attempt, Loop, Plan, Run, Task
from loopwright.core.rows.turns import Turn
from loopwright.core.rows.waiting_rows import Envelope
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import LoopState, PlanState
from loopwright.core.values.wording import to_type

_MOST_AHEAD = 4
_MOST_ROUNDS = 8
"""How often slots that a loop cannot use are offered to another loop in the same pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """What can move in one plan."""

    loop: Loop
    plan: Plan
    ready: tuple[Task, ...] = ()
    """QUEUED tasks without an unmet dependency, best first; at most as many as can start."""
    working: tuple[Task, ...] = ()
    """Tasks whose attempt is alive and holds a slot."""
    judged: tuple[Task, ...] = ()
    """Tasks whose attempt is being checked or landed: it keeps other tasks off its scope, but needs no agent."""
    waiting: tuple[Attempt, ...] = ()
    """Attempts parked until a time or until the user resumes them, in the order of their tasks."""
    parked: tuple[Task, ...] = ()
    """The tasks of those in `waiting`: their unfinished work keeps other tasks off their scope."""
    taken: tuple[Task, ...] = ()
    """Tasks that the user works on, if nothing else can move."""
    unreviewed: int = 0
    """Results that wait for your review; counted only if that is limited."""
    handed_on: Mapping[str, Task] = field(default_factory=dict)
    """The tasks of `waiting` that an agent handed on permanently, by attempt id."""
    undecided: frozenset[str] = frozenset()
    """Those of the waiting attempts that wait for the user's decision about contradicted checks."""
    decided: frozenset[str] = frozenset()
    """Those of the waiting attempts that the user has decided about: they are judged again, without an agent."""
    reviewers: Mapping[str, Run] = field(default_factory=dict)
    """The reviewers' runs that attempts in `waiting` continue with, by attempt id."""
    manual: tuple[Task, ...] = ()
    """Manual steps that are due, and that the user was not asked about yet."""
    blocked: tuple[Task, ...] = ()
    """Tasks that wait only for failed ones and may be tried without them, if nothing else can move."""
    by_hand: tuple[Task, ...] = ()
    """Manual steps that wait for the user's answer."""
    last_round: Last | None = None
    """The newest round of a prompt loop with nothing left to do."""
    asks: tuple[str, ...] | None = None
    """The tasks whose files it has to ask for first, empty for the whole plan; None if it has what it needs."""
    held_up: frozenset[str] = frozenset()
    """The tasks that wait until another loop ends, or the plan itself."""
    preparing: int = 0
    """How many of those in `working` are only preparing their workspace: their agents do not run yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """What can move in a home."""

    fronts: tuple[Front, ...]
    room: int
    """How many more attempts may start in total."""
    verify_room: int | None = None
    """How many verifications may start; None on a shared home, where they use the slots of attempts."""
    envelopes: Mapping[str, Envelope] = field(default_factory=dict)
    """The quotas of agents' accounts, by id."""
    accounts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The accounts of each agent that has any in the settings, in their order."""
    served: Mapping[str, int] = field(default_factory=dict)
    """When each plan last got an agent, as a growing number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """Create the attempts and runs of an accepted plan."""

    plan_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeTurn:
    """Ask for the files of a plan or of its tasks, so that loops of one project take turns."""

    plan_id: str
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StartAttempt:
    """Commit to the first leg of the task's queued attempt."""

    task_id: str
    instead: Choice | None = None
    """The agent that works, if it is not the attempt's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskByHand:
    """Ask the user to do a manual step."""

    task_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeAttempt:
    """Commit to the next leg of a parked attempt."""

    attempt_id: str
    instead: Choice | None = None
    """The agent that works, if it is not the attempt's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenEnvelope:
    """Open the quota to all runs: the service has accepted the probe."""

    envelope_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bypass:
    """Try a task without the failed ones that it depends on."""

    task_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginVerify:
    """Run gate:all on the integrated branch."""

    plan_id: str
    stopped: Stop | None = None
    """What stopped the loop, if the plan is one."""
    green: bool = False
    """Whether the checks of its last round passed, without an excused failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextRound:
    """Give a prompt loop its next round."""

    plan_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldPlan:
    """Hold the plan, because nothing can move without the user; it stays RUNNING (partial)."""

    plan_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FailPlan:
    """End the plan, because by its policy a failed task fails it."""

    plan_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseLoop:
    """Start nothing more until the user resumes."""

    loop_id: str
    reason: str
    over: Over | None = None
    """Set if too much was spent: then the user is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeLoop:
    """Resume a loop whose pause has an end."""

    loop_id: str


Decision = (
    Dispatch
    | TakeTurn
    | StartAttempt
    | AskByHand
    | WakeAttempt
    | OpenEnvelope
    | Bypass
    | BeginVerify
    | NextRound
    | HoldPlan
    | FailPlan
    | PauseLoop
    | ResumeLoop
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What to do now, and when to decide again even if nothing happens."""

    decisions: tuple[Decision, ...]
    look_again_at: datetime | None = None


def decide(frontier: Frontier, now: datetime) -> Decided:
    """Return everything that may happen now, most urgent loop first."""
    fronts = sorted(
        frontier.fronts, key=lambda one: (urgency_of(one, now), *_urgency(one.loop, one.plan)[1:])
    )
    shares = _shares(fronts, frontier, now)
    decided, unused = _decide_all(fronts, frontier, now, shares)
    rounds = 0
    while unused and rounds < _MOST_ROUNDS:
        # Slots that one loop cannot use go to the others.
        rounds += 1
        shares.update(unused)
        decided, unused = _decide_all(fronts, frontier, now, shares)
    return decided


def urgency_of(front: Front, now: datetime) -> int:
    """Return how urgent a loop is; lower goes first.

    A loop without an agent that could use one gets more urgent over time.
    """
    waits = not front.working and front.ready
    return aged(front.loop.priority, now - front.ready[0].updated_at) if waits else front.loop.priority


def _shares(fronts: Sequence[Front], frontier: Frontier, now: datetime) -> dict[str, int]:
    """Return how many slots each of several loops may use; empty if only one wants any."""
    claims = [
        Claim(
            name=one.plan.id,
            urgency=urgency_of(one, now),
            held=len(one.working),
            served=frontier.served.get(one.plan.id, 0),
            wanted=len(one.ready) + len(one.waiting),
        )
        for one in fronts
        if one.loop.state is LoopState.RUNNING and (one.ready or one.waiting)
    ]
    return fair_shares(claims, max(0, frontier.room)) if len(claims) > 1 else {}


def _decide_all(
    fronts: Sequence[Front], frontier: Frontier, now: datetime, shares: Mapping[str, int]
) -> tuple[Decided, dict[str, int]]:
    """Return what may happen with these shares, and better shares if one held a loop back while slots are free."""
    used: dict[str, int] = {}
    held_back = ""
    preparing: Counter[int] = Counter()
    # On a shared home no workspace is prepared ahead.
    for one in fronts if frontier.verify_room is not None else ():
        preparing[one.loop.priority] += one.preparing
    left, verify_left = frontier.room, frontier.verify_room
    admission = Admission(frontier.envelopes, now, frontier.accounts)
    decisions: list[Decision] = [OpenEnvelope(envelope_id=one.id) for one in admission.proven]
    due: list[datetime] = []
    for front in fronts:
        resume_at = front.loop.resume_at
        if front.loop.state is LoopState.PAUSED and resume_at is not None:
            if resume_at <= now:
                decisions.append(ResumeLoop(loop_id=front.loop.id))
            else:
                due.append(resume_at)
        if front.loop.state is not LoopState.RUNNING:
            continue
        own = plan_room(front.plan, len(front.working), len(front.judged), alone=verify_left is not None)
        # A loop with a better priority gets its place in line before those that only prepare workspaces. A loop that
        # has only waited longer does not: many waiting loops would add workspaces without end.
        ahead_of = sum(count for priority, count in preparing.items() if priority > front.loop.priority)
        share = shares.get(front.plan.id, left)
        room = min(min(left, share) if left > 0 else left + ahead_of, own)
        made, later = _decide_plan(front, now, room, left if verify_left is None else verify_left, admission)
        started = sum(isinstance(one, StartAttempt | WakeAttempt) for one in made)
        if front.plan.id in shares:
            used[front.plan.id] = started
        if not held_back and started == share < min(left, own, len(front.ready) + len(front.waiting)):
            held_back = front.plan.id
        left -= started
        begun = sum(isinstance(one, BeginVerify) for one in made)
        if verify_left is None:
            left -= begun
        else:
            verify_left -= begun
        decisions.extend(made)
        due.extend(later)
    decided = Decided(decisions=tuple(decisions), look_again_at=min(due, default=None))
    return decided, {**used, held_back: used[held_back] + left} if held_back and left > 0 else {}


def turn_of(loop: Loop, plan: Plan, task: Task) -> Turn:
    """Return the place of a task's attempt in the line for an agent."""
    # A task that was added to a plan may have the position of another: then the older one goes first.
    rank = (*_urgency(loop, plan), task.priority, task.position, task.created_at)
    return Turn(
        plan_id=plan.id,
        parallel=plan.policy.parallel,
        rank=rank,
        project_id=plan.project_id,
        agent=fallback.meant(task, plan.policy)[0],
    )


def _urgency(loop: Loop, plan: Plan) -> tuple[int, datetime, str]:
    return (loop.priority, plan.created_at, plan.id)


def _decide_plan(
    front: Front, now: datetime, room: int, verify_room: int, admission: Admission
) -> tuple[list[Decision], list[datetime]]:
    plan = front.plan
    asked: list[Decision] = [] if front.asks is None else [TakeTurn(plan_id=plan.id, tasks=front.asks)]
    if plan.status in (PlanState.DRAFT, PlanState.DISPATCHING):
        return asked or ([] if plan.id in front.held_up else [Dispatch(plan_id=plan.id)]), []
    if plan.status is not PlanState.RUNNING:
        return [], []
    if front.manual:
        # They cost nothing. The next pass decides what may start beside them.
        return [AskByHand(task_id=task.id) for task in front.manual], []
    over = over_budget(plan)
    if over and (judged_next := tuple(one for one in front.waiting if one.id in front.decided)):
        # Checking costs nothing, so the budget holds back only the rest.
        front = replace(front, ready=(), waiting=judged_next)
    elif over and (front.ready or front.waiting):
        return [PauseLoop(loop_id=front.loop.id, reason=over.reason(plan.id), over=over)], []
    decisions, due, held = _start_tasks(front, now, room, admission)
    decisions += asked
    reason = next(filter(None, (unwilling(plan.policy, one.envelope, now) for one in held)), "")
    if reason and not (decisions or front.working or front.judged):
        return [PauseLoop(loop_id=front.loop.id, reason=reason)], []
    waiting = any(one.id not in front.undecided for one in front.waiting)
    # A ready task that did not start waits for the undecided one: they share a scope.
    ready = front.ready if not front.undecided or room <= 0 else ()
    if decisions or due or ready or front.working or front.judged or waiting:
        return decisions, due
    return _nothing_moves(front, now, verify_room)


def _start_tasks(
    front: Front, now: datetime, room: int, admission: Admission
) -> tuple[list[Decision], list[datetime], list[Held]]:
    """Return what starts, when to decide again, and what keeps others from starting."""
    policy = front.plan.policy
    decisions: list[Decision] = []
    due: list[datetime] = []
    held: list[Held] = []

    def admit(
        agent: str, model: str | None, others: Sequence[str], stays: str | None = None
    ) -> Choice | None:
        choice = admission.choose(agent, model, others, stays=stays)
        if isinstance(choice, Choice):
            return choice
        held.append(choice)
        due.extend(filter(None, (choice.look_again_at,)))
        return None

    busy_scopes: list[Sequence[str]] = [
        claims(task) for task in (*front.working, *front.judged, *front.parked)
    ]
    for attempt in front.waiting:
        if attempt.wake_at is None:
            continue  # the user resumes it
        # An attempt that waits for a quota continues when it opens, or when another agent may take over.
        if attempt.envelope_id is None and _waits(attempt.wake_at, attempt.updated_at, now):
            due.append(attempt.wake_at)
        elif len(decisions) < room and attempt.id in front.decided:
            decisions.append(WakeAttempt(attempt_id=attempt.id))
        elif len(decisions) < room:
            task = front.handed_on.get(attempt.id)
            others = fallback.after(task, policy) if task is not None else policy.fallback
            if reviewer := front.reviewers.get(attempt.id):
                choice = admit(reviewer.agent or attempt.agent, reviewer.model, ())
            else:
                choice = admit(attempt.agent, attempt.model, others, attempt.account)
            if choice:
                decisions.append(WakeAttempt(attempt_id=attempt.id, instead=_special(choice)))
    unseen = review_room(front)
    # Another attempt would only wait for the budget too, and occupy a workspace. An attempt that already has its
    # share of the budget, and waits for another reason, holds back no other attempt.
    woken = {one.attempt_id for one in decisions if isinstance(one, WakeAttempt)}
    crowded = any(
        attempt.wait_reason == WAITS
        and (
            attempt.id in woken or attempt.wake_at is None or _waits(attempt.wake_at, attempt.updated_at, now)
        )
        for attempt in front.waiting
    )
    for task in () if crowded else front.ready:
        if task.not_before is not None and _waits(task.not_before, task.updated_at, now):
            due.append(task.not_before)
        elif task.id in front.held_up:
            continue
        elif (
            len(decisions) < room
            and unseen > 0
            and not any(scopes_overlap(claims(task), scope) for scope in busy_scopes)
            and (choice := admit(*fallback.meant(task, policy), fallback.after(task, policy)))
        ):
            decisions.append(StartAttempt(task_id=task.id, instead=_special(choice)))
            busy_scopes.append(claims(task))
            unseen -= 1
    return decisions, due, held


def _special(choice: Choice) -> Choice | None:
    return choice if choice.probes or choice.because else None


def plan_room(plan: Plan, working: int, judged: int, *, alone: bool) -> int:
    """Return how many more attempts a plan may have.

    On a shared home every leg counts against the slots, whatever it does, so nothing is checked outside them.
    """
    parallel = plan.policy.parallel
    return room(parallel, working=working, judged=judged) if alone else parallel - working - judged


def review_room(front: Front) -> int:
    """Return how many more tasks may start before too many results wait for your review."""
    limit = front.plan.policy.max_unreviewed
    going = len(front.working) + len(front.judged) + len(front.waiting)
    return limit - front.unreviewed - going if limit else len(front.ready)


def ahead(slots: int) -> int:
    """Return how many workspaces may be prepared while all slots are taken."""
    return min(slots, _MOST_AHEAD)


def room(slots: int, *, working: int, judged: int) -> int:
    """Return how many more attempts may start in a home with one worker.

    One agent per slot may run, some more attempts may be prepared, and one attempt per slot may wait for its
    checks, so that those do not pile up either.
    """
    return min(slots + ahead(slots) - working, 2 * slots + ahead(slots) - working - judged)


def _waits(until: datetime, decided_at: datetime, now: datetime) -> bool:
    """Return whether a time is still in the future.

    If now is before the decision, the clock was set back since. Our own pause would then last too long, hours
    perhaps, so it ends. A time that a service named is kept.
    """
    if now < decided_at and until - decided_at <= LONGEST_PAUSE:
        return False
    return until > now


def _nothing_moves(front: Front, now: datetime, room: int) -> tuple[list[Decision], list[datetime]]:
    plan = front.plan
    if front.undecided:
        count = len(front.undecided)
        tasks = (
            "1 task contradicts existing checks and waits"
            if count == 1
            else (f"{count} tasks contradict existing checks and wait")
        )
        reason = f"{tasks} for your decision: `loopwright answer`"
        return [HoldPlan(plan_id=plan.id, reason=reason)], []
    if plan.failed_tasks and plan.policy.on_task_error == "fail":
        return [FailPlan(plan_id=plan.id, reason=_failed_reason(plan))], []
    if front.blocked:
        return [Bypass(task_id=task.id) for task in front.blocked], []
    if front.by_hand:
        return [HoldPlan(plan_id=plan.id, reason=_by_hand_reason(front))], []
    if plan.failed_tasks:
        reason = _failed_reason(plan)
        return [HoldPlan(plan_id=plan.id, reason=reason)], []
    if front.taken:
        names = ", ".join(task.key for task in front.taken[:5])
        back = to_type("take-over", front.taken[0].key, done=True)
        reason = f"{names} {'is' if len(front.taken) == 1 else 'are'} with a person: `{back}` continues"
        return [HoldPlan(plan_id=plan.id, reason=reason)], []
    if plan.open_tasks:
        # Every open task waits for another open one: only a defect or an outside edit can cause that.
        reason = f"{plan.open_tasks} tasks are open and none of them can start"
        return [HoldPlan(plan_id=plan.id, reason=reason)], []
    if plan.not_before is not None and _waits(plan.not_before, plan.updated_at, now):
        return [], [plan.not_before]
    stopped = None
    if front.last_round is not None:
        then = following(plan, front.last_round)
        if isinstance(then, datetime):
            if _waits(then, front.last_round.at, now):
                return [], [then]
            if not is_late(plan, now):
                return [NextRound(plan_id=plan.id)], []
            then = Stop.TIME
        stopped = then
    if plan.policy.autonomy == "manual" and plan.verify_asked_at is None:
        reason = f"every task is settled; it waits for `{to_type('reverify', short_id(plan.id))}`"
        return [PauseLoop(loop_id=front.loop.id, reason=reason)], []
    green = front.last_round is not None and front.last_round.green
    return ([BeginVerify(plan_id=plan.id, stopped=stopped, green=green)] if room > 0 else []), []


def _by_hand_reason(front: Front) -> str:
    names = ", ".join(task.key for task in front.by_hand[:5])
    count = len(front.by_hand)
    steps = "1 manual step waits" if count == 1 else f"{count} manual steps wait"
    failed = front.plan.failed_tasks
    more = f"; {'1 task' if failed == 1 else f'{failed} tasks'} failed" if failed else ""
    return f"{steps} for you ({names}): `loopwright answer`{more}"


def _failed_reason(plan: Plan) -> str:
    failed = "1 task needs you" if plan.failed_tasks == 1 else f"{plan.failed_tasks} tasks need you"
    if not plan.open_tasks:
        return failed
    waits = "1 more waits" if plan.open_tasks == 1 else f"{plan.open_tasks} more wait"
    return f"{failed}; {waits} for {'it' if plan.failed_tasks == 1 else 'them'}"
