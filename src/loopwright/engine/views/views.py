"""The view of a home for people and programs: one read model for the command line, the state files and the API."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Literal

from loopwright.core.gates.contradictions import collapsed
from loopwright.core.gates.gates import task_commands
from loopwright.core.healing.diagnosis import Diagnosis
from loopwright.core.policy.graph import claims, scopes_overlap, strayed
from loopwright.core.policy.order import is_met
from loopwright.core.replies.discoveries import Discovery, same_work
from loopwright.core.replies.qa import QaReport
from loopwright.core.rows.healing_rows import Healing
from loopwright.core.rows.model import (
    AGENT_ROLES,
    AUTHORS,
    Attempt,
    Finish,
    Loop,
    Outcome,
    Plan,
    Project,
    Role,
    Run,
    Task,
    VerdictRecord,
)
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.accounts import called
from loopwright.core.values.errors import NotFound
from loopwright.core.values.failures import RULES, Failure
from loopwright.core.values.findings import Check, CheckStatus, CommandResult, Verdict
from loopwright.core.values.ids import short_id
from loopwright.core.values.policy import GateCommand, Policy
from loopwright.core.values.states import (
    ENDED_PLAN,
    LIVE_ATTEMPT,
    OPEN_FINISH,
    PROCESS_OVER,
    AttemptState,
    DiscoveryState,
    LoopState,
    PlanState,
    ReviewState,
    RunState,
    TaskState,
)
from loopwright.engine.people.manual_steps import open_steps
from loopwright.engine.rows.attempts import diagnosis_of
from loopwright.engine.rows.finishes import FinishView, finish_views
from loopwright.engine.rows.healing import steps_of
from loopwright.engine.rows.order import holding_up
from loopwright.engine.rows.plan_states_text import driven_by, is_blocked, taken_by, word_of
from loopwright.engine.rows.questions import open_of
from loopwright.engine.rows.ref_names import attempt_ref
from loopwright.engine.rows.world import HomePaths
from loopwright.engine.rows.writeback_debts import DebtView, SourceNews, debt_view
from loopwright.engine.views.activity import StrayView, doing, preparing, read_json, stray_views
from loopwright.engine.views.limit_views import CapView, cap_views
from loopwright.engine.views.question_views import QuestionView, asked_in_plan, question_view
from loopwright.engine.views.review_views import (
    DecisionView,
    ReviewView,
    decisions_about,
    newest_reviews,
    reviewer_at_work,
    reviews_of,
)
from loopwright.engine.views.round_views import how_it_stopped, sleeps_until, which_round
from loopwright.ports import NOT_NULL, Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """One task as a line of a table."""

    id: str
    key: str
    title: str
    status: TaskState
    origin: str
    """Empty for a task of the source.

    Otherwise `fix` for a failure of the complete gate, `qa` for a finding of a QA review, `docs` for business
    documents, `discovered` for accepted work that an agent found.
    """
    stage: TaskState | AttemptState
    """The living attempt's state, or the task's own status."""
    outcome: Outcome | None
    agent: str | None
    attempt: int
    attempts_used: int
    max_attempts: int
    elapsed_s: float | None
    cost_micros: int | None
    """None if no run's cost is known."""
    cost_estimated: bool
    checks_passed: int
    checks_total: int
    commit: str | None
    doing: str
    """What the agent is doing, or what the task waits for."""
    reason: str
    depends_on: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    """Tasks that come first in the order of the source. It does not need their results."""
    manual: bool = False
    """Whether the user does the step: no agent gets it."""
    failure: Failure | None = None
    review: ReviewState | None = None
    """The state of the review of its newest attempt; None if there is none."""
    taken_by: str = ""
    """The user who does it by hand."""
    reviewed_by: str = ""
    """The user who reviewed what landed."""
    round: int = 0
    """Which round of its loop it is in, or landed in; 0 if the task is not a round of a prompt loop."""
    rounds: int = 0
    """The most rounds."""
    blocked: bool = False
    """Whether it is blocked without a failure: by its source, another owner, or an unanswered question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView:
    """A plan with its loop and tasks."""

    id: str
    title: str
    status: PlanState
    state: str
    """Its state in one word: see `engine.rows.plan_states_text`."""
    loop_id: str
    loop_name: str
    loop_state: LoopState | Literal[""]
    taken: str
    """Where its whole work went (`accepted`, `pull request`); empty while that is undecided."""
    project: str
    path: str
    branch: str
    base_ref: str
    base_sha: str
    result_sha: str | None
    outcome: Outcome | None
    reason: str
    tasks: tuple[TaskView, ...]
    done: int
    total: int
    gate_passed: int
    gate_total: int
    cost_micros: int | None
    cost_complete: bool
    cost_estimated: bool
    """Whether some of it comes from the table of prices, because an agent reported only tokens."""
    elapsed_s: float | None
    """How long one of its runs was active; without waits and pauses."""
    created_at: datetime
    evaluation: dict[str, Any] = field(default_factory=dict)
    answers: str = ""
    """The role of its agents if they change nothing (`planner`, `plan-evaluator`); empty if they work."""
    questions: tuple[QuestionView, ...] = ()
    """Questions that wait for the user's answer."""
    limits: tuple[CapView, ...] = ()
    """Its cost limits, and what was spent."""
    resume_at: datetime | None = None
    """When it continues by itself while it is paused."""
    finishes: tuple[FinishView, ...] = ()
    """What happened to its branch, by policy or because the user accepted it; the oldest first."""
    awaits_look: bool = False
    """Whether nothing new starts because too many results wait for the user's review."""
    sleeps_until: datetime | None = None
    """When the next round of a sleeping prompt loop begins."""
    stopped: str = ""
    """What stopped a prompt loop that has ended."""
    status_on_branch: bool = False
    """Whether git tracks its source, so that its status is in the commits on the plan's branch."""
    discovered: int = 0
    """How many discoveries of its agents wait for a decision."""
    untold: DebtView | None = None
    """The write-back debt of its source."""
    news: SourceNews | None = None
    """What its source contains beyond this plan; set by the caller that read the source after the plan ended."""
    prefix: str = ""
    """The prefix of a task's name in a command, if the name alone could mean another plan's task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """One attempt, for `status`."""

    id: str
    n: int
    state: AttemptState
    agent: str
    model: str | None
    drew: tuple[str, ...]
    """The agents, accounts and models of its runs, each change once."""
    stands_in: str
    """Why its agent replaces the task's own agent; empty if it is that agent."""
    failure: Failure | None
    advice: str
    detail: str
    ref: str
    tip_sha: str | None
    base_sha: str | None
    workspace: str | None
    run_ids: tuple[str, ...]
    failing_checks: tuple[Check, ...]
    lasted_s: float | None
    cost_micros: int | None
    cost_estimated: bool
    summary: str
    commands: tuple[CommandResult, ...] = ()
    """The commands of the last gate on this attempt, with the last lines of each."""
    checks: tuple[Check, ...] = ()
    reviews: tuple[ReviewView, ...] = ()
    contradicted: tuple[str, ...] = ()
    """Existing checks that it contradicts without permission."""
    outside: tuple[str, ...] = ()
    """Changes outside the paths that the task declared."""
    qa: QaReport | None = None
    """Its result as a QA review."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDetail:
    """Everything about one task, for `status`."""

    task: TaskView
    plan_id: str
    plan_title: str
    description: str
    criteria: tuple[str, ...]
    expected: tuple[str, ...]
    """The commands that must pass."""
    attempts: tuple[AttemptView, ...]
    note: str
    plan_branch: str = ""
    path: str = ""
    """Where the project's repository is."""
    commands: tuple[GateCommand, ...] = ()
    """The commands that must pass, with their names."""
    decisions: tuple[DecisionView, ...] = ()
    """The user's decisions about it, the oldest first."""
    strays: tuple[StrayView, ...] = ()
    """Changes of the user's checkout while its agents ran."""
    questions: tuple[QuestionView, ...] = ()
    """Its questions that wait for the user's answer."""
    diagnosis: Diagnosis | None = None
    """Why it most likely failed, and what may help; None if it did not fail for good."""
    healing: tuple[Healing, ...] = ()
    """What `auto_heal` tried for it, the oldest step first."""


