"""A short overview of a home: one line for each plan, and the facts of one run."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from loopwright.core.rows.model import (
    AGENT_ROLES,
    Attempt,
    Loop,
    Outcome,
    Plan,
    Project,
    Role,
    Run,
    Task,
    Usage,
)
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Verdict
from loopwright.core.values.states import ENDED_PLAN, PROCESS_OVER, LoopState, PlanState, RunState, TaskState
from loopwright.core.values.templates import UsedTemplate
from loopwright.engine.rows.plan_states_text import driven_by, taken_by, word_of
from loopwright.engine.rows.projects import Checkouts, project_ids, recent_plans
from loopwright.engine.rows.world import HomePaths
from loopwright.engine.views.views import lasted_s
from loopwright.ports import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSummary:
    """One plan as a line of a list: counted by the database, so a long history stays cheap."""

    id: str
    title: str
    status: PlanState
    state: str
    """Its state in one word: see `engine.rows.plan_states_text`."""
    loop_state: LoopState | Literal[""]
    taken: str
    """Where its whole work went (`accepted`, `pull request`); empty while that is undecided."""
    outcome: Outcome | None
    reason: str
    project: str
    path: str
    done: int
    total: int
    cost_micros: int | None
    cost_complete: bool
    cost_estimated: bool
    created_at: datetime
    changed_s: float
    """How many seconds ago it last changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """The facts of one run, for `status`."""

    id: str
    role: Role
    state: RunState
    plan_id: str
    task_id: str | None
    task_key: str | None
    attempt: int | None
    agent: str | None
    account: str | None
    agent_version: str | None
    model: str | None
    permission_mode: str | None
    sandbox: str | None
    argv: tuple[str, ...]
    exit_code: int | None
    ended_by: str
    summary: str
    failure: Failure | None
    cost_micros: int | None
    cost_estimated: bool
    usage: Usage | None
    verdict: Verdict | None
    session_ref: str | None
    host_id: str | None
    prompt_sha256: str | None
    template: UsedTemplate | None
    output_sha256: str | None
    output_bytes: int | None
    directory: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    lasted_s: float | None
    base_sha: str | None = None
    tip_sha: str | None = None


def plan_summaries(tx: Tx, *, project_path: Checkouts | None = None, limit: int = 20) -> list[PlanSummary]:
    """Return plans as lines, newest first, of one repository or of the whole home."""
    now = tx.now()
    return [_summary(tx, plan, now) for plan in recent_plans(tx, project_path=project_path, limit=limit)]


def _summary(tx: Tx, plan: Plan, now: datetime) -> PlanSummary:
    loop, project = tx.get(Loop, plan.loop_id), tx.get(Project, plan.project_id)
    total = tx.count(Task, plan_id=plan.id)
    driven = driven_by(loop, plan)
    return PlanSummary(
        id=plan.id,
        title=plan.title,
        status=plan.status,
        state=word_of(plan.status, plan.outcome, driven),
        loop_state=driven,
        taken=taken_by(tx, plan.id),
        outcome=plan.outcome,
        reason=plan.reason,
        project=project.name if project else "",
        path=project.path if project else "",
        done=tx.count(Task, plan_id=plan.id, status=TaskState.COMPLETE),
        total=total,
        cost_micros=plan.spent_micros if plan.spent_micros or _is_known(tx, plan) else None,
        cost_complete=_is_known(tx, plan),
        cost_estimated=tx.count(Run, plan_id=plan.id, cost_estimated=True) > 0,
        created_at=plan.created_at,
        # By wall-clock time, which may have been set back since.
        changed_s=max(0.0, (now - _changed_at(tx, plan, loop)).total_seconds()),
    )


def _is_known(tx: Tx, plan: Plan) -> bool:
    """Return whether the cost of every run is known. The runs say so, because a new limit resets the plan's count."""
    over = {"plan_id": plan.id, "role": AGENT_ROLES, "state": PROCESS_OVER, "cost_micros": None}
    return tx.count(Run, **over) == tx.count(Run, **over, started_at=None)


def _changed_at(tx: Tx, plan: Plan, loop: Loop | None) -> datetime:
    newest = tx.find(Task, plan_id=plan.id, order_by=("-updated_at",), limit=1)
    driven = [loop.updated_at] if loop is not None and loop.plan_id == plan.id else []
    return max([plan.updated_at, *driven, *(task.updated_at for task in newest)])


def count_plans(tx: Tx, *, project_path: Checkouts | None = None) -> int:
    """Return how many plans there are, of one repository or of the whole home."""
    where: dict[str, Any] = {}
    if project_path is not None:
        where["project_id"] = project_ids(tx, project_path)
    return tx.count(Plan, **where)


def is_current(tx: Tx, plan_id: str) -> bool:
    """Return whether a plan is still its loop's plan; a newer run of the same source replaces it."""
    plan = tx.get(Plan, plan_id)
    loop = tx.get(Loop, plan.loop_id) if plan else None
    return plan is not None and plan.status not in ENDED_PLAN and loop is not None and loop.plan_id == plan.id


def open_runs(tx: Tx, plan_id: str) -> list[Run]:
    """Return the runs of a plan whose process should exist now."""
    return tx.find(Run, plan_id=plan_id, state=(RunState.RUNNING, RunState.AWAITING_RESPONSE))


def run_view(tx: Tx, run: Run, paths: HomePaths) -> RunView:
    """Return the facts of one run."""
    task = tx.get(Task, run.task_id) if run.task_id else None
    attempt = tx.get(Attempt, run.attempt_id) if run.attempt_id else None
    return RunView(
        id=run.id,
        role=run.role,
        state=run.state,
        plan_id=run.plan_id,
        task_id=run.task_id,
        task_key=task.key if task else None,
        attempt=attempt.n if attempt else None,
        agent=run.agent,
        account=run.account,
        agent_version=run.agent_version,
        model=run.model,
        permission_mode=run.permission_mode,
        sandbox=run.sandbox,
        argv=run.argv,
        exit_code=run.exit_code,
        ended_by=run.ended_by,
        summary=run.summary,
        failure=run.failure,
        cost_micros=run.cost_micros,
        cost_estimated=run.cost_estimated,
        usage=run.usage,
        verdict=run.verdict,
        session_ref=run.session_ref,
        host_id=run.host_id,
        prompt_sha256=run.prompt_sha256,
        template=run.template,
        output_sha256=run.output_sha256,
        output_bytes=run.output_bytes,
        directory=str(Path(paths.run(run.id))),
        created_at=run.created_at,
        started_at=run.started_at,
        ended_at=run.ended_at,
        lasted_s=lasted_s(run, tx.now(), paths),
        base_sha=attempt.base_sha if attempt else None,
        tip_sha=attempt.tip_sha if attempt else None,
    )
