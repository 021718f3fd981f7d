"""What agents do to loops, with the reason, and undoing it."""

from datetime import datetime
from http import HTTPStatus
from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from loopwright.core.values.states import ActionState
from loopwright.server.context import Home, Operator, Reader
from loopwright.server.shapes import SnakeRequest
from loopwright.services.remote import actions
from loopwright.services.remote.actions import ActionKind

router = APIRouter(prefix="/api", tags=["actions"])


class ActionDocument(BaseModel):
    """One thing that an agent did."""

    id: str
    project_id: str
    kind: str
    loop_id: str | None
    plan_id: str | None
    task_id: str | None
    reason: str
    actor: str
    run_id: str | None = Field(description="The run that it came from; null for an agent outside.")
    state: ActionState
    result: str = Field(description="What it came to, or why it was refused.")
    created_at: datetime
    undone_at: datetime | None
    undone_by: str


class ActionList(BaseModel):
    """What agents did."""

    actions: list[ActionDocument]


class Part(SnakeRequest):
    """One of the smaller tasks that a task is split into."""

    title: str = Field(min_length=1, max_length=200)
    description: str = Field(default="", max_length=20_000)


class TakeAction(SnakeRequest):
    """What to do, and why."""

    kind: ActionKind
    reason: str = Field(min_length=1, max_length=1000)
    project_id: str = Field(default="", max_length=100, description="For create and plan.")
    loop_id: str = Field(default="", max_length=100, description="For start, pause, prioritise and split.")
    task: str = Field(default="", max_length=200, description="For split; for prioritise if not the loop.")
    question_id: str = Field(default="", max_length=100, description="For answer.")
    template: str = Field(default="", max_length=64, description="For create.")
    values: dict[str, str] = Field(default={}, description="The template's parameters.")
    name: str | None = Field(default=None, min_length=1, max_length=200)
    priority: int | None = Field(default=None, ge=1, le=100, description="Lower is more urgent.")
    goal: str = Field(default="", max_length=20_000, description="For plan.")
    autonomy: Literal["manual", "supervised", "auto"] = "manual"
    text: str = Field(default="", max_length=20_000, description="The answer.")
    other: bool = False
    now: bool = Field(default=False, description="For pause: interrupt agents too.")
    parts: list[Part] = Field(default=[], max_length=8)


@router.get("/actions")
async def list_actions(home: Home, caller: Reader, project: str | None = None) -> ActionList:
    """List what agents did, the newest first, at most 200."""
    found = await actions.list_actions(home.at, caller, project)
    return ActionList(actions=[ActionDocument.model_validate(one, from_attributes=True) for one in found])


@router.post("/actions", status_code=HTTPStatus.CREATED)
async def act(wanted: TakeAction, home: Home, caller: Operator) -> ActionDocument:
    """Do something to a loop for a reason. It is recorded, and can be undone."""
    said = wanted.model_dump(exclude={"parts"})
    wish = actions.Wish(**said, parts=tuple((one.title, one.description) for one in wanted.parts))
    return ActionDocument.model_validate(await actions.act(home.at, caller, wish), from_attributes=True)


@router.post("/actions/{action_id}/undo")
async def undo(action_id: str, home: Home, caller: Operator) -> ActionDocument:
    """Undo what an agent did."""
    return ActionDocument.model_validate(await actions.undo(home.at, caller, action_id), from_attributes=True)


class Delegate(SnakeRequest):
    """A goal for the orchestrator of a project."""

    goal: str = Field(min_length=1, max_length=20_000)


class Delegated(BaseModel):
    """Where the orchestrator works."""

    plan_id: str
    loop_id: str


@router.post("/projects/{project_id}/delegate", status_code=HTTPStatus.ACCEPTED)
async def delegate(project_id: str, wanted: Delegate, home: Home, caller: Operator) -> Delegated:
    """Give a goal to the orchestrator of a project, which turns it into loops."""
    plan = await home.orchestrators.delegate(caller, project_id, wanted.goal)
    return Delegated(plan_id=plan.id, loop_id=plan.loop_id)