def plan_view(tx: Tx, plan_id: str, paths: HomePaths) -> PlanView:
    """Return one plan with all its tasks."""
    plan = tx.get(Plan, plan_id)
    if plan is None:
        raise NotFound(f"there is no plan {plan_id}", code="plan_not_found")
    loop, project = tx.get(Loop, plan.loop_id), tx.get(Project, plan.project_id)
    tasks = tx.find(Task, plan_id=plan.id, order_by=("position",))
    attempts = {one.id: one for one in tx.find(Attempt, plan_id=plan.id)}
    runs = tx.find(Run, plan_id=plan.id)
    verdicts = {one.id: one for one in tx.find(VerdictRecord, plan_id=plan.id)}
    reviews = newest_reviews(tx, plan)
    now = tx.now()
    keys = {task.id: task.key for task in tasks}
    rows = {task.id: task for task in tasks}
    busy = [one for one in tasks if one.status in (TaskState.RUNNING, TaskState.AWAITING_RESPONSE)]
    by_task: dict[str | None, list[Run]] = {}
    for run in runs:
        by_task.setdefault(run.task_id, []).append(run)

    # A leg that is asked to stop does not know why; the loop does.
    resting = loop.reason if loop and loop.state in (LoopState.PAUSED, LoopState.STOPPED) else ""

    full = _is_full(plan, tasks)

    def view(task: Task) -> TaskView:
        attempt = attempts.get(task.attempt_id or "")
        verdict = verdicts.get(attempt.verdict_id or "") if attempt else None
        waiting_for = [keys[one] for one in task.depends_on if not is_met(rows[one])]
        waiting_for = waiting_for or [one.key for one in holding_up(rows, task)]
        if not waiting_for and loop is not None and loop.state in (LoopState.PAUSED, LoopState.STOPPED):
            waiting_for = ["the plan to be resumed"]
        elif not waiting_for and full:
            waiting_for = ["you to look at what landed"]
        elif not waiting_for and claims(task):
            held = [one for one in busy if scopes_overlap(claims(task), claims(one))]
            waiting_for = [f"{one.key}, which changes the same files" for one in held]
        seen = _task_view(
            task,
            attempt,
            by_task.get(task.id, []),
            verdict,
            waiting_for,
            resting,
            now,
            paths,
            keys,
            plan.policy,
        )
        n, of = which_round(plan, task)
        return replace(seen, review=reviews.get(task.attempt_id or ""), round=n, rounds=of)

    views = tuple(view(task) for task in tasks)
    gate = plan.verdict.checks if plan.verdict else ()
    costs = [run for run in runs if run.agent and run.started_at]
    return PlanView(
        id=plan.id,
        title=plan.title,
        status=plan.status,
        state=word_of(plan.status, plan.outcome, driven_by(loop, plan)),
        loop_id=plan.loop_id,
        loop_name=loop.name if loop else "",
        loop_state=loop.state if loop else "",
        taken=taken_by(tx, plan.id),
        project=project.name if project else "",
        path=project.path if project else "",
        branch=plan.branch,
        base_ref=plan.base_ref,
        base_sha=plan.base_sha,
        result_sha=plan.result_sha,
        outcome=plan.outcome,
        reason=plan.reason or (loop.reason if loop else ""),
        tasks=views,
        done=sum(task.status is TaskState.COMPLETE for task in tasks),
        total=len(tasks),
        gate_passed=sum(check.status is CheckStatus.PASSED for check in gate),
        gate_total=len(gate),
        cost_micros=_cost(costs),
        cost_estimated=_is_estimate(costs),
        cost_complete=all(run.cost_micros is not None for run in costs if run.state in PROCESS_OVER),
        elapsed_s=_worked(runs, now) if plan.executed_at else None,
        created_at=plan.created_at,
        evaluation=dict(plan.evaluation),
        answers=plan.policy.answer.role if plan.policy.answer else "",
        questions=asked_in_plan(tx, plan, list(attempts.values())),
        limits=cap_views(tx, plan),
        resume_at=loop.resume_at if loop and loop.plan_id == plan.id else None,
        finishes=finish_views(tx, plan.id, keys),
        awaits_look=full and any(map(_may_start, tasks)),
        sleeps_until=sleeps_until(tx, plan),
        stopped=how_it_stopped(tx, plan),
        status_on_branch=bool(plan.books),
        discovered=count_open(tx, plan.id),
        untold=debt_view(tx, plan.id),
        prefix="" if _names_suffice(tx, plan, loop) else f"{short_id(plan.id)}/",
    )


