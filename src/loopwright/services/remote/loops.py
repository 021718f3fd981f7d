"""Loops: list, show and steer them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final, Literal

from loopwright.adapters.home.membership import LockedMembership
from loopwright.adapters.home.statefiles import state_file
from loopwright.core.rows.model import Loop, Plan, Project
from loopwright.core.values.access import Caller
from loopwright.core.values.states import LoopState
from loopwright.engine.intake import loops
from loopwright.engine.rows.versions import loop_version
from loopwright.engine.views.loop_views import LoopProgress, LoopView, plans_of, view_of
from loopwright.engine.views.worker_views import leased_workers
from loopwright.ports import Tx
from loopwright.services.control import decisions
from loopwright.services.control.decisions import Decision
from loopwright.services.homes.caller import expect_version
from loopwright.services.homes.session import Session
from loopwright.services.remote.pages import Asked, Page, find_page
from loopwright.services.remote.rounds import is_in_rounds, steer_rounds
from loopwright.services.remote.seen import (
    acting,
    check_seen,
    current_plan,
    seen_loop,
    seen_project,
    seen_where,
)

__all__ = [
    "LoopHealth",
    "LoopProgress",
    "LoopView",
    "change_loop",
    "driven_plan",
    "get_loop",
    "list_loops",
    "loop_health",
    "loop_view",
    "loop_views",
    "steer_loop",
]

Action = Literal["stop", "pause", "resume"]
_ALREADY: Final[Mapping[str, frozenset[LoopState]]] = {
    "pause": frozenset({LoopState.PAUSED}),
    "stop": frozenset({LoopState.STOPPED}),
    "resume": frozenset({LoopState.RUNNING}),
}
"""The states in which an action has nothing left to do: a second request changes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopHealth:
    """Whether a loop's driver is alive, and whether it could start work now."""

    loop_id: str
    status: LoopState
    live: bool
    """Whether a process drives it."""
    ready: bool
    """Whether work could start now."""
    why_not: str
    """Why it is not ready; empty if it is."""
    pid: int | None
    last_heartbeat: datetime | None
    progress: LoopProgress
    current_test: str | None


async def list_loops(
    at: Session, caller: Caller, page: Asked, *, project_id: str | None = None
) -> Page[LoopView]:
    """Return loops in the order of their ids."""

    def load(tx: Tx) -> Page[LoopView]:
        where = seen_where(tx, caller, project_id)
        found = find_page(tx, Loop, page, deleted_at=None, **where)
        return Page(items=loop_views(tx, at, found.items), next=found.next)

    return await at.home.store.read(load)


async def get_loop(at: Session, caller: Caller, loop_id: str) -> LoopView:
    """Return one loop."""

    def load(tx: Tx) -> LoopView:
        loop = seen_loop(tx, caller, loop_id)
        return replace(loop_view(tx, at, loop), version=loop_version(loop))

    return await at.home.store.read(load)


async def loop_health(at: Session, caller: Caller, loop_id: str) -> LoopHealth:
    """Return whether a loop is live and ready."""

    def load(tx: Tx) -> LoopHealth:
        loop = seen_loop(tx, caller, loop_id)
        view = loop_view(tx, at, loop)
        why_not = _why_not(tx, loop, view)
        return LoopHealth(
            loop_id=loop.id,
            status=loop.state,
            live=view.pid is not None,
            ready=not why_not,
            why_not=why_not,
            pid=view.pid,
            last_heartbeat=view.last_heartbeat,
            progress=view.progress,
            current_test=view.current_test,
        )

    return await at.home.store.read(load)


