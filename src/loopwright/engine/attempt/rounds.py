"""The loop over one prompt: read, run, check, sleep, repeat. Decisions are in `core.policy.rounds`."""

import logging
from pathlib import Path
from typing import Final

from loopwright.core.policy.rounds import ROUND, Stop, carried, is_late, loops, unchanged, words
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Outcome, Plan, Task
from loopwright.core.values.errors import BadPlan, CommitGone
from loopwright.core.values.findings import Verdict, VerdictStatus
from loopwright.core.values.states import TaskState
from loopwright.engine.branch.branch import tip_of
from loopwright.engine.intake.source_checks import followed, tell_kept
from loopwright.engine.rows.added_tasks import add_task
from loopwright.engine.rows.legs import Rows
from loopwright.engine.rows.moves import MACHINE, cancel_attempt, move_task, need
from loopwright.engine.rows.world import World
from loopwright.engine.views.round_views import left
from loopwright.ports import Ids, PlannedTask, Repository, Tx

log = logging.getLogger(__name__)

_WORDS: Final = ("title", "description", "criteria", "acceptance", "scope")


# --- before a round ------------------------------------------------------------------------------------


async def is_over(world: World, rows: Rows, *, fence: int) -> bool:
    """Read the prompt again for a round that is about to begin; return whether it begins too late."""
    if not loops(rows.plan, rows.task):
        return False
    await _read_anew(world, rows)

    def late(tx: Tx) -> bool:
        plan = need(tx.get(Plan, rows.plan.id), "the plan")
        # The first try at a task is decided on in the exact moment in which it may begin.
        if rows.attempt.n == 1 or not is_late(plan, tx.now(), asked=rows.attempt.created_at):
            return False
        cancel_attempt(tx, rows.attempt, fence=fence)
        task = need(tx.get(Task, rows.task.id), "the task")
        reason = words(Stop.TIME, plan)
        about = {"reason": reason, "stopped": Stop.TIME.value}
        outcome = Outcome.NEEDS_HUMAN
        move_task(
            tx,
            task,
            TaskState.ERROR,
            "task_failed",
            about=about,
            reason=f"{reason} {task.reason}",
            outcome=outcome,
        )
        return True

    return await world.store.transact("round.late", late)


async def _read_anew(world: World, rows: Rows) -> None:
    """Read the user's changes to the prompt since the last round; an unreadable prompt stays unchanged."""
    source = world.source(rows.loop.source_kind)
    folder = Path(rows.project.path)
    if source is None or not folder.is_dir():
        return  # on another machine, perhaps
    try:
        work = source.parse(source.files(folder / rows.loop.source_path), rows.loop.source_path)
        if len(work.tasks) != 1:
            raise BadPlan(rows.loop.source_path, ("a loop over a prompt has one task",))
    except (BadPlan, OSError) as broken:
        why = str(broken)[:1000]
        log.warning("prompt not read", extra={"plan": rows.plan.id, "why": why})

        def tell(tx: Tx) -> None:
            tx.append(happened("source_unreadable", MACHINE, plan=rows.plan, reason=why))

        await world.store.transact("round.unreadable", tell)
        return
    item = work.tasks[0]
    if any(getattr(item, name) != getattr(rows.task, name) for name in _WORDS):
        await world.store.transact("round.read", lambda tx: _reword(tx, rows.plan, rows.task.id, item))


def _reword(tx: Tx, plan: Plan, task_id: str, item: PlannedTask) -> None:
    task = need(tx.get(Task, task_id), "the task")
    new = followed(tx, plan, task, item, _WORDS)
    tell_kept(tx, plan, task, item, new)
    if new.changes:
        tx.update(Task, task.id, **new.changes, updated_at=tx.now())
        told = [f"{task.key}: {', '.join(sorted(new.changes))}"]
        tx.append(happened("source_edited", f"the source of {plan.id}", plan=plan, changes=told))


async def start_of(world: World, repository: Repository, rows: Rows) -> str:
    """Return the commit that an attempt starts from: the branch, or the work of an unfinished round."""
    tip = await tip_of(world, repository, rows.plan)
    if not loops(rows.plan, rows.task):
        return tip
    attempts = await world.store.read(lambda tx: tx.find(Attempt, task_id=rows.task.id))
    left = carried(rows.task, attempts, rows.attempt)
    if left is None:
        return tip
    try:
        await repository.tree_of(left)
    except CommitGone:
        return tip  # it was cleaned up
    return left


# --- after a round -------------------------------------------------------------------------------------


async def settles(world: World, plan: Plan, task: Task, attempt: Attempt, verdict: Verdict) -> bool:
    """Return whether a round without changes completes the loop.

    Work of the same prompt has landed before, the checks pass without an excuse, and enough rounds agree.
    """
    if not loops(plan, task) or task.origin != ROUND or verdict.is_excused:
        return False
    if verdict.status not in (VerdictStatus.PASSED, VerdictStatus.UNVERIFIED):
        return False
    attempts = await world.store.read(lambda tx: tx.find(Attempt, task_id=task.id))
    return unchanged(attempts, attempt) >= plan.policy.rounds.unchanged


def begin_next(tx: Tx, ids: Ids, plan: Plan) -> None:
    """Begin the next round, with the prompt as it was last read."""
    tasks = tx.find(Task, plan_id=plan.id, order_by=("position",))
    before = [task for task in tasks if loops(plan, task)]
    newest, taken = before[-1], {task.key for task in tasks}
    number = next(
        n for n in range(len(before) + 1, len(before) + len(tasks) + 2) if _key(before[0], n) not in taken
    )
    item = PlannedTask(
        key=_key(before[0], number),
        title=newest.title,
        description=newest.description,
        criteria=newest.criteria,
        acceptance=newest.acceptance,
        scope=newest.scope,
        priority=newest.priority,
        agent=newest.agent,
        model=newest.model,
        max_attempts=left(newest),
    )
    add_task(tx, ids, plan, item, position=tasks[-1].position + 1, origin=ROUND)


def _key(first: Task, number: int) -> str:
    return f"{first.key}-{number}"


def note_end(tx: Tx, plan_id: str, stop: Stop, *, green: bool) -> None:
    """Record what stopped a loop whose last round landed, or found nothing more to do."""
    plan = need(tx.get(Plan, plan_id), "the plan")
    if plan.completed_at is None:
        plan = tx.update(Plan, plan.id, completed_at=tx.now())
        tx.append(happened("plan_completed", MACHINE, plan=plan))
    reason = words(stop, plan, green=green)
    tx.append(happened("rounds_ended", MACHINE, plan=plan, stopped=stop.value, reason=reason))