def _may_start(task: Task) -> bool:
    return task.status is TaskState.QUEUED and not task.unmet and not task.early and not task.manual


def _is_full(plan: Plan, tasks: list[Task]) -> bool:
    """Return whether nothing new starts because too many results wait for your review (see `core.policy.decide`)."""
    unseen = sum(one.landed_sha is not None and not one.reviewed_by for one in tasks)
    going = sum(one.status in (TaskState.RUNNING, TaskState.AWAITING_RESPONSE) for one in tasks)
    return 0 < plan.policy.max_unreviewed <= unseen + going


def goes_on(tx: Tx) -> bool:
    """Return whether anything in the home is active, or will be without the user."""
    # A controller drives rounds: a worker has something to do when one of their stages runs.
    if tx.count(Loop, state=LoopState.RUNNING, plan_id=NOT_NULL) or tx.count(Finish, state=OPEN_FINISH):
        return True
    return any(loop.resume_at is not None for loop in tx.find(Loop, state=LoopState.PAUSED))


def is_busy(tx: Tx) -> bool:
    """Return whether there is anything to do in the home now, including what may finish after a pause."""
    doing = (AttemptState.PREPARING, AttemptState.WORKING, AttemptState.CHECKING, AttemptState.LANDING)
    return goes_on(tx) or tx.count(Attempt, state=doing) > 0


