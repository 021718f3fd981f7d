"""The pages of loops: the list by priority, one loop with its health, and the material for a new one."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from loopwright.adapters import registry
from loopwright.core.rows.model import Loop, Plan, Project
from loopwright.core.values.access import Caller, Scope
from loopwright.core.values.states import ENDED_PLAN, LoopState
from loopwright.engine.rows.world import HomePaths
from loopwright.engine.views.loop_views import is_starting, plan_of, stage_plans
from loopwright.engine.views.metrics import Figures
from loopwright.ports import Tx
from loopwright.services.dashboard.home import PlanCard, plan_card
from loopwright.services.homes.session import Session
from loopwright.services.projects.found_work import FoundWork, find_work, format_name
from loopwright.services.remote.loops import LoopHealth, LoopView, loop_health, loop_views
from loopwright.services.remote.pages import Asked, find_page
from loopwright.services.remote.rounds import is_in_rounds
from loopwright.services.remote.seen import acting, seen_loop, seen_project, seen_where
from loopwright.services.remote.templates import RegisteredTemplate, list_templates
from loopwright.services.reports.alerts import OF_LOOPS, Alert
from loopwright.services.reports.attention import loop_report

_HISTORY: Final = 50
_MOST_FOUND: Final = 50

FILTERS: Final[Mapping[str, tuple[LoopState, ...]]] = {
    "running": (LoopState.RUNNING,),
    "waiting": (LoopState.PAUSED, LoopState.STOPPED),
    "failed": (LoopState.FAILED,),
    "idle": (LoopState.IDLE,),
    "done": (LoopState.COMPLETED,),
}
"""The filters of the list, with the states that they select."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopList:
    """One page of the list, and how many loops each filter would show."""

    loops: tuple[LoopView, ...]
    next: str | None
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopActions:
    """What the caller can do to a loop now."""

    start: bool
    pause: bool
    resume: bool
    stop: bool
    change: bool
    delete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPage:
    """Everything on the page of a loop."""

    loop: LoopView
    format_name: str
    """What people call the format of its source."""
    project: Project
    health: LoopHealth
    actions: LoopActions
    current: PlanCard | None
    plans: tuple[PlanCard, ...]
    figures: Figures | None
    alerts: tuple[Alert, ...]
    in_rounds: bool
    """Whether its source is an orchestrator folder with rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopMaterial:
    """What a new loop of a project can use."""

    project: Project
    sources: tuple[FoundWork, ...]
    """With paths relative to the project."""
    templates: tuple[RegisteredTemplate, ...]


def listed() -> dict[str, Any]:
    """Return the filter for loops over work: a loop that only asks an agent for a plan is not listed."""
    return {"deleted_at": None, "source_kind": [one.kind for one in registry.sources()]}


async def list_loops(
    at: Session, caller: Caller, page: Asked, *, project_id: str | None = None, only: str = ""
) -> LoopList:
    """Return loops, the most urgent first."""

    def load(tx: Tx) -> LoopList:
        where: dict[str, Any] = {**seen_where(tx, caller, project_id), **listed()}
        states = FILTERS.get(only)
        chosen = {**where, "state": list(states)} if states else where
        found = find_page(tx, Loop, page, order_by=("priority", "name"), **chosen)
        counts = {name: tx.count(Loop, state=list(found), **where) for name, found in FILTERS.items()}
        return LoopList(
            loops=loop_views(tx, at, found.items),
            next=found.next,
            counts={"": sum(counts.values()), **counts},
        )

    return await at.home.store.read(load)


async def loop_page(at: Session, caller: Caller, loop_id: str) -> LoopPage:
    """Return the page of a loop."""
    health = await loop_health(at, caller, loop_id)
    report = await loop_report(at, caller, loop_id)
    paths = HomePaths(root=at.home.root)

    def load(tx: Tx) -> LoopPage:
        loop = seen_loop(tx, caller, loop_id)
        rows = stage_plans(tx, loop, _HISTORY) or tx.find(
            Plan, loop_id=loop.id, order_by=("-created_at", "-id"), limit=_HISTORY
        )
        cards = {one.id: plan_card(tx, one, loop, paths) for one in rows}
        current = tx.get(Plan, driven) if (driven := plan_of(tx, loop)) else None
        project = seen_project(tx, caller, loop.project_id)
        return LoopPage(
            loop=report.loop,
            format_name=format_name(loop.source_kind),
            project=project,
            in_rounds=is_in_rounds(loop, project),
            health=health,
            actions=loop_actions(caller, loop.state, starting=is_starting(loop), plan=current),
            current=cards.get(driven or ""),
            plans=tuple(cards.values()),
            figures=report.figures,
            # The top of the page says why the loop rests.
            alerts=tuple(
                one for one in report.alerts if one.kind not in OF_LOOPS and not one.acknowledged_by
            ),
        )

    return await at.home.store.read(load)


def loop_actions(caller: Caller, state: LoopState, *, starting: bool, plan: Plan | None) -> LoopActions:
    """Return what can be done to a loop now."""
    may = caller.may(Scope.OPERATE)
    is_open = plan is not None and plan.status not in ENDED_PLAN
    rests = state in (LoopState.PAUSED, LoopState.STOPPED)
    return LoopActions(
        start=may and not starting and state is not LoopState.RUNNING and not (rests and is_open),
        pause=may and state is LoopState.RUNNING,
        resume=may and not starting and rests and is_open,
        stop=may and (starting or state in (LoopState.RUNNING, LoopState.PAUSED)),
        change=may,
        delete=may and not starting and state not in (LoopState.RUNNING, LoopState.PAUSED),
    )


async def loop_material(at: Session, caller: Caller, project_id: str) -> LoopMaterial:
    """Return the work in a project that has no loop yet, and the templates that a loop can be made from."""

    def load(tx: Tx) -> tuple[Project, frozenset[str]]:
        project = seen_project(tx, caller, project_id)
        loops = tx.find(Loop, project_id=project.id, deleted_at=None)
        return project, frozenset(one.source_path for one in loops)

    project, taken = await at.home.store.read(load)
    root = Path(project.path)
    with acting(at, caller, project):
        found = await asyncio.to_thread(find_work, root / project.subfolder)
    free = [one for one in found if one.path.relative_to(root).as_posix() not in taken]
    return LoopMaterial(
        project=project,
        sources=tuple(free[:_MOST_FOUND]),
        templates=await list_templates(at, caller, project_id),
    )
