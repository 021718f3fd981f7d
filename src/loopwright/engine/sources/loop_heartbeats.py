"""A heartbeat file per loop, in its project's state directory: fresh as long as a worker drives it."""

import logging
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from loopwright.core.rows.model import Loop, Plan, Project
from loopwright.core.values.states import LoopState
from loopwright.engine.people.served_projects import serves
from loopwright.engine.rows.world import World
from loopwright.engine.sources.source_heartbeats import show_signs
from loopwright.ports import StateFiles, Tx

log = logging.getLogger(__name__)

BEAT: Final = timedelta(seconds=5)
"""How often a driven loop's file is written; one that is older than two beats belongs to a dead worker."""

_DRIVEN: Final = (LoopState.RUNNING, LoopState.PAUSED)
ENDS: Final = frozenset({"loop_completed", "loop_failed", "loop_stopped"})
"""Events after which no worker drives a loop."""


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
        found.append((Path(project.path), loop.id, {**_health(loop, plan), **signs}))
    return found


def last_words(tx: Tx, loop_id: str) -> dict[str, Any] | None:
    """Return the heartbeat of a loop that has ended; None while a worker drives it."""
    loop = tx.get(Loop, loop_id)
    plan = tx.get(Plan, loop.plan_id) if loop is not None and loop.plan_id else None
    if loop is None or plan is None or loop.state in _DRIVEN:
        return None
    unset = dict.fromkeys(("next_heartbeat_before", "pid", "hostname"))
    return {**_health(loop, plan), "last_heartbeat": loop.updated_at.isoformat(), **unset}


def _health(loop: Loop, plan: Plan) -> dict[str, Any]:
    total = int(plan.evaluation.get("tasks", 0))
    return {
        "loop": loop.name,
        "loop_id": loop.id,
        "status": loop.state.value,
        "plan_id": plan.id,
        "plan_status": plan.status.value,
        "progress": {"settled": total - plan.open_tasks, "failed": plan.failed_tasks, "total": total},
    }