async def steer_loop(
    at: Session, caller: Caller, loop_id: str, action: Action, *, now: bool = False
) -> LoopView:
    """Stop, pause or resume a loop; a loop that is already in that state is unchanged."""

    def load(tx: Tx) -> tuple[Loop, Project, Plan | None]:
        loop = seen_loop(tx, caller, loop_id)
        check_seen(tx, loop.id)
        project = seen_project(tx, caller, loop.project_id)
        if is_in_rounds(loop, project):
            return loop, project, None
        # A pause with an end, and agents that a pause lets finish, are something left to do.
        is_there = loop.state in _ALREADY[action] and not now and loop.resume_at is None
        if is_there or (action == "stop" and loop.plan_id is None):
            return loop, project, None
        return loop, project, current_plan(tx, loop)

    loop, project, plan = await at.home.store.read(load)
    if is_in_rounds(loop, project):
        with acting(at, caller, project):
            await steer_rounds(at, loop, action, caller, now=now)
    elif plan is not None:
        with acting(at, caller, project):
            await _decide(at, action, plan, now=now)
    elif action == "stop":

        def stop(tx: Tx) -> None:
            check_seen(tx, loop.id)
            loops.stop_unstarted(tx, seen_loop(tx, caller, loop.id), caller.actor)

        await at.home.store.transact("loop.stop", stop)
    return await get_loop(at, caller, loop_id)


async def change_loop(
    at: Session,
    caller: Caller,
    loop_id: str,
    *,
    priority: int | None = None,
    agent: str | None = None,
    model: str | None = None,
    max_concurrent: int | None = None,
) -> LoopView:
    """Change which loop goes first (lower is earlier), and what works on the tasks that it has not begun."""

    def load(tx: Tx) -> Project:
        return seen_project(tx, caller, seen_loop(tx, caller, loop_id).project_id)

    project = await at.home.store.read(load)
    with acting(at, caller, project):
        if agent is not None or model is not None or max_concurrent is not None:
            await decisions.set_loop_agent(at, loop_id, agent=agent, model=model, parallel=max_concurrent)
            expect_version(None)  # this changed it
        if priority is not None:
            await decisions.set_loop_priority(at, loop_id, priority)
    return await get_loop(at, caller, loop_id)


async def driven_plan(at: Session, caller: Caller, loop_id: str) -> str:
    """Return the id of the plan that a loop drives, or drove last."""
    return await at.home.store.read(lambda tx: current_plan(tx, seen_loop(tx, caller, loop_id)).id)


async def _decide(at: Session, action: Action, plan: Plan, *, now: bool) -> Decision:
    if action == "pause":
        return await decisions.pause(at, plan.id, now=now)
    if action == "stop":
        return await decisions.stop(at, plan.id)
    return await decisions.resume(at, plan.id)


def loop_view(tx: Tx, at: Session, loop: Loop) -> LoopView:
    """Return a loop with data of its plan, its project and its driver."""
    [view] = loop_views(tx, at, [loop])
    return view


def loop_views(tx: Tx, at: Session, loops: Sequence[Loop]) -> tuple[LoopView, ...]:
    """Return loops with data of their plans, their projects and their drivers."""
    known = plans_of(tx, loops)
    return tuple(
        view_of(
            tx,
            loop,
            known,
            pid=_driver(tx, at, loop),
            heartbeat=_heartbeat(tx.get(Project, loop.project_id), loop),
        )
        for loop in loops
    )


def _driver(tx: Tx, at: Session, loop: Loop) -> int | None:
    if loop.state is not LoopState.RUNNING:
        return None
    membership = at.home.membership
    if isinstance(membership, LockedMembership):
        holder = (membership.holder() or {}) if membership.serves(loop.project_id) else {}
        return pid if isinstance(pid := holder.get("pid"), int) else None
    workers = [one for one in leased_workers(tx) if one.project_id in (None, loop.project_id)]
    return workers[0].pid if workers else None


def _heartbeat(project: Project | None, loop: Loop) -> datetime | None:
    if project is None:
        return None
    file = state_file(Path(project.path), "health", f"{loop.id}.json")
    try:
        return datetime.fromisoformat(json.loads(file.read_text())["last_heartbeat"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # it never ran here, or its folder is gone


def _why_not(tx: Tx, loop: Loop, view: LoopView) -> str:
    if loop.state is not LoopState.RUNNING:
        return f"the loop is {loop.state.value.lower()}" + (f": {loop.reason}" if loop.reason else "")
    if view.pid is None:
        return "no worker runs"
    plan = tx.get(Plan, loop.plan_id) if loop.plan_id else None
    if plan is not None and plan.not_before is not None and plan.not_before > tx.now():
        return f"it waits until {plan.not_before.isoformat()}"
    return ""
