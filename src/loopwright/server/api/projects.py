"""Projects, and the plans of each."""

from http import HTTPStatus
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response
from pydantic import Field

from loopwright.server.api.plans import Wait, awaited_plan
from loopwright.server.context import Home, Operator, Reader
from loopwright.server.shapes import (
    Camel,
    PlanDocument,
    PlanPage,
    ProjectDocument,
    plan_document,
    project_document,
)
from loopwright.services.remote import drafting, plans, projects

router = APIRouter(prefix="/api/projects", tags=["projects"])


@router.get("")
async def list_projects(home: Home, caller: Reader) -> list[ProjectDocument]:
    """List the projects."""
    return [project_document(one) for one in await projects.list_projects(home.at, caller)]


@router.get("/{project_id}")
async def get_project(project_id: str, home: Home, caller: Reader) -> ProjectDocument:
    """Return a project."""
    return project_document(await projects.get_project(home.at, caller, project_id))


class MakePlan(Camel):
    """What to make a plan of."""

    packet_id: str | None = None
    goal: str = Field(default="", max_length=20_000)
    model: str | None = Field(default=None, max_length=200)
    autonomy: Literal["manual", "supervised", "auto"] = "manual"


@router.post(
    "/{project_id}/plan",
    status_code=HTTPStatus.ACCEPTED,
    responses={200: {"model": PlanDocument, "description": "With `wait`: the tasks are written."}},
)
async def make_plan(
    project_id: str, wanted: MakePlan, home: Home, caller: Operator, response: Response, wait: Wait = 0
) -> PlanDocument:
    """Let an agent decompose a packet or a goal into a plan, which rests as a draft.

    The answer comes at once; `planning` is true until the tasks are written. If none can be written, the plan is
    FAILED, with a check `plan_generation`.
    """
    wish = drafting.PlanWish(
        packet_id=wanted.packet_id, goal=wanted.goal, model=wanted.model, autonomy=wanted.autonomy
    )
    made = await drafting.ask_for_plan(home.at, caller, project_id, wish)
    return await awaited_plan(home, caller, made, response, wait)


@router.get("/{project_id}/plans")
async def list_plans(
    project_id: str,
    home: Home,
    caller: Reader,
    after: str = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> PlanPage:
    """List the plans of a project, the newest first."""
    found = await plans.list_plans(home.at, caller, project_id=project_id, after=after, limit=limit + 1)
    page = found[:limit]
    more = len(found) > limit
    return PlanPage(plans=[plan_document(one) for one in page], next=page[-1].plan.id if more else None)
