"""What plans came to: receipts, diffs, task details, and decisions about landed work."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import PlainTextResponse

from loopwright.core.values.documents import document
from loopwright.server.api.plans import Result, result_of
from loopwright.server.context import Home, Reader, Writer
from loopwright.services.remote import results

router = APIRouter(prefix="/api/plans", tags=["results"])


class Accept(BaseModel):
    """What to accept, and how."""

    tasks: list[str] = Field(default_factory=list, max_length=1000, description="Empty for the whole plan.")
    finish: str | None = Field(default=None, max_length=64, description="As the setting `finish`.")


class Comment(BaseModel):
    """A comment on a line."""

    at: str = Field(max_length=2000, description="FILE:LINE")
    text: str = Field(max_length=20_000)


class Reject(BaseModel):
    """What is wrong with the work."""

    note: str | None = Field(default=None, max_length=20_000)
    comments: list[Comment] = Field(default_factory=list, max_length=200)


@router.get("/{plan_id}/receipt")
async def get_receipt(plan_id: str, home: Home, caller: Reader) -> dict[str, Any]:
    """Return the receipt of a plan as it is now."""
    return dict(await results.receipt(home.at, caller, plan_id))


class UnifiedDiff(PlainTextResponse):
    """A diff."""

    media_type = "text/x-diff"


@router.get("/{plan_id}/diff", response_class=UnifiedDiff)
async def get_diff(plan_id: str, home: Home, caller: Reader, task: str | None = None) -> UnifiedDiff:
    """Return what a plan or one of its tasks changed, as a unified diff."""
    text, cut = await results.diff(home.at, caller, plan_id, task)
    headers = {"X-Loopwright-Cut": "true"} if cut else {}
    return UnifiedDiff(text, headers=headers)


@router.get("/{plan_id}/tasks/{task}")
async def get_task(plan_id: str, task: str, home: Home, caller: Reader) -> dict[str, Any]:
    """Return everything about a task: its attempts, checks, reviews and questions."""
    return document(await results.get_task(home.at, caller, plan_id, task))


@router.post("/{plan_id}/accept")
async def accept(plan_id: str, home: Home, caller: Writer, wanted: Accept | None = None) -> dict[str, Any]:
    """Merge the work of a plan, or of some of its tasks."""
    wanted = wanted or Accept()
    done = await results.accept(home.at, caller, plan_id, tasks=wanted.tasks, finish=wanted.finish)
    return {"done": done.is_done, "finish": document(done.finish)}


@router.post("/{plan_id}/reviewed")
async def reviewed(plan_id: str, home: Home, caller: Writer, task: str | None = None) -> Result:
    """Confirm that you have looked at what landed."""
    return result_of(await results.reviewed(home.at, caller, plan_id, task))


@router.post("/{plan_id}/tasks/{task}/reject")
async def reject(plan_id: str, task: str, wanted: Reject, home: Home, caller: Writer) -> Result:
    """Send work back with a note and with comments on lines."""
    comments = [(one.at, one.text) for one in wanted.comments]
    return result_of(
        await results.reject(home.at, caller, plan_id, task, note=wanted.note, comments=comments)
    )


@router.post("/{plan_id}/tasks/{task}/rollback")
async def rollback(plan_id: str, task: str, home: Home, caller: Writer) -> Result:
    """Take landed work out of the plan's branch, with everything that builds on it."""
    return result_of(await results.rollback(home.at, caller, plan_id, task))


@router.post("/{plan_id}/tasks/{task}/take-over")
async def take_over(plan_id: str, task: str, home: Home, caller: Writer) -> dict[str, Any]:
    """Take a task from its agent, and make a checkout with the last work on it."""
    return document(await results.take_over(home.at, caller, plan_id, task))


@router.post("/{plan_id}/tasks/{task}/hand-back")
async def hand_back(plan_id: str, task: str, home: Home, caller: Writer) -> dict[str, Any]:
    """Send the committed work on a task that was taken over through the checks."""
    return document(await results.hand_back(home.at, caller, plan_id, task))
