"""Remove what an ended plan keeps in the user's repository: only on request, and recorded."""

import asyncio
import logging
from collections.abc import Collection, Sequence
from typing import Any, Final

from loopwright.core.rows.events import happened
from loopwright.core.rows.model import AGENT_ROLES, Attempt, Loop, Plan, Run, Task
from loopwright.core.values.errors import Refused
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import ENDED_PLAN, ENDED_RUN, PlanState
from loopwright.engine.rows.finishes import is_open
from loopwright.engine.rows.moves import MACHINE
from loopwright.engine.rows.plan_states_text import plan_word
from loopwright.engine.rows.projects import Checkouts, recent_plans
from loopwright.engine.rows.world import World
from loopwright.ports import Tx

_MANY = 1000


def cleanable(tx: Tx, *, project_path: Checkouts | None) -> list[Plan]:
    """Return the plans that have ended for good, newest first."""
    return [
        plan for plan in recent_plans(tx, project_path=project_path, limit=_MANY) if not why_not(tx, plan)
    ]


def check_clean(tx: Tx, plan: Plan) -> None:
    """Raise if a plan must not be cleaned up."""
    if why := why_not(tx, plan):
        raise Refused(
            f"{short_id(plan.id)} {why}",
            code="plan_still_needed",
            hint="clean up a plan after it has ended for good",
        )


def why_not(tx: Tx, plan: Plan) -> str:
    """Return why a plan is still needed; empty if it has ended for good."""
    loop = tx.get(Loop, plan.loop_id)
    superseded = loop is not None and loop.plan_id != plan.id
    if plan.status not in (PlanState.VERIFIED, PlanState.CANCELLED) and not (
        plan.status is PlanState.FAILED and superseded
    ):
        # A failed plan can be retried and verified again, and both need its branch.
        return f"is {plan_word(tx, plan)}"
    if is_open(tx, plan.id):
        return "is being taken over (`loopwright resume` continues that)"
    if tx.find(Attempt, plan_id=plan.id, cleaned_at=None, limit=1):
        return "has workspaces that are not tidied yet (`loopwright worker --until-idle` does it)"
    return ""


def record_cleaned(
    tx: Tx,
    plan: Plan,
    actor: str,
    *,
    deleted: Sequence[str],
    unproven: Sequence[str],
    commits: Collection[str],
) -> None:
    """Record which refs the user released, which of them were nowhere else, and what the plan's branch had.

    Of `commits` only the result and landing commits are kept: a receipt names these.
    """
    landed = [task.landed_sha for task in tx.find(Task, plan_id=plan.id, order_by=("position",))]
    named = [sha for sha in dict.fromkeys((plan.result_sha, *landed)) if sha in commits]
    tx.append(
        happened(
            "plan_cleaned",
            actor,
            plan=plan,
            deleted=list(deleted)[:500],
            unproven=list(unproven)[:500],
            commits=named,
        )
    )


# Removes recordings of agents in long-ended plans, the oldest first, if recordings use too much space.

log = logging.getLogger(__name__)

_PACE_S: Final = 3600.0
"""How often it is measured: counting the files of a large home takes a while."""
_NAMED: Final = 500


class Retention:
    """Checks from time to time whether the recordings of a home use too much space."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._due = 0.0

    async def look(self) -> None:
        """Remove recordings until the rest fits; those of unfinished plans, and the output of gates, stay."""
        room, clock = self._world.room, self._world.clock
        if room.keep_recordings is None or clock.monotonic() < self._due:
            return
        self._due = clock.monotonic() + _PACE_S
        over = (
            await asyncio.to_thread(room.disk.taken, self._world.paths.root / "runs") - room.keep_recordings
        )
        if over > 0:
            await self._make_room(over)

    async def _make_room(self, over: int) -> None:
        world = self._world
        chosen: list[Run] = []
        found = 0
        for run in await world.store.read(self._over_for_good):
            if found >= over:
                break
            size = await asyncio.to_thread(world.room.disk.recorded, world.paths.run(run.id))
            found += size
            if size:
                chosen.append(run)
        if not chosen:
            return

        # Recorded first: a kill in between leaves a record of what may be gone, never the other way round.
        since = await world.store.transact(
            "recordings.removed", lambda tx: record_removed(tx, [run.id for run in chosen], found, MACHINE)
        )
        for run in chosen:
            await asyncio.to_thread(world.room.disk.forget, world.paths.run(run.id), since)
        log.info("recordings removed", extra={"count": len(chosen), "bytes": found})

    def _over_for_good(self, tx: Tx) -> list[Run]:
        """Return the agents' runs on this machine whose plans have ended for good, the oldest first."""
        plans = [one.id for one in tx.find(Plan, status=ENDED_PLAN) if not why_not(tx, one)]
        if not plans:
            return []
        mine: dict[str, Any] = {"host_id": self._world.me.host_id, "role": AGENT_ROLES, "state": ENDED_RUN}
        return tx.find(Run, plan_id=plans, order_by=("ended_at",), **mine)


def record_removed(tx: Tx, runs: Sequence[str], size: int, actor: str) -> str:
    """Record whose recordings are removed, and return since which day."""
    about: dict[str, Any] = {"runs": list(runs[:_NAMED]), "count": len(runs), "bytes": size}
    tx.append(happened("recordings_removed", actor, **about))
    return tx.now().date().isoformat()
