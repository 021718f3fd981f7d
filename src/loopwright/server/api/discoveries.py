"""Extra work that agents found while they did their tasks."""

from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from loopwright.core.values.documents import document
from loopwright.server.context import Home, Operator, Paging, Reader
from loopwright.server.shapes import NEXT, SnakeRequest
from loopwright.services.control.discoveries import DiscoveryDecision
from loopwright.services.remote import discoveries

router = APIRouter(prefix="/api/discoveries", tags=["discoveries"])


class DiscoveryPage(BaseModel):
    """Some discoveries."""

    discoveries: list[dict[str, Any]]
    next: str | None = NEXT


class AcceptDiscovery(SnakeRequest):
    """Where the work should be done."""

    way: Literal["current", "new"] | None = Field(
        default=None,
        description="In the plan in which it was found, or in a new plan; by default, as the agent advised.",
    )
    plan_id: str | None = Field(
        default=None, max_length=100, description="Another plan of the project that gets it as a task."
    )


class Decided(BaseModel):
    """The result of a decision."""

    plan_id: str
    result: str


@router.get("")
async def list_discoveries(
    home: Home, caller: Reader, page: Paging, project: str | None = None, everything: bool = False
) -> DiscoveryPage:
    """List work that agents found and that waits for a decision, the oldest first."""
    found = await discoveries.list_discoveries(
        home.at, caller, page, project_id=project, everything=everything
    )
    return DiscoveryPage(discoveries=[document(one) for one in found.items], next=found.next)


@router.post("/{discovery_id}/accept")
async def accept(
    discovery_id: str, home: Home, caller: Operator, how: AcceptDiscovery | None = None
) -> Decided:
    """Accept extra work: it becomes a task or a plan."""
    way, plan = (how.way, how.plan_id) if how else (None, None)
    return _decided(await discoveries.decide(home.at, caller, discovery_id, accept=True, way=way, plan=plan))


@router.post("/{discovery_id}/dismiss")
async def dismiss(discovery_id: str, home: Home, caller: Operator) -> Decided:
    """Dismiss extra work."""
    return _decided(await discoveries.decide(home.at, caller, discovery_id, accept=False))


def _decided(made: DiscoveryDecision) -> Decided:
    return Decided(plan_id=made.plan_id, result=made.command.result)
