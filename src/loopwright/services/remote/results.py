"""The results of a plan: receipts, diffs and task details, and the user's decisions about landed work."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from loopwright.core.policy.rejections import comments_in, objections, parse_comment
from loopwright.core.rows.model import Attempt, Command, CommandState, Project, Task
from loopwright.core.values.access import Caller
from loopwright.core.values.documents import document
from loopwright.core.values.errors import NotFound
from loopwright.engine.rows.world import HomePaths
from loopwright.engine.views.views import TaskDetail, task_detail
from loopwright.ports import Tx
from loopwright.services.control import decisions, finishing, handover
from loopwright.services.control.decisions import Decision
from loopwright.services.homes.session import Session
from loopwright.services.receipts import receipts
from loopwright.services.remote.seen import acting, plan_and_project, seen_task, task_and_project
from loopwright.services.views.changes import span_of, write_diff

LARGEST_DIFF: Final = 8 << 20


async def receipt(at: Session, caller: Caller, plan_id: str) -> Mapping[str, Any]:
    """Return the receipt of a plan as it is now."""
    plan, project = await at.home.store.read(lambda tx: plan_and_project(tx, caller, plan_id))
    with acting(at, caller, project):
        shown = await receipts.show(plan.id)
    return shown.receipt if isinstance(shown.receipt, Mapping) else document(shown.receipt)


async def verify_receipt(at: Session, caller: Caller, plan_id: str) -> receipts.Verified:
    """Compute again what the receipt of a plan says, and name every difference."""
    plan, project = await at.home.store.read(lambda tx: plan_and_project(tx, caller, plan_id))
    with acting(at, caller, project):
        return await receipts.verify(plan.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineComment:
    """The user's comment on a line of rejected work."""

    task_id: str
    task: str
    file: str
    line: int
    text: str
    quoted: str
    actor: str
    at: datetime


async def line_comments(
    at: Session, caller: Caller, plan_id: str, task: str | None = None
) -> tuple[LineComment, ...]:
    """Return the comments on lines that were sent back to agents, the oldest first."""

    def load(tx: Tx) -> tuple[LineComment, ...]:
        plan, _ = plan_and_project(tx, caller, plan_id)
        tasks = tx.find(Task, plan_id=plan.id)
        if task is not None:
            tasks = [seen_task(tx, caller, plan, task)]
        keys = {one.id: one.key for one in tasks}
        sent = tx.find(Command, verb="reject", target=list(keys), order_by=("created_at",)) if keys else []
        return tuple(
            LineComment(
                task_id=one.target,
                task=keys[one.target],
                file=said.file,
                line=said.line,
                text=said.text,
                quoted=said.quoted,
                actor=one.actor,
                at=one.created_at,
            )
            for one in sent
            if one.state is not CommandState.REFUSED
            for said in comments_in(one.arguments.get("comments"))
        )

    return await at.home.store.read(load)


async def diff(
    at: Session, caller: Caller, plan_id: str, task: str | None = None, *, attempt: int | None = None
) -> tuple[str, bool]:
    """Return what a plan, a task or one attempt at it changed as a unified diff, and whether it was cut."""

    def load(tx: Tx) -> tuple[str, Project]:
        plan, project = plan_and_project(tx, caller, plan_id)
        if task is None:
            return plan.id, project
        row = seen_task(tx, caller, plan, task)
        if attempt is None:
            return row.id, project
        runs = [one.run_id for one in tx.find(Attempt, task_id=row.id, n=attempt) if one.run_id]
        if not runs:
            raise NotFound(f"attempt {attempt} at {row.key} changed nothing", code="no_changes")
        return runs[0], project

    target, project = await at.home.store.read(load)
    pieces: list[bytes] = []
    size = 0

    def take(piece: bytes) -> None:
        nonlocal size
        if size < LARGEST_DIFF:
            pieces.append(piece[: LARGEST_DIFF - size])
        size += len(piece)

    with acting(at, caller, project):
        span = await asyncio.to_thread(span_of, target, tell=lambda _: None)
        await write_diff(span, take)
    return b"".join(pieces).decode(errors="replace"), size > LARGEST_DIFF


