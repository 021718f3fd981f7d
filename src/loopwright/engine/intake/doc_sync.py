"""Business documents that must follow the work: a separate step before a plan is verified.

The source names documents, or an agent whose work landed. While a named document is unchanged since the plan
began, the plan is not verified: it gets a task that updates the document. A user who cancels that task
decides that no update is needed; that is recorded like any decision.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from loopwright.core.replies.doc_sync import (
    KEY,
    ORIGIN,
    DocSync,
    by_registry,
    description,
    documents_of,
    flagged_in,
    unchanged,
)
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Plan, Project, Task
from loopwright.core.values.states import AttemptState, PlanState, TaskState
from loopwright.engine.integrity.gate_scripts import inside
from loopwright.engine.rows.added_tasks import add_task
from loopwright.engine.rows.moves import MACHINE, move_plan, need
from loopwright.engine.rows.source_marks import marks_of
from loopwright.ports import Ids, Mark, PlannedTask, Repository, SyncProgress, Tx
from loopwright.prompts import packaged


def note(tx: Tx, plan: Plan, attempt: Attempt, said: str) -> None:
    """Record the documents that an agent names; they count once its work has landed."""
    if need(tx.get(Task, attempt.task_id), "the task").origin == ORIGIN:
        return  # it updates documents: if each could name the next, no plan would ever end
    current = need(tx.get(Plan, plan.id), "the plan")
    flags = tuple(one for one in flagged_in(said, attempt.id) if one not in current.doc_sync)
    if flags:
        tx.update(Plan, plan.id, doc_sync=(*current.doc_sync, *flags))
        told: dict[str, Any] = {
            "documents": list(documents_of(flags)),
            "reason": "; ".join(one.reason for one in flags),
        }
        tx.append(happened("docs_flagged", MACHINE, plan=plan, attempt=attempt, **told))


def flags_of(tx: Tx, plan: Plan) -> list[DocSync]:
    """Return the statements that count: those of the source, and of attempts whose work is on the branch."""
    by = {one.by for one in plan.doc_sync if one.by}
    landed = {one.id for one in tx.find(Attempt, id=list(by), state=AttemptState.LANDED)} if by else set()
    return [one for one in plan.doc_sync if not one.by or one.by in landed]


async def left_behind(
    repository: Repository, project: Project, plan: Plan, task: Task, sha: str
) -> Sequence[str]:
    """Return the documents of a task that are unchanged since the plan began."""
    return await _unchanged(repository, project, plan, task.scope, sha) if task.origin == ORIGIN else ()


async def due(
    repository: Repository,
    project: Project,
    plan: Plan,
    flags: Sequence[DocSync],
    tasks: Sequence[Task],
    sha: str,
) -> Sequence[str]:
    """Return the documents that keep a plan from being verified."""
    waived = {
        path
        for task in tasks
        if task.origin == ORIGIN and task.status is TaskState.CANCELLED
        for path in task.scope
    }
    wanted = [one for one in documents_of(flags) if one not in waived]
    return await _unchanged(repository, project, plan, wanted, sha) if wanted else ()


async def _unchanged(
    repository: Repository, project: Project, plan: Plan, documents: Sequence[str], sha: str
) -> Sequence[str]:
    paths = await repository.changed(plan.base_sha, sha)
    return unchanged(documents, [inside(project.subfolder, path) for path in paths])


def add_sync(tx: Tx, ids: Ids, plan: Plan, documents: Sequence[str]) -> Task:
    """Give the plan the task that updates documents, and let it run."""
    tasks = tx.find(Task, plan_id=plan.id)
    taken = {*marks_of(tx, plan.id), *(one.key for one in tasks)}
    key = next(name for name in (KEY, *(f"{KEY}-{n}" for n in range(2, len(taken) + 3))) if name not in taken)
    flags = [one for one in flags_of(tx, plan) if set(one.documents) & set(documents)]
    documents = by_registry(documents, plan.policy.business_documents)
    item = PlannedTask(
        key=key,
        title="Bring business documents up to date",
        description=description(packaged("parts/documents"), flags, documents),
        scope=tuple(documents),
        type="docs",
    )
    about = {
        "fix": key,
        "documents": list(documents),
        "reason": f"{key} has to bring documents up to date first",
    }
    plan = move_plan(tx, plan, PlanState.RUNNING, "docs_due", about=about, reason="", completed_at=None)
    return add_task(
        tx, ids, plan, item, position=max((one.position for one in tasks), default=-1) + 1, origin=ORIGIN
    )


def sync_progress(
    tx: Tx, plan: Plan, tasks: Sequence[Task], marks: Mapping[str, Mark]
) -> SyncProgress | None:
    """Return the state of the documents for the source, by the marks of tasks; None if no agent named any."""
    flags = flags_of(tx, plan)
    if not flags:
        return None
    mine = [task for task in tasks if task.origin == ORIGIN]
    states = [marks[task.id] for task in mine]
    # Without its own task, the work itself changed them, or no check has run yet.
    rest = Mark.DONE if plan.completed_at is not None else Mark.OPEN
    open_ = [one for one in states if one is not Mark.DONE]
    return SyncProgress(
        documents=documents_of(flags),
        reason="; ".join(dict.fromkeys(one.reason for one in flags if one.reason)),
        mark=open_[0] if open_ else Mark.DONE if states else rest,
        commit=next((task.landed_sha for task in reversed(mine) if task.landed_sha), None),
    )
