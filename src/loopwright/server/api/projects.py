"""Projects, and the plans of each."""

from http import HTTPStatus
from typing import Literal

from fastapi import APIRouter, Response
from pydantic import Field

from loopwright.core.values.documents import document
from loopwright.server.api.plans import Statuses, Wait, awaited_plan
from loopwright.server.context import Admin, Home, Operator, Paging, Reader
from loopwright.server.shapes import (
    Camel,
    CamelRequest,
    ModelName,
    PlanDocument,
    PlanPage,
    ProjectDocument,
    ProjectPage,
    plan_document,
    project_document,
)
from loopwright.services.remote import drafting, plans, projects

router = APIRouter(prefix="/api/projects", tags=["projects"])


@router.get("")
async def list_projects(home: Home, caller: Reader, page: Paging) -> ProjectPage:
    """List the projects by name."""
    found = await projects.list_projects(home.at, caller, page)
    return ProjectPage(projects=list(map(project_document, found.items)), next=found.next)


class AddProject(CamelRequest):
    """A repository to register."""

    path: str = Field(
        min_length=1, max_length=4096, description="The absolute path of the repository, or a folder in it."
    )


class EnvironmentDocument(Camel):
    """The names of the variables for plans that start without a terminal. Values are never shown."""

    project_id: str
    recorded: bool
    variables: list[str]
    secrets: list[str]


@router.post("", status_code=HTTPStatus.CREATED)
async def add_project(wanted: AddProject, home: Home, caller: Admin) -> ProjectDocument:
    """Register a repository. Record its environment in a terminal with `loopwright projects env --record`."""
    return project_document(await projects.add_project(home.at, caller, wanted.path))


@router.get("/{project_id}/environment")
async def get_environment(project_id: str, home: Home, caller: Reader) -> EnvironmentDocument:
    """Return the names of the variables that were recorded for a project."""
    found = await projects.project_environment(home.at, caller, project_id)
    return EnvironmentDocument(**document(found))


@router.get("/{project_id}")
async def get_project(project_id: str, home: Home, caller: Reader) -> ProjectDocument:
    """Return a project."""
    return project_document(await projects.get_project(home.at, caller, project_id))


class MakePlan(CamelRequest):
    """What to plan."""

    packet_id: str | None = None
    goal: str = Field(default="", max_length=20_000)
    model: ModelName | None = None
    autonomy: Literal["manual", "supervised", "auto"] = "manual"


@router.post(
    "/{project_id}/plan",
    status_code=HTTPStatus.ACCEPTED,
    responses={200: {"model": PlanDocument, "description": "With `wait`: the tasks exist."}},
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
    project_id: str, home: Home, caller: Reader, page: Paging, status: Statuses = None
) -> PlanPage:
    """List the plans of a project, the newest first."""
    found = await plans.list_plans(home.at, caller, page, project_id=project_id, statuses=tuple(status or ()))
    return PlanPage(plans=list(map(plan_document, found.items)), next=found.next)
