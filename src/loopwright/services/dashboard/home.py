"""The first page: what needs you, what runs, what waits and what has finished."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from loopwright.core.rows.model import AGENT_ROLES, Attempt, Loop, Plan, Project, Run, Task
from loopwright.core.rows.waiting_rows import Envelope, Question
from loopwright.core.values.access import Caller
from loopwright.core.values.states import (
    ENDED_PLAN,
    AttemptState,
    LoopState,
    PlanState,
    QuestionState,
    RunState,
    TaskState,
)
from loopwright.engine.rows.drafts import is_written
from loopwright.engine.rows.plan_states_text import driven_by, taken_by, word_of
from loopwright.engine.rows.world import HomePaths
from loopwright.engine.views.activity import progress
from loopwright.engine.views.question_views import QuestionView, question_view
from loopwright.ports import Tx
from loopwright.services.homes.session import Session
from loopwright.services.remote.seen import seen_where
from loopwright.services.reports.alerts import Alert, alerts

LISTED: Final = 40
"""How many plans of each kind are listed."""
ON_BOARD: Final = 30
"""How many tasks a column of the board shows."""


class Place(StrEnum):
    """The part of the page that shows a plan."""

    NEEDS_YOU = "needs you"
    DRAFT = "ready to dispatch"
    READY = "ready to accept"
    RUNNING = "running"
    WAITING = "waiting"
    FINISHED = "finished"


class Column(StrEnum):
    """A column of the board."""

    QUEUED = "Queued"
    RUNNING = "Running"
    CHECKING = "Checking"
    WAITING = "Waiting for you"
    DONE = "Done"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCard:
    """One plan as a row of a list."""

    id: str
    title: str
    project: str
    project_id: str
    word: str
    """Its state in one word: see `engine.rows.plan_states_text`."""
    reason: str
    done: int
    failed: int
    total: int
    cost_micros: int | None
    created_at: datetime
    changed_at: datetime
    waits_for: str = ""
    wakes_at: datetime | None = None
    active: tuple["Active", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Active:
    """One task that an agent or a gate works on now."""

    task_id: str
    key: str
    title: str
    agent: str
    stage: AttemptState
    doing: str
    since: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardCard:
    """One task on the board."""

    task_id: str
    plan_id: str
    key: str
    title: str
    project: str
    plan: str
    agent: str
    stage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """Tasks of all unfinished plans by what happens to them."""

    columns: Mapping[Column, tuple[BoardCard, ...]]
    counts: Mapping[Column, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Today:
    """What today cost, and what works."""

    spent_micros: int
    limit_micros: int | None
    """What may be spent today by the tightest budget of a running plan; None without a limit."""
    unknown_costs: int
    agents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HomePage:
    """Everything on the first page."""

    questions: tuple[QuestionView, ...]
    plans: Mapping[Place, tuple[PlanCard, ...]]
    today: Today
    accounts: tuple[Envelope, ...]
    alerts: tuple[Alert, ...]
    """What needs you besides the questions and plans on the page."""
    projects: int
    finished: int
    """How many plans have ended in total."""


async def home_page(at: Session, caller: Caller, *, project_id: str | None = None) -> HomePage:
    """Return what happens in the home, or in one project."""
    paths = HomePaths(root=at.home.root)
    found = tuple(
        one
        for one in await alerts(at, caller, project_id)
        if one.kind not in _ON_PAGE and not one.acknowledged_by
    )

    def load(tx: Tx) -> HomePage:
        mine = seen_where(tx, caller, project_id)
        open_plans = tx.find(Plan, status=_OPEN, order_by=("-created_at", "-id"), limit=400, **mine)
        ended = tx.find(
            Plan,
            status=list(ENDED_PLAN),
            made_for=None,
            order_by=("-updated_at", "-id"),
            limit=LISTED,
            **mine,
        )
        cards: dict[Place, list[PlanCard]] = {place: [] for place in Place}
        limits = [one.policy.max_cost_per_day for one in open_plans if one.policy.max_cost_per_day]
        for plan in (*open_plans, *ended):
            loop = tx.get(Loop, plan.loop_id)
            current = loop is not None and loop.plan_id == plan.id
            if plan.status not in ENDED_PLAN and not current:
                continue
            place = _place(tx, plan, loop)
            if len(cards[place]) < LISTED:
                cards[place].append(plan_card(tx, plan, loop, paths))
        questions = tx.find(Question, state=QuestionState.OPEN, order_by=("created_at",), **mine)
        return HomePage(
            questions=tuple(question_view(tx, one) for one in questions),
            plans={place: tuple(found) for place, found in cards.items()},
            today=_today(tx, mine, min(limits, default=None)),
            alerts=found,
            accounts=_accounts(tx, caller),
            projects=tx.count(Project, **({"id": mine["project_id"]} if mine else {})),
            finished=tx.count(Plan, status=list(ENDED_PLAN), made_for=None, **mine),
        )

    return await at.home.store.read(load)


async def board(at: Session, caller: Caller, *, project_id: str | None = None) -> Board:
    """Return the tasks of all plans that loops drive now."""

    def load(tx: Tx) -> Board:
        mine = seen_where(tx, caller, project_id)
        plans = {one.id: one for one in tx.find(Plan, status=_OPEN, made_for=None, **mine)}
        ended = {"status": list(ENDED_PLAN), "made_for": None, **mine}
        recent = tx.find(Plan, order_by=("-updated_at", "-id"), limit=10, **ended)
        plans.update({one.id: one for one in recent})
        names = {one.id: one.name for one in tx.find(Project)}
        tasks = tx.find(Task, plan_id=list(plans), order_by=("-updated_at",)) if plans else []
        ids = [one.attempt_id for one in tasks if one.attempt_id and one.status in _GOING]
        attempts = {one.id: one for one in tx.find(Attempt, id=ids)} if ids else {}
        columns: dict[Column, list[BoardCard]] = {column: [] for column in Column}
        counts = dict.fromkeys(Column, 0)
        for task in tasks:
            plan, attempt = plans[task.plan_id], attempts.get(task.attempt_id or "")
            column = _column(task, attempt)
            if column is None or (plan.status in ENDED_PLAN and column is not Column.DONE):
                continue
            counts[column] += 1
            if len(columns[column]) < ON_BOARD:
                columns[column].append(_board_card(task, attempt, plan, names.get(plan.project_id, "")))
        return Board(columns={one: tuple(cards) for one, cards in columns.items()}, counts=counts)

    return await at.home.store.read(load)


async def attention(at: Session, caller: Caller) -> int:
    """Return how many open questions wait for an answer: the number on the badge."""

    def load(tx: Tx) -> int:
        return tx.count(Question, state=QuestionState.OPEN, **seen_where(tx, caller, None))

    return await at.home.store.read(load)


def plan_card(tx: Tx, plan: Plan, loop: Loop | None, paths: HomePaths) -> PlanCard:
    """Return one plan as a row of a list."""
    project = tx.get(Project, plan.project_id)
    driven = driven_by(loop, plan)
    live = tx.find(Attempt, plan_id=plan.id, state=_LIVE) if plan.status not in ENDED_PLAN else []
    waiting = [one for one in live if one.state is AttemptState.WAITING]
    resume_at = loop.resume_at if loop is not None and loop.plan_id == plan.id else None
    verify = driven in (LoopState.PAUSED, LoopState.STOPPED) and waits_for_verify(tx, plan)
    wakes = [one.wake_at for one in waiting if one.wake_at] + ([resume_at] if resume_at else [])
    return PlanCard(
        id=plan.id,
        title=plan.title,
        project=project.name if project else "",
        project_id=plan.project_id,
        word=_VERIFY if verify else word_of(plan.status, plan.outcome, driven),
        reason="All tasks are done. Verify runs the complete gate on the result."
        if verify
        else plan.reason or (loop.reason if loop is not None and driven else ""),
        done=tx.count(Task, plan_id=plan.id, status=TaskState.COMPLETE),
        failed=tx.count(Task, plan_id=plan.id, status=TaskState.ERROR),
        total=tx.count(Task, plan_id=plan.id),
        cost_micros=plan.spent_micros or None,
        created_at=plan.created_at,
        changed_at=plan.updated_at,
        waits_for=next((one.wait_reason for one in waiting if one.wait_reason), ""),
        wakes_at=min(wakes, default=None),
        active=tuple(
            _active(tx, one, paths)
            for one in live
            if one.state not in (AttemptState.WAITING, AttemptState.QUEUED)
        ),
    )


_VERIFY: Final = "READY_TO_VERIFY"
_ON_PAGE: Final = frozenset({"needs_response", "plan_failed", "loop_needs_you", "loop_paused"})
"""The kinds of alerts that a question or a plan on the page already shows."""
_OPEN: Final = [state for state in PlanState if state not in ENDED_PLAN]
_GOING: Final = (TaskState.RUNNING, TaskState.AWAITING_RESPONSE)
_LIVE: Final = (
    AttemptState.QUEUED,
    AttemptState.PREPARING,
    AttemptState.WORKING,
    AttemptState.WAITING,
    AttemptState.CHECKING,
    AttemptState.LANDING,
)


def _place(tx: Tx, plan: Plan, loop: Loop | None) -> Place:
    if plan.status in ENDED_PLAN:
        current = loop is not None and loop.plan_id == plan.id
        if plan.status is PlanState.FAILED and current:
            return Place.NEEDS_YOU
        ready = plan.status is PlanState.VERIFIED and current and not taken_by(tx, plan.id)
        return Place.READY if ready else Place.FINISHED
    if plan.status is PlanState.DRAFT:
        return Place.DRAFT if is_written(plan) else Place.RUNNING
    if loop is None or loop.state is LoopState.FAILED:
        return Place.NEEDS_YOU
    if loop.state not in (LoopState.PAUSED, LoopState.STOPPED):
        return Place.RUNNING
    return Place.NEEDS_YOU if waits_for_verify(tx, plan) else Place.WAITING


def waits_for_verify(tx: Tx, plan: Plan) -> bool:
    """Return whether all tasks of a plan are done, and only its complete gate is left."""
    if plan.status is not PlanState.RUNNING:
        return False
    tasks = tx.count(Task, plan_id=plan.id)
    return 0 < tasks == tx.count(Task, plan_id=plan.id, status=TaskState.COMPLETE)


def _active(tx: Tx, attempt: Attempt, paths: HomePaths) -> Active:
    task = tx.get(Task, attempt.task_id)
    run = tx.get(Run, attempt.run_id) if attempt.run_id else None
    return Active(
        task_id=attempt.task_id,
        key=task.key if task else "",
        title=task.title if task else "",
        agent=attempt.agent,
        stage=attempt.state,
        doing=_doing(run, paths),
        since=run.started_at if run else None,
    )


def _doing(run: Run | None, paths: HomePaths) -> str:
    if run is None or run.state is not RunState.RUNNING:
        return ""
    return str(progress(paths.run(run.id)).get("text", ""))


def _today(tx: Tx, mine: Mapping[str, Any], limit: int | None) -> Today:
    day = tx.now().date().isoformat()
    projects = tx.find(Project, **({"id": mine["project_id"]} if mine else {}))
    spent = [one for one in projects if one.spent_on == day]
    open_plans = [one for one in PlanState if one not in ENDED_PLAN]
    plans = {"plan_id": [one.id for one in tx.find(Plan, status=open_plans, **mine)]} if mine else {}
    return Today(
        spent_micros=sum(one.spent_micros for one in spent),
        limit_micros=limit,
        unknown_costs=sum(one.unknown_costs for one in spent),
        agents=tx.count(Run, state=RunState.RUNNING, role=AGENT_ROLES, **plans),
    )


def _accounts(tx: Tx, caller: Caller) -> tuple[Envelope, ...]:
    """Return the accounts; they belong to the whole home."""
    return tuple(tx.find(Envelope, order_by=("agent", "account", "id"))) if caller.sees(None) else ()


def _column(task: Task, attempt: Attempt | None) -> Column | None:
    if task.status is TaskState.COMPLETE:
        return Column.DONE
    if task.status in (TaskState.AWAITING_RESPONSE, TaskState.ERROR):
        return Column.WAITING
    if task.status is TaskState.CANCELLED:
        return None
    if task.status is TaskState.RUNNING and attempt is not None and attempt.state is not AttemptState.QUEUED:
        checking = attempt.state in (AttemptState.CHECKING, AttemptState.LANDING)
        return Column.CHECKING if checking else Column.RUNNING
    return Column.QUEUED


def _board_card(task: Task, attempt: Attempt | None, plan: Plan, project: str) -> BoardCard:
    return BoardCard(
        task_id=task.id,
        plan_id=plan.id,
        key=task.key,
        title=task.title,
        project=project,
        plan=plan.title,
        agent=attempt.agent if attempt else task.agent or "",
        stage=(attempt.state if attempt else task.status).value,
    )