async def get_task(at: Session, caller: Caller, plan_id: str, task: str) -> TaskDetail:
    """Return everything about a task: its attempts, checks, reviews and questions."""

    def load(tx: Tx) -> TaskDetail:
        plan, _ = plan_and_project(tx, caller, plan_id)
        return task_detail(tx, seen_task(tx, caller, plan, task).id, HomePaths(root=at.home.root))

    return await at.home.store.read(load)


async def accept(
    at: Session, caller: Caller, plan_id: str, *, tasks: Sequence[str] = (), finish: str | None = None
) -> finishing.Accepted:
    """Merge the work of a plan, or of some of its tasks, in the way that the settings or `finish` say."""
    plan, project = await at.home.store.read(lambda tx: plan_and_project(tx, caller, plan_id))
    with acting(at, caller, project):
        return await finishing.accept(at, plan.id, tasks=tasks, finish=finish)


async def reject(
    at: Session,
    caller: Caller,
    plan_id: str,
    task: str,
    *,
    note: str | None = None,
    comments: Sequence[tuple[str, str]] = (),
) -> Decision:
    """Send a task's work back with a note and with comments on lines."""
    row, project = await at.home.store.read(lambda tx: task_and_project(tx, caller, plan_id, task))
    with acting(at, caller, project):
        return await decisions.reject(at, row.id, note=note, comments=comments)


async def send_back(
    at: Session,
    caller: Caller,
    plan_id: str,
    task: str,
    *,
    note: str = "",
    comments: Sequence[tuple[str, str]] = (),
) -> Decision:
    """Let an agent try again with a note and with comments on lines, whether or not the work landed."""
    row, project = await at.home.store.read(lambda tx: task_and_project(tx, caller, plan_id, task))
    with acting(at, caller, project):
        if row.landed_sha is not None:
            return await decisions.reject(at, row.id, note=note, comments=comments)
        parsed = [parse_comment(place, text) for place, text in comments]
        said = objections(note, comments_in(parsed)) if note or parsed else None
        return await decisions.retry(at, row.id, note=said)


async def rollback(at: Session, caller: Caller, plan_id: str, task: str) -> Decision:
    """Remove a landed task from the plan's branch, with everything that builds on it."""
    row, project = await at.home.store.read(lambda tx: task_and_project(tx, caller, plan_id, task))
    with acting(at, caller, project):
        return await decisions.rollback(at, row.id)


async def reviewed(at: Session, caller: Caller, plan_id: str, task: str | None = None) -> Decision:
    """Record that the user reviewed what landed."""

    def load(tx: Tx) -> tuple[str, Project]:
        plan, project = plan_and_project(tx, caller, plan_id)
        return (plan.id if task is None else seen_task(tx, caller, plan, task).id), project

    target, project = await at.home.store.read(load)
    with acting(at, caller, project):
        return await decisions.reviewed(at, target)


async def take_over(at: Session, caller: Caller, plan_id: str, task: str) -> handover.TakenOver:
    """Take a task from its agent, and create a checkout with the last work on it beside the project."""
    row, project = await at.home.store.read(lambda tx: task_and_project(tx, caller, plan_id, task))
    with acting(at, caller, project):
        return await handover.take_over(at, row.id)


async def give_back(at: Session, caller: Caller, plan_id: str, task: str) -> Decision:
    """Give a task that was taken over back to the agents, without the user's work."""
    row, project = await at.home.store.read(lambda tx: task_and_project(tx, caller, plan_id, task))
    with acting(at, caller, project):
        return await decisions.give_back(at, row.id)


async def hand_back(at: Session, caller: Caller, plan_id: str, task: str) -> handover.HandedBack:
    """Send the committed work on a task that was taken over through the same checks as an agent's work."""
    row, project = await at.home.store.read(lambda tx: task_and_project(tx, caller, plan_id, task))
    with acting(at, caller, project):
        return await handover.hand_back(at, row.id)
