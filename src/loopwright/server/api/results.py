"""Results of plans: receipts, diffs, task details, and decisions about landed work."""

from datetime import datetime
from typing import Any

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import PlainTextResponse

from loopwright.core.values.documents import document
from loopwright.server.api.plans import result_of
from loopwright.server.context import Home, Reader, Writer
from loopwright.server.plan_bodies import Result
from loopwright.server.shapes import Camel, SnakeRequest
from loopwright.services.remote import results

router = APIRouter(prefix="/api/plans", tags=["results"])


class Accept(SnakeRequest):
    """What to accept, and how."""

    tasks: list[str] = Field(default_factory=list, max_length=1000, description="Empty for the whole plan.")
    finish: str | None = Field(default=None, max_length=64, description="The values of the setting `finish`.")


class Comment(SnakeRequest):
    """A comment on a line."""

    at: str = Field(max_length=2000, description="FILE:LINE")
    text: str = Field(max_length=20_000)


class Reject(SnakeRequest):
    """What is wrong with the work."""

    note: str | None = Field(default=None, max_length=20_000)
    comments: list[Comment] = Field(default_factory=list, max_length=200)


class SentComment(Camel):
    """A comment on a line that went back to an agent."""

    task_id: str
    task: str
    file: str
    line: int
    text: str
    quoted: str = Field(description="The text of the line in the rejected work.")
    actor: str
    at: datetime


class Comments(Camel):
    """Comments on lines."""

    comments: list[SentComment]


class CheckedReceipt(Camel):
    """A receipt, compared with the repository."""

    agrees: bool
    differences: list[dict[str, Any]]
    checked: list[str]


@router.get("/{plan_id}/receipt")
async def get_receipt(plan_id: str, home: Home, caller: Reader) -> dict[str, Any]:
    """Return the receipt of a plan as it is now."""
    return dict(await results.receipt(home.at, caller, plan_id))


@router.post("/{plan_id}/receipt/verify")
async def verify_receipt(plan_id: str, home: Home, caller: Reader) -> CheckedReceipt:
    """Recompute the receipt of a plan from the repository, and name every difference."""
    found = await results.verify_receipt(home.at, caller, plan_id)
    return CheckedReceipt(
        agrees=found.agrees,
        differences=[document(one) for one in found.differences],
        checked=list(found.checked),
    )


@router.get("/{plan_id}/comments")
async def list_comments(plan_id: str, home: Home, caller: Reader, task: str | None = None) -> Comments:
    """Return the comments on lines of the diff that went back to agents, the oldest first."""
    found = await results.line_comments(home.at, caller, plan_id, task)
    return Comments(comments=[SentComment(**document(one)) for one in found])


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
    """Confirm that you have reviewed landed work."""
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
    """Remove landed work, and everything that builds on it, from the plan's branch."""
    return result_of(await results.rollback(home.at, caller, plan_id, task))


@router.post("/{plan_id}/tasks/{task}/take-over")
async def take_over(plan_id: str, task: str, home: Home, caller: Writer) -> dict[str, Any]:
    """Take a task from its agent, and make a checkout with the last work on it."""
    return document(await results.take_over(home.at, caller, plan_id, task))


@router.post("/{plan_id}/tasks/{task}/give-back")
async def give_back(plan_id: str, task: str, home: Home, caller: Writer) -> Result:
    """Give a task that you took over back to the agents, without your work."""
    return result_of(await results.give_back(home.at, caller, plan_id, task))


@router.post("/{plan_id}/tasks/{task}/hand-back")
async def hand_back(plan_id: str, task: str, home: Home, caller: Writer) -> dict[str, Any]:
    """Send your commits on a task that you took over through the checks."""
    return document(await results.hand_back(home.at, caller, plan_id, task))
