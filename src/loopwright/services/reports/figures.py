"""Settings, gates, quota, figures and the record of agents, as a caller may see them."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from loopwright.core.rows.model import AGENT_ROLES, Attempt, Command, Loop, Plan, Project, Run
from loopwright.core.rows.waiting_rows import Envelope, Question
from loopwright.core.values.access import Caller
from loopwright.core.values.documents import document
from loopwright.core.values.errors import NotFound
from loopwright.core.values.findings import CommandResult
from loopwright.core.values.policy import GateCommand
from loopwright.core.values.states import (
    ENDED_PLAN,
    LIVE_ATTEMPT,
    LoopState,
    PlanState,
    QuestionState,
    RunState,
)
from loopwright.engine.views.agent_record import AgentRecord, agent_records
from loopwright.engine.views.worker_views import live_workers
from loopwright.ports import Tx
from loopwright.services.control import decisions
from loopwright.services.homes.caller import called_from
from loopwright.services.homes.context import look_settings
from loopwright.services.homes.session import Session
from loopwright.services.remote.seen import acting, seen_project, seen_where
from loopwright.services.settings import show_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Counts of what happens in a home."""

    loops: Mapping[LoopState, int]
    plans: Mapping[PlanState, int]
    live_attempts: int
    running_agents: int
    open_questions: int
    workers: int
    spent_micros: int
    last_event: int | None
    """How many events there are; None for a caller that sees some projects only."""


async def project_settings(at: Session, caller: Caller, project_id: str) -> tuple[Mapping[str, Any], ...]:
    """Return every setting in force in a project, with its value, its origin and what it means."""
    project = await at.home.store.read(lambda tx: seen_project(tx, caller, project_id))
    with acting(at, caller, project):
        shown = await asyncio.to_thread(show_settings)
    return tuple(document(one) for one in shown.settings)


async def quota(at: Session, caller: Caller) -> tuple[Envelope, ...]:
    """Return the accounts that agents use, with their windows and when they open again.

    They belong to the whole home, so they do not exist for a caller that sees some projects only.
    """
    if not caller.sees(None):
        raise NotFound("this token sees no accounts", code="account_unknown_here")
    return tuple(await at.home.store.read(lambda tx: tx.find(Envelope, order_by=("agent", "account", "id"))))


async def open_account(at: Session, caller: Caller, name: str) -> Command:
    """Let the tasks continue that wait for an account: AGENT, AGENT/ACCOUNT or AGENT:MODEL."""
    if not caller.sees(None):
        raise NotFound("this token sees no accounts", code="account_unknown_here")
    with called_from(at.home.root, at.env, name=caller.actor, bounds=caller.bounds):
        return await decisions.open_account(at, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateView:
    """One command of a project's complete gate."""

    name: str
    command: str
    timeout_s: float | None
    passed: bool | None
    """Its last result; None if it did not run yet."""
    duration_s: float | None
    run_id: str | None
    at: datetime | None


async def project_gates(at: Session, caller: Caller, project_id: str) -> tuple[GateView, ...]:
    """Return the complete gate of a project in its order, with the last result of each command."""

    def load(tx: Tx) -> tuple[Project, list[Plan], Run | None]:
        project = seen_project(tx, caller, project_id)
        plans = tx.find(Plan, project_id=project.id, made_for=None, order_by=("-created_at",), limit=50)
        for plan in plans:
            run = tx.get(Run, plan.verify_run_id) if plan.verify_run_id else None
            if run is not None and run.verdict is not None:
                return project, plans, run
        return project, plans, None

    project, plans, run = await at.home.store.read(load)
    with acting(at, caller, project):
        gates = (await asyncio.to_thread(look_settings)).gates
    if not gates and plans:
        gates = plans[0].gates  # the project leaves the gates to its plans
    said = {one.command: one for one in run.verdict.commands} if run and run.verdict else {}
    return tuple(_gate(one, said.get(one.command), run) for one in gates)


def _gate(gate: GateCommand, result: CommandResult | None, run: Run | None) -> GateView:
    return GateView(
        name=gate.name,
        command=gate.command,
        timeout_s=gate.timeout_s,
        passed=result.exit_code == 0 and not result.timed_out if result else None,
        duration_s=result.duration_s if result else None,
        run_id=run.id if result and run else None,
        at=run.ended_at if result and run else None,
    )


async def counts(at: Session, caller: Caller) -> Counts:
    """Count what happens in the projects that the caller can see."""

    def load(tx: Tx) -> Counts:
        mine: dict[str, Any] = {}
        plans: dict[str, Any] = {}
        if caller.projects is not None:
            mine = {"project_id": sorted(caller.projects)}
            open_plans = [one for one in PlanState if one not in ENDED_PLAN]
            plans = {"plan_id": [one.id for one in tx.find(Plan, status=open_plans, **mine)]}
        return Counts(
            loops={state: tx.count(Loop, state=state, **mine) for state in LoopState},
            plans={state: tx.count(Plan, status=state, **mine) for state in PlanState},
            live_attempts=tx.count(Attempt, state=LIVE_ATTEMPT, **plans),
            running_agents=tx.count(Run, state=RunState.RUNNING, role=AGENT_ROLES, **plans),
            open_questions=tx.count(Question, state=QuestionState.OPEN, **mine),
            workers=len(live_workers(tx, at.home.membership)),
            spent_micros=sum(one.spent_micros for one in tx.find(Project) if caller.sees(one.id)),
            last_event=tx.last_event() if caller.sees(None) else None,
        )

    return await at.home.store.read(load)


async def agent_record(at: Session, caller: Caller, project_id: str | None = None) -> tuple[AgentRecord, ...]:
    """Return the record of each agent and model: those with most tasks first."""

    def load(tx: Tx) -> tuple[AgentRecord, ...]:
        return agent_records(
            tx, dict(tx.columns(Plan, ("id", "policy"), **seen_where(tx, caller, project_id)))
        )

    return await at.home.store.read(load)
