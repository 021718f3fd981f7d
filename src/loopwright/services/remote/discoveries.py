"""Work that agents found: list it, and decide about it."""

from loopwright.core.replies.discoveries import Discovery
from loopwright.core.rows.model import Project
from loopwright.core.values.access import Caller
from loopwright.core.values.errors import NotFound
from loopwright.core.values.ids import Kind, is_id
from loopwright.core.values.states import DiscoveryState
from loopwright.engine.people.discoveries import DiscoveryView, discovery_view
from loopwright.ports import Tx
from loopwright.services.control import discoveries
from loopwright.services.control.discoveries import DiscoveryDecision
from loopwright.services.homes.session import Session
from loopwright.services.remote.pages import Asked, Page, find_page
from loopwright.services.remote.seen import acting, seen_plan, seen_project, seen_where


async def list_discoveries(
    at: Session, caller: Caller, page: Asked, *, project_id: str | None = None, everything: bool = False
) -> Page[DiscoveryView]:
    """Return work that agents found, the oldest first; `everything` adds what was decided."""

    def load(tx: Tx) -> Page[DiscoveryView]:
        where = seen_where(tx, caller, project_id)
        if not everything:
            where["state"] = DiscoveryState.OPEN
        rows = find_page(tx, Discovery, page, order_by=("created_at",), **where)
        return rows.map(lambda one: discovery_view(tx, one))

    return await at.home.store.read(load)


async def decide(
    at: Session,
    caller: Caller,
    discovery_id: str,
    *,
    accept: bool,
    way: str | None = None,
    plan: str | None = None,
) -> DiscoveryDecision:
    """Have found work done, in its plan or in a new one, or dismiss it."""

    def load(tx: Tx) -> Project:
        found = tx.get(Discovery, discovery_id) if is_id(discovery_id, Kind.DISCOVERY) else None
        if found is None or not caller.sees(found.project_id):
            raise NotFound(f"there is no discovery {discovery_id}", code="discovery_not_found")
        if plan is not None:
            seen_plan(tx, caller, plan)
        return seen_project(tx, caller, found.project_id)

    project = await at.home.store.read(load)
    with acting(at, caller, project):
        if accept:
            return await discoveries.accept(at, discovery_id, way=way, plan=plan)
        return await discoveries.dismiss(at, discovery_id)
