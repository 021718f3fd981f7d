"""Files and named locks that loops of a project hold, so that they take turns."""

from datetime import datetime
from http import HTTPStatus

from fastapi import APIRouter
from pydantic import BaseModel, Field

from loopwright.server.context import Home, Operator, Reader
from loopwright.server.shapes import SnakeRequest
from loopwright.services.remote import locks

router = APIRouter(prefix="/api/locks", tags=["locks"])


class HoldDocument(BaseModel):
    """Files or a lock that a loop holds or waits for."""

    id: str
    project_id: str
    loop: str = Field(description="The name of the loop.")
    plan_id: str
    task: str = Field(description="The task that needs the files; empty for what the whole plan needs.")
    lock: str = Field(description="The name of the lock; empty for files.")
    paths: list[str] = Field(description="Patterns of the files, relative to the project's folder.")
    state: str = Field(description="HELD, WAITING or REFUSED")
    waits_for: list[str] = Field(description="The names of the loops that it waits for.")
    reason: str
    since: datetime


class HoldList(BaseModel):
    """What loops hold and wait for."""

    locks: list[HoldDocument]


class TakeLock(SnakeRequest):
    """A lock to ask for."""

    plan_id: str = Field(max_length=100)
    lock: str = Field(min_length=1, max_length=64, description="Loops of a project that name it take turns.")


class Released(BaseModel):
    """The result of a release."""

    result: str


@router.get("")
async def list_locks(home: Home, caller: Reader, project: str | None = None) -> HoldList:
    """List what loops hold and wait for, the oldest first."""
    found = await locks.list_locks(home.at, caller, project)
    return HoldList(locks=[HoldDocument.model_validate(one, from_attributes=True) for one in found])


@router.post("", status_code=HTTPStatus.CREATED)
async def take(wanted: TakeLock, home: Home, caller: Operator) -> HoldDocument:
    """Ask for a named lock for a plan. While the plan waits for it, no task of it starts."""
    made = await locks.take(home.at, caller, wanted.plan_id, wanted.lock)
    return HoldDocument.model_validate(made, from_attributes=True)


@router.post("/{hold_id}/release")
async def release(hold_id: str, home: Home, caller: Operator) -> Released:
    """Take files or a lock from a loop, or let one continue that waits for them."""
    return Released(result=await locks.release(home.at, caller, hold_id))
