"""The page of a project: the four steps, its loops, its plans and its settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from loopwright.core.rows.model import Loop, Plan, Project, Run, Task
from loopwright.core.values.access import Caller
from loopwright.core.values.states import ENDED_PLAN, PlanState, TaskState
from loopwright.engine.rows.world import HomePaths
from loopwright.ports import Tx
from loopwright.services.dashboard.estimate import Estimate, estimate
from loopwright.services.dashboard.gate import GateProgress, gate_progress
from loopwright.services.dashboard.home import PlanCard, plan_card
from loopwright.services.dashboard.loops import listed
from loopwright.services.homes.session import Session
from loopwright.services.remote.loops import LoopView, loop_views
from loopwright.services.remote.packets import list_packets
from loopwright.services.remote.pages import Asked
from loopwright.services.remote.seen import seen_project

LISTED: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """The progress of a plan."""

    status: PlanState
    tasks: Sequence[TaskState]

    @property
    def is_draft(self) -> bool:
        """Whether it can be dispatched."""
        return self.status is PlanState.DRAFT

    @property
    def is_done(self) -> bool:
        """Whether it can be verified."""
        is_complete = bool(self.tasks) and all(one is TaskState.COMPLETE for one in self.tasks)
        return self.status is PlanState.RUNNING and is_complete


@dataclass(frozen=True, slots=True, kw_only=True)
class Buttons:
    """Which of the four steps are possible now, and for which plan."""

    inspect: bool
    """The newest run; a goal can always be inspected."""
    plan: bool
    dispatch: bool
    """Whether there is a draft."""
    verify: bool
    """Whether a plan runs whose tasks are all done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectPage:
    """Everything on the page of a project."""

    project: Project
    buttons: Buttons
    current: PlanCard | None
    """The newest plan that has not ended."""
    draft: PlanCard | None
    """The newest draft."""
    estimate: Estimate | None
    """What the draft will probably take, once it has tasks."""
    done: PlanCard | None
    """The newest plan whose tasks are all done and that was not verified."""
    gate: GateProgress | None
    """The complete gate of the current plan, while it runs."""
    newest_run: str | None
    packets: tuple[Mapping[str, Any], ...]
    loops: tuple[LoopView, ...]
    plans: tuple[PlanCard, ...]


async def list_projects(at: Session, caller: Caller) -> tuple[Project, ...]:
    """Return the projects that the caller may see, by name."""

    def load(tx: Tx) -> tuple[Project, ...]:
        return tuple(one for one in tx.find(Project, order_by=("name",)) if caller.sees(one.id))

    return await at.home.store.read(load)


async def project_page(at: Session, caller: Caller, project_id: str) -> ProjectPage:
    """Return the page of a project."""
    packets = (await list_packets(at, caller, Asked(limit=LISTED), project_id)).items
    paths = HomePaths(root=at.home.root)

    def load(tx: Tx) -> ProjectPage:
        project = seen_project(tx, caller, project_id)
        plans = tx.find(
            Plan, project_id=project.id, made_for=None, order_by=("-created_at", "-id"), limit=LISTED
        )
        current = next((one for one in plans if one.status not in ENDED_PLAN), None)
        tasks: dict[str, list[TaskState]] = {one.id: [] for one in plans if one.status not in ENDED_PLAN}
        for task in tx.find(Task, plan_id=list(tasks)) if tasks else ():
            tasks[task.plan_id].append(task.status)
        steps = [PlanStep(status=one.status, tasks=tasks.get(one.id, ())) for one in plans]
        draft = next((one for one, now in zip(plans, steps, strict=True) if now.is_draft), None)
        done = next((one for one, now in zip(plans, steps, strict=True) if now.is_done), None)
        newest = (
            tx.find(Run, plan_id=[one.id for one in plans], order_by=("-created_at",), limit=1)
            if plans
            else []
        )
        loops = tx.find(Loop, project_id=project.id, order_by=("priority", "name"), limit=LISTED, **listed())
        cards = {one.id: plan_card(tx, one, tx.get(Loop, one.loop_id), paths) for one in plans}
        return ProjectPage(
            project=project,
            buttons=visible(has_run=bool(newest), has_packet=bool(packets), plans=steps),
            current=cards[current.id] if current else None,
            draft=cards[draft.id] if draft else None,
            estimate=estimate(tx, draft) if draft and tasks[draft.id] else None,
            done=cards[done.id] if done else None,
            gate=gate_progress(tx, current, paths) if current else None,
            newest_run=newest[0].id if newest else None,
            packets=packets,
            loops=loop_views(tx, at, loops),
            plans=tuple(cards.values()),
        )

    return await at.home.store.read(load)


def visible(*, has_run: bool, has_packet: bool, plans: Sequence[PlanStep]) -> Buttons:
    """Return which of the four steps are shown: each follows from the result of the step before."""
    return Buttons(
        inspect=has_run,
        plan=has_packet,
        dispatch=any(one.is_draft for one in plans),
        verify=any(one.is_done for one in plans),
    )
