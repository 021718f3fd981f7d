"""Heartbeat files, per loop and in a source's own format: fresh while a worker drives the plan.

They are in the state directory or beside the source, never on a branch: they are about this moment and
machine.
"""

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from loopwright.core.rows.model import Loop, Plan, Project, Task
from loopwright.core.values.errors import UserError
from loopwright.core.values.states import ENDED_PLAN, LoopState, TaskState
from loopwright.engine.intake.progress import progress_of
from loopwright.engine.people.served_projects import serves
from loopwright.engine.rows.projects import state_place
from loopwright.engine.rows.world import World
from loopwright.engine.views.loop_views import at_work
from loopwright.ports import Files, Progress, StateFiles, Tx

log = logging.getLogger(__name__)


async def show_signs(world: World) -> None:
    """Write a heartbeat for every running loop whose source supports one."""
    for project, loop, plan in await world.store.read(lambda tx: _driven(tx, world)):
        await show_sign(world, project, loop, plan)


async def show_sign(
    world: World, project: Project, loop: Loop, plan: Plan, progress: Progress | None = None
) -> None:
    """Write the heartbeat of one loop, if its source supports one; a problem with it stops nothing."""
    source = world.source(loop.source_kind)
    if source is None or not source.has_heartbeat:
        return
    place = Path(project.path) / loop.source_path
    folder = place if place.is_dir() else place.parent
    alive = loop.state is LoopState.RUNNING and plan.status not in ENDED_PLAN
    try:
        seen: Files = await asyncio.to_thread(source.files, place)
        name = source.heartbeat_file(seen)
        if name is None or os.path.relpath(folder / name, project.path) in plan.books:
            return  # it is not wanted, or git tracks it: then writing it would change the checkout
        if progress is None:
            progress = await world.store.read(lambda tx: progress_of(tx, plan))
        sign = source.heartbeat(seen, progress, world.me.pid if alive else None)
        if sign is not None and world.put_files(folder, {name: sign}, seen):
            world.own_writes.note(folder, {name: sign})
    except (UserError, OSError) as trouble:
        log.warning("no sign of life", extra={"source": loop.source_path, "why": str(trouble)})


def _driven(tx: Tx, world: World) -> list[tuple[Project, Loop, Plan]]:
    found = []
    for loop in tx.find(Loop, state=LoopState.RUNNING):
        project, plan = tx.get(Project, loop.project_id), tx.get(Plan, loop.plan_id) if loop.plan_id else None
        if project is None or plan is None or not serves(tx, world, project.id):
            continue
        if Path(project.path).is_dir():
            found.append((project, loop, plan))
    return found


# A heartbeat file per loop, in its project's state directory: fresh as long as a worker drives it.

BEAT: Final = timedelta(seconds=5)
"""How often a driven loop's file is written; a file that is older than two intervals belongs to a dead worker."""

_DRIVEN: Final = (LoopState.RUNNING, LoopState.PAUSED)
ENDS: Final = frozenset({"loop_completed", "loop_failed", "loop_stopped"})
"""Events after which no worker drives a loop."""


async def beat(world: World, files: StateFiles) -> None:
    """Write the health of every running loop, and the heartbeat that its source supports."""
    healths = await world.store.read(lambda tx: _healths(tx, world))
    if healths:
        await files.beside(lambda: _put(files, healths))
    await show_signs(world)


def _put(files: StateFiles, healths: Sequence[tuple[Path, str, Mapping[str, Any]]]) -> None:
    for path, loop_id, health in healths:
        try:
            files.put(path, "health", loop_id, health, durably=False)
        except OSError as trouble:
            log.warning("health not written", extra={"loop": loop_id, "why": str(trouble)})


def _healths(tx: Tx, world: World) -> list[tuple[Path, str, dict[str, Any]]]:
    found = []
    for loop in tx.find(Loop, state=_DRIVEN):
        project = tx.get(Project, loop.project_id)
        plan = tx.get(Plan, loop.plan_id) if loop.plan_id else None
        if project is None or plan is None or not Path(project.path).is_dir():
            continue
        if not serves(tx, world, project.id):
            continue  # no worker drives it
        now = tx.now()
        signs = {
            "last_heartbeat": now.isoformat(),
            "next_heartbeat_before": (now + 2 * BEAT).isoformat(),
            "pid": world.me.pid,
            "hostname": world.me.hostname,
        }
        found.append((state_place(project), loop.id, {**_health(tx, loop, plan), **signs}))
    return found


def last_words(tx: Tx, loop_id: str) -> dict[str, Any] | None:
    """Return the heartbeat of a loop that has ended; None while a worker drives it."""
    loop = tx.get(Loop, loop_id)
    plan = tx.get(Plan, loop.plan_id) if loop is not None and loop.plan_id else None
    if loop is None or plan is None or loop.state in _DRIVEN:
        return None
    unset = dict.fromkeys(("next_heartbeat_before", "pid", "hostname"))
    return {**_health(tx, loop, plan), "last_heartbeat": loop.updated_at.isoformat(), **unset}


def _health(tx: Tx, loop: Loop, plan: Plan) -> dict[str, Any]:
    total = int(plan.evaluation.get("tasks", 0))
    return {
        "loop": loop.name,
        "loop_id": loop.id,
        "status": loop.state.value,
        "plan_id": plan.id,
        "plan_status": plan.status.value,
        "current_test": next(iter(at_work(tx, [plan]).get(plan.id, ())), None),
        "progress": {
            "passed": tx.count(Task, plan_id=plan.id, status=TaskState.COMPLETE),
            "settled": total - plan.open_tasks,
            "failed": plan.failed_tasks,
            "total": total,
        },
    }