def _names_suffice(tx: Tx, plan: Plan, loop: Loop | None) -> bool:
    """Return whether the names of a plan's tasks are unambiguous: see `targets.resolve_target`."""
    unfinished = tx.count(Plan, project_id=plan.project_id, status=set(PlanState) - ENDED_PLAN)
    if plan.status not in ENDED_PLAN:
        return unfinished == 1
    current = loop is not None and loop.plan_id == plan.id
    return current and not unfinished and tx.count(Loop, project_id=plan.project_id) == 1


def _task_view(
    task: Task,
    attempt: Attempt | None,
    runs: list[Run],
    verdict: VerdictRecord | None,
    waiting_for: list[str],
    resting: str,
    now: datetime,
    paths: HomePaths,
    keys: dict[str, str],
    policy: Policy,
) -> TaskView:
    agents = [run for run in runs if run.role in AGENT_ROLES and run.started_at]
    checks = verdict.verdict.checks if verdict else ()
    moving = task.status in (TaskState.RUNNING, TaskState.AWAITING_RESPONSE)
    live = attempt is not None and attempt.state in LIVE_ATTEMPT and moving
    return TaskView(
        id=task.id,
        key=task.key,
        title=task.title,
        origin=task.origin,
        status=task.status,
        stage=attempt.state if live and attempt else task.status,
        outcome=task.outcome,
        agent=attempt.agent if attempt else task.agent,
        attempt=attempt.n if attempt else 0,
        attempts_used=task.attempts,
        max_attempts=task.max_attempts,
        elapsed_s=_elapsed(runs, task.completed_at or now, paths) if agents else None,
        cost_micros=_cost(agents),
        cost_estimated=_is_estimate(agents),
        checks_passed=sum(check.status is CheckStatus.PASSED for check in checks),
        checks_total=len(checks),
        commit=task.landed_sha,
        doing=doing(
            task,
            attempt if live else None,
            waiting_for,
            resting,
            now,
            paths,
            reviewer_at_work(attempt, runs),
            preparing(attempt, runs, policy, lambda run: lasted_s(run, now, paths)),
        ),
        reason=task.reason,
        depends_on=tuple(keys[one] for one in task.depends_on),
        after=tuple(keys[one] for one in task.after),
        manual=task.manual,
        failure=task.failure,
        taken_by=task.taken_by,
        reviewed_by=task.reviewed_by,
        blocked=is_blocked(task),
    )


def lasted_s(run: Run, now: datetime, paths: HomePaths) -> float | None:
    """Return how long a run took, or has taken so far: as its keeper measured it, if that is known."""
    if run.started_at is None or (run.ended_at is None and run.state in PROCESS_OVER):
        return None
    if run.ended_at is None:
        measured = read_json(paths.run(run.id) / "status.json").get("lasted_s")
        if isinstance(measured, float):
            return measured
    return max(0.0, ((run.ended_at or now) - run.started_at).total_seconds())


def _elapsed(runs: list[Run], now: datetime, paths: HomePaths) -> float:
    return sum(lasted_s(run, now, paths) or 0.0 for run in runs)


def _worked(runs: list[Run], now: datetime) -> float:
    """Return how long at least one run was active."""
    spans = sorted((run.started_at, run.ended_at or now) for run in runs if run.started_at)
    total = timedelta()
    until: datetime | None = None
    for start, end in spans:
        begin = start if until is None else max(start, until)
        total += max(timedelta(), end - begin)
        until = end if until is None else max(end, until)
    return total.total_seconds()


def _cost(runs: list[Run]) -> int | None:
    known = [run.cost_micros for run in runs if run.cost_micros is not None]
    return sum(known) if known else None


def _is_estimate(runs: list[Run]) -> bool:
    return any(run.cost_estimated for run in runs)


