"""What loops hold and wait for, for callers of the API."""

from loopwright.core.rows.hold_rows import Hold
from loopwright.core.values.access import Caller
from loopwright.core.values.errors import NotFound
from loopwright.core.values.ids import Kind, is_id
from loopwright.engine.people.locks import HoldView, hold_view, list_holds, project_of
from loopwright.engine.rows.moves import need
from loopwright.ports import Tx
from loopwright.services.control import locks
from loopwright.services.homes.session import Session
from loopwright.services.remote.seen import acting, plan_and_project, seen_where


async def list_locks(at: Session, caller: Caller, project_id: str | None = None) -> list[HoldView]:
    """Return what loops hold and wait for now, the oldest first."""
    return await at.home.store.read(lambda tx: list_holds(tx, **seen_where(tx, caller, project_id)))


async def take(at: Session, caller: Caller, plan_id: str, lock: str) -> HoldView:
    """Ask for a named lock for a plan."""
    plan, project = await at.home.store.read(lambda tx: plan_and_project(tx, caller, plan_id))
    with acting(at, caller, project):
        await locks.take(at, lock, plan.id)

    def load(tx: Tx) -> HoldView:
        found = tx.find(Hold, plan_id=plan.id, lock=lock)
        return hold_view(tx, need(found[0] if found else None, "the lock"))

    return await at.home.store.read(load)


async def release(at: Session, caller: Caller, hold_id: str) -> str:
    """Take files or a lock from a loop, or let a waiting one continue; return the result."""

    def load(tx: Tx) -> Hold | None:
        found = tx.get(Hold, hold_id) if is_id(hold_id, Kind.HOLD) else None
        return found if found is not None and caller.sees(found.project_id) else None

    hold = await at.home.store.read(load)
    if hold is None:
        raise NotFound(f"nothing is held as {hold_id}", code="hold_not_found")
    project = await at.home.store.read(lambda tx: project_of(tx, hold))
    with acting(at, caller, project):
        return await locks.release(at, hold.id)
