"""The heartbeat file of a source's own format: fresh while a worker drives its plan, and written once more at the end.

It lies in the user's folder beside the source, never on a branch: it is about this moment and this machine.
"""

import asyncio
import logging
import os
from pathlib import Path

from loopwright.core.rows.model import Loop, Plan, Project
from loopwright.core.values.errors import UserError
from loopwright.core.values.states import ENDED_PLAN, LoopState
from loopwright.engine.intake.progress import progress_of
from loopwright.engine.people.served_projects import serves
from loopwright.engine.rows.world import World
from loopwright.ports import Files, Progress, Tx

log = logging.getLogger(__name__)


async def show_signs(world: World) -> None:
    """Show that every running loop whose source wants to know is being driven."""
    for project, loop, plan in await world.store.read(lambda tx: _driven(tx, world)):
        await show_sign(world, project, loop, plan)


async def show_sign(
    world: World, project: Project, loop: Loop, plan: Plan, progress: Progress | None = None
) -> None:
    """Write the sign of life of one loop, where its source asks for one; trouble with that stops nothing."""
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
