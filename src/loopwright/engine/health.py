"""A sign of life per loop, in its project's state directory: fresh as long as someone drives it."""

import logging
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from loopwright.core.model import Loop, Plan, Project
from loopwright.core.states import LoopState
from loopwright.engine.signs import show_signs
from loopwright.engine.world import World
from loopwright.ports import StateFiles, Tx

log = logging.getLogger(__name__)

BEAT: Final = timedelta(seconds=5)
"""How often a driven loop's file is written; one that is older than two beats belongs to a dead worker."""


async def beat(world: World, files: StateFiles) -> None:
    """Write the health of every running loop, and the sign of life that its source asks for."""
    for path, loop_id, health in await world.store.read(lambda tx: _healths(tx, world)):
        try:
            files.put(path, "health", loop_id, health, durably=False)
        except OSError as trouble:
            log.warning("health not written", extra={"loop": loop_id, "why": str(trouble)})
    await show_signs(world)


def _healths(tx: Tx, world: World) -> list[tuple[Path, str, dict[str, Any]]]:
    found = []
    now = tx.now()
    for loop in tx.find(Loop, state=(LoopState.RUNNING, LoopState.PAUSED)):
        project = tx.get(Project, loop.project_id)
        plan = tx.get(Plan, loop.plan_id) if loop.plan_id else None
        if project is None or plan is None or not Path(project.path).is_dir():
            continue
        total = int(plan.evaluation.get("tasks", 0))
        health = {
            "loop": loop.name,
            "loop_id": loop.id,
            "status": loop.state.value,
            "plan_id": plan.id,
            "plan_status": plan.status.value,
            "progress": {"settled": total - plan.open_tasks, "failed": plan.failed_tasks, "total": total},
            "last_heartbeat": now.isoformat(),
            "next_heartbeat_before": (now + 2 * BEAT).isoformat(),
            "pid": world.me.pid,
            "hostname": world.me.hostname,
        }
        found.append((Path(project.path), loop.id, health))
    return found
