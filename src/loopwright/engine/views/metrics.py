"""The results of a project's plans: attempts, time, cost, and tasks that needed many attempts.

From rows alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from loopwright.core.rows.model import (
    AGENT_ROLES,
    Attempt,
    Loop,
    Outcome,
    Plan,
    Role,
    Run,
    Task,
    Usage,
    VerdictRecord,
)
from loopwright.core.values.failures import Failure
from loopwright.core.values.states import AttemptState, LoopState, PlanState, RunState, TaskState
from loopwright.engine.rows.plan_states_text import driven_by, word_of
from loopwright.ports import Tx

FLAKY_ABOVE = 2
"""A task that needed more attempts than this is named."""
_JUDGED = (AttemptState.LANDED, AttemptState.REJECTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlakyTask:
    """A task that needed many attempts."""

    plan_id: str
    key: str
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The totals of several tasks."""

    tasks: int = 0
    completed: int = 0
    failed: int = 0
    """Tasks that agents worked on; a task that the user blocked before is not a failure."""
    attempts: int = 0
    """Attempts that were judged; an attempt that was interrupted by the machine does not count."""
    retries: int = 0
    """Attempts beyond the first of each task."""
    begun: int = 0
    """All attempts in which an agent started: including interrupted ones, and those that continue."""
    broken_off: int = 0
    first_pass: int = 0
    """Tasks whose first attempt landed and stayed."""
    first_pass_rate: float | None = None
    """The share among completed and failed tasks; None if there are none."""
    agent_runs: int = 0
    agent_seconds: float = 0.0
    gate_runs: int = 0
    gate_seconds: float = 0.0
    cost_micros: int = 0
    unknown_costs: int = 0
    """Runs of unknown cost: they are not in the sum."""
    cost_estimated: bool = False
    """Whether some of it comes from the table of prices."""
    flaky: tuple[FlakyTask, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFigures:
    """The totals of one plan."""

    plan_id: str
    loop_id: str
    loop: str
    title: str
    status: PlanState
    state: str
    """Its state in one word: see `engine.rows.plan_states_text`."""
    outcome: Outcome | None
    loop_state: LoopState | Literal[""]
    """Empty if its loop drives another plan by now."""
    started_at: datetime | None
    ended_at: datetime | None
    wall_seconds: float | None
    """From its start to its end, waits included; None while it continues."""
    figures: Figures


def plan_figures(tx: Tx, plan: Plan) -> PlanFigures:
    """Return the totals of a plan."""
    loop = tx.get(Loop, plan.loop_id)
    driven = driven_by(loop, plan)
    ended = plan.verified_at or plan.completed_at
    started = plan.executed_at
    return PlanFigures(
        plan_id=plan.id,
        loop_id=plan.loop_id,
        loop=loop.name if loop is not None else "",
        title=plan.title,
        status=plan.status,
        state=word_of(plan.status, plan.outcome, driven),
        outcome=plan.outcome,
        loop_state=driven,
        started_at=started,
        ended_at=ended,
        wall_seconds=(ended - started).total_seconds() if started and ended else None,
        figures=_figures(
            tx.find(Task, plan_id=plan.id, order_by=("position",)),
            tx.find(Attempt, plan_id=plan.id),
            tx.find(Run, plan_id=plan.id),
        ),
    )


def together(plans: Sequence[PlanFigures]) -> Figures:
    """Return the totals of several plans."""
    each = [one.figures for one in plans]

    def total(name: str) -> int:
        return sum(getattr(one, name) for one in each)

    settled = total("completed") + total("failed")
    return Figures(
        tasks=total("tasks"),
        completed=total("completed"),
        failed=total("failed"),
        attempts=total("attempts"),
        retries=total("retries"),
        begun=total("begun"),
        broken_off=total("broken_off"),
        first_pass=total("first_pass"),
        first_pass_rate=total("first_pass") / settled if settled else None,
        agent_runs=total("agent_runs"),
        agent_seconds=sum(one.agent_seconds for one in each),
        gate_runs=total("gate_runs"),
        gate_seconds=sum(one.gate_seconds for one in each),
        cost_micros=total("cost_micros"),
        unknown_costs=total("unknown_costs"),
        cost_estimated=any(one.cost_estimated for one in each),
        flaky=_most(task for one in each for task in one.flaky),
    )


def _figures(tasks: Sequence[Task], attempts: Sequence[Attempt], runs: Sequence[Run]) -> Figures:
    judged: dict[str, list[Attempt]] = {task.id: [] for task in tasks}
    for attempt in sorted(attempts, key=lambda one: one.n):
        # A QA review with findings did its job: it is not a failed attempt.
        if attempt.state in _JUDGED and attempt.failure is not Failure.ISSUES:
            judged[attempt.task_id].append(attempt)
    agents = [run for run in runs if run.role in AGENT_ROLES and run.started_at is not None]
    started = {run.attempt_id for run in agents}
    # A workspace that is prepared ahead is not an attempt yet, and the user's work is not an agent's.
    begun = [one for one in attempts if one.id in started]
    tried = {one.task_id for one in begun}
    completed = [task for task in tasks if task.status is TaskState.COMPLETE]
    failed = sum(task.status is TaskState.ERROR and task.id in tried for task in tasks)
    at_once = sum(_landed_first(judged[task.id]) for task in completed)
    settled = len(completed) + failed
    gates = [run for run in runs if run.role not in AGENT_ROLES and run.started_at is not None]
    return Figures(
        tasks=len(tasks),
        completed=len(completed),
        failed=failed,
        attempts=sum(len(tries) for tries in judged.values()),
        retries=sum(max(0, len(tries) - 1) for tries in judged.values()),
        begun=len(begun),
        broken_off=sum(one.state is AttemptState.BROKEN for one in begun),
        first_pass=at_once,
        first_pass_rate=at_once / settled if settled else None,
        agent_runs=len(agents),
        agent_seconds=_seconds(agents),
        gate_runs=len(gates),
        gate_seconds=_seconds(gates),
        cost_micros=sum(run.cost_micros or 0 for run in agents),
        unknown_costs=sum(run.cost_micros is None and run.ended_at is not None for run in agents),
        cost_estimated=any(run.cost_estimated for run in agents),
        flaky=_most(
            FlakyTask(plan_id=task.plan_id, key=task.key, attempts=len(judged[task.id]))
            for task in tasks
            if len(judged[task.id]) > FLAKY_ABOVE
        ),
    )


def _landed_first(tries: Sequence[Attempt]) -> bool:
    # If more followed, the user removed the first one's landing.
    return len(tries) == 1 and tries[0].state is AttemptState.LANDED


def _most(tasks: Iterable[FlakyTask]) -> tuple[FlakyTask, ...]:
    return tuple(sorted(tasks, key=lambda one: (-one.attempts, one.plan_id, one.key)))


def _seconds(runs: Iterable[Run]) -> float:
    return sum(
        (run.ended_at - run.started_at).total_seconds() for run in runs if run.started_at and run.ended_at
    )


# The flaky checks of a project, from the verdicts that found them.

_AT_ONCE = 100
"""The most values in one database query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlakyView:
    """One check that failed and passed on the same tree."""

    name: str
    command: str
    """The gate's command that contains it."""
    times: int
    """How often it was flaky."""
    last_at: datetime
    plan_id: str
    """The plan in which it was last flaky."""
    task: str | None
    """The key of the task whose candidate was checked then; None if it was the result of the plan."""
    run_id: str


def flaky_checks(tx: Tx, plans: Sequence[Plan]) -> list[FlakyView]:
    """Return the flaky checks that the gates of these plans found, the most frequent first."""
    found: dict[tuple[str, str], FlakyView] = {}
    ids = [plan.id for plan in plans]
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        for record in tx.find(VerdictRecord, plan_id=some, order_by=("created_at",)):
            for command in record.verdict.commands:
                for name in command.flaky:
                    key = name, command.command
                    times = found[key].times if key in found else 0
                    found[key] = FlakyView(
                        name=name,
                        command=command.command,
                        times=times + 1,
                        last_at=record.created_at,
                        plan_id=record.plan_id,
                        task=None,
                        run_id=record.run_id,
                    )
    listed = [replace(one, task=_task(tx, one.run_id)) for one in found.values()]
    return sorted(listed, key=lambda one: (-one.times, one.name, one.command))


def _task(tx: Tx, run_id: str) -> str | None:
    run = tx.get(Run, run_id)
    task = tx.get(Task, run.task_id) if run is not None and run.task_id is not None else None
    return task.key if task is not None else None


# The use of each run, and of a loop's plans: the same rows as in `metrics`, grouped differently.


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopFigures:
    """The totals of a loop's plans."""

    loop_id: str
    loop: str
    plans: int
    verified: int
    started_at: datetime | None
    ended_at: datetime | None
    """The end of the newest plan; None while it continues."""
    wall_seconds: float
    """The time of plans that have ended, including waits, without the time between them."""
    figures: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """The totals of one process: an agent's, or a gate's."""

    run_id: str
    plan_id: str
    loop_id: str
    task: str
    """Its key; empty for the whole plan."""
    attempt: int | None
    role: Role
    agent: str | None
    model: str | None
    state: RunState
    failure: Failure | None
    started_at: datetime
    ended_at: datetime | None
    wall_seconds: float | None
    """None while it continues."""
    cost_micros: int | None
    """None if unknown, or for a gate, which costs nothing."""
    cost_estimated: bool
    usage: Usage | None


def loop_figures(plans: Sequence[PlanFigures]) -> list[LoopFigures]:
    """Return the totals of each loop, from its plans, newest first."""
    mine: dict[str, list[PlanFigures]] = {}
    for plan in plans:
        mine.setdefault(plan.loop_id, []).append(plan)
    return [
        LoopFigures(
            loop_id=loop_id,
            loop=found[0].loop,
            plans=len(found),
            verified=sum(one.status is PlanState.VERIFIED for one in found),
            started_at=min((one.started_at for one in found if one.started_at), default=None),
            ended_at=found[0].ended_at,
            wall_seconds=sum(one.wall_seconds or 0.0 for one in found),
            figures=together(found),
        )
        for loop_id, found in mine.items()
    ]


def run_figures(tx: Tx, plan: Plan) -> list[RunFigures]:
    """Return the totals of each run of a plan that has begun, in the order in which they began."""
    keys = {one.id: one.key for one in tx.find(Task, plan_id=plan.id)}
    numbers = {one.id: one.n for one in tx.find(Attempt, plan_id=plan.id)}
    begun = [
        (one.started_at, one)
        for one in tx.find(Run, plan_id=plan.id, order_by=("created_at",))
        if one.started_at is not None
    ]
    return [
        RunFigures(
            run_id=run.id,
            plan_id=plan.id,
            loop_id=plan.loop_id,
            task=keys.get(run.task_id or "", ""),
            attempt=numbers.get(run.attempt_id or ""),
            role=run.role,
            agent=run.agent,
            model=run.model,
            state=run.state,
            failure=run.failure,
            started_at=started,
            ended_at=run.ended_at,
            wall_seconds=(run.ended_at - started).total_seconds() if run.ended_at else None,
            cost_micros=run.cost_micros if run.role in AGENT_ROLES else None,
            cost_estimated=run.cost_estimated,
            usage=run.usage,
        )
        for started, run in sorted(begun, key=lambda pair: (pair[0], pair[1].id))
    ]
