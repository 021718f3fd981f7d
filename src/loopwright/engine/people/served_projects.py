"""Which projects' new work may start now; for other projects, existing work is only finished."""

from loopwright.core.rows.model import Attempt, Finish, Loop, Plan, Run, Worker
from loopwright.core.values.states import AttemptState, FinishState, RunState
from loopwright.engine.people.commands import is_to_be_ended
from loopwright.engine.rows.moves import MACHINE, need
from loopwright.engine.rows.world import World
from loopwright.ports import Tx


def serves(tx: Tx, world: World, project_id: str) -> bool:
    """Return whether new work of a project may start: a live worker serves all projects, or this one."""
    if world.me.project_id in (None, project_id):
        return True
    if world.membership.exclusive:
        return world.membership.attended(project_id)
    return is_served(tx, project_id)


def is_served(tx: Tx, project_id: str) -> bool:
    """Return whether a worker with a running lease serves a project, on a shared home."""
    now = tx.now()
    return any(
        one.project_id in (None, project_id) and one.lease_until > now and one.slots
        for one in tx.find(Worker)
    )


def may_move(tx: Tx, world: World, row: Attempt | Plan | Finish) -> bool:
    """Return whether a leg may continue this: for a project without a worker, only what has already begun.

    That is a running process, a request of the user, or a half-done landing.
    """
    project_id = row.project_id if isinstance(row, Plan) else _project_of(tx, world, row.plan_id)
    if serves(tx, world, project_id):
        return True
    if isinstance(row, Finish):
        return row.actor != MACHINE or row.state is FinishState.LANDING
    if isinstance(row, Plan):
        loop = need(tx.get(Loop, row.loop_id), "the loop")
        return is_to_be_ended(tx, row, loop) or _runs(tx, plan_id=row.id, id=row.verify_run_id)
    if row.interrupt or row.state is AttemptState.LANDING:
        return True
    return _runs(tx, attempt_id=row.id)


def _project_of(tx: Tx, world: World, plan_id: str) -> str:
    if plan_id not in world.project_ids:
        world.project_ids[plan_id] = need(tx.get(Plan, plan_id), "the plan").project_id
    return world.project_ids[plan_id]


def _runs(tx: Tx, **which: str | None) -> bool:
    return tx.count(Run, state=RunState.RUNNING, **which) > 0