def task_detail(tx: Tx, task_id: str, paths: HomePaths) -> TaskDetail:
    """Return one task with the results of its attempts."""
    task = tx.get(Task, task_id)
    if task is None:
        raise NotFound(f"there is no task {task_id}", code="task_not_found")
    plan = tx.get(Plan, task.plan_id)
    assert plan is not None, "a task always has its plan"
    view = next(one for one in plan_view(tx, plan.id, paths).tasks if one.id == task_id)
    runs = tx.find(Run, task_id=task_id, order_by=("created_at",))
    attempts = tx.find(Attempt, task_id=task_id, order_by=("n",))
    project = tx.get(Project, plan.project_id)
    now = tx.now()

    def shown(attempt: Attempt) -> AttemptView:
        record = tx.get(VerdictRecord, attempt.verdict_id) if attempt.verdict_id else None
        mine = [run for run in runs if run.attempt_id == attempt.id]
        shown = _attempt_view(attempt, mine, record.verdict if record else _judged(mine), now, paths)
        outside = strayed(attempt.touched, task.scope)
        return replace(shown, reviews=reviews_of(tx, attempt), outside=outside, qa=attempt.qa)

    return TaskDetail(
        task=view,
        plan_id=plan.id,
        plan_title=plan.title,
        description=task.description,
        criteria=task.criteria,
        expected=tuple(command.command for command in (*task.acceptance, *plan.gates)),
        attempts=tuple(shown(one) for one in attempts),
        note=task.note,
        plan_branch=plan.branch,
        path=project.path if project else "",
        commands=task_commands(plan, task),
        decisions=decisions_about(tx, task),
        strays=stray_views(tx, plan.id, task.id),
        questions=tuple(question_view(tx, one) for one in _asked(tx, task, attempts)),
        diagnosis=diagnosis_of(tx, task) if task.status is TaskState.ERROR else None,
        healing=tuple(steps_of(tx, task.id)),
    )


def _asked(tx: Tx, task: Task, attempts: list[Attempt]) -> list[Question]:
    if task.manual:
        return [one for one in open_steps(tx, task.plan_id) if one.task_id == task.id]
    return open_of(tx, attempts[-1]) if attempts else []


def _judged(runs: list[Run]) -> Verdict | None:
    """Return the last result of running something; a successful setup is not one."""
    found = [
        run.verdict
        for run in runs
        if run.verdict is not None and (run.role is Role.GATE or run.state is RunState.ERROR)
    ]
    return found[-1] if found else None


def _who(run: Run, among: list[Run]) -> str:
    name = called(run.agent or "", run.account)
    # The model is only reported at a run's end: unfinished runs are not separated by it.
    known = [one.model for one in among if (one.agent, one.account) == (run.agent, run.account)]
    return f"{name} {run.model}" if all(known) else name


def _attempt_view(
    attempt: Attempt, runs: list[Run], verdict: Verdict | None, now: datetime, paths: HomePaths
) -> AttemptView:
    agents = [run for run in runs if run.role in AUTHORS and run.started_at]
    paid = [run for run in runs if run.role in AGENT_ROLES and run.started_at]
    checks = verdict.checks if verdict else ()
    bad = (CheckStatus.FAILED, CheckStatus.ERROR)
    return AttemptView(
        id=attempt.id,
        n=attempt.n,
        state=attempt.state,
        agent=attempt.agent,
        model=attempt.model,
        drew=tuple(name for name, _ in groupby(_who(run, agents) for run in agents)),
        stands_in=attempt.stands_in,
        failure=attempt.failure,
        advice=RULES[attempt.failure].advice if attempt.failure else "",
        detail=attempt.detail,
        ref=attempt_ref(attempt),
        tip_sha=attempt.tip_sha,
        base_sha=attempt.base_sha,
        workspace=attempt.workspace if attempt.cleaned_at is None else None,
        run_ids=tuple(run.id for run in runs),
        failing_checks=tuple(check for check in checks if check.status in bad),
        lasted_s=_elapsed(agents, attempt.ended_at or now, paths) if agents else None,
        cost_micros=_cost(paid),
        cost_estimated=_is_estimate(paid),
        summary=agents[-1].summary if agents else "",
        commands=verdict.commands if verdict else (),
        checks=checks,
        contradicted=_not_allowed(attempt),
    )


def _not_allowed(attempt: Attempt) -> tuple[str, ...]:
    """Return the checks that an attempt contradicts without permission, a file once for many of its tests."""
    facts = attempt.gate_files
    return collapsed(facts.contradicted) if facts is not None and not any(facts.allowed_by) else ()


# The number of discoveries: apart from their decisions, since every view of a plan needs it.


def count_open(tx: Tx, plan_id: str) -> int:
    """Return how many discoveries of a plan's agents wait for a decision."""
    rows = tx.find(Discovery, plan_id=plan_id, state=DiscoveryState.OPEN)
    return len({same_work(one.title) for one in rows})
