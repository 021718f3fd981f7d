"""The user's edits of a work source while its plan runs: tasks added, removed, reordered, reworded, ticked by hand.

The marks last read from the file, and last written to it, are stored by item. A mark that is neither, and
differs from the task's state, was set by the user.
"""

import asyncio
import hashlib
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from loopwright.core.healing.steps import SPLIT_ORIGIN
from loopwright.core.plans.evaluating import alone, impossible
from loopwright.core.plans.item_identity import identify, unused_key
from loopwright.core.policy import graph
from loopwright.core.policy.order import is_met
from loopwright.core.replies.qa import ORIGIN
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Loop, Outcome, Plan, Project, Task
from loopwright.core.values.errors import BadPlan, UserError
from loopwright.core.values.states import LIVE_ATTEMPT, AttemptState, LoopState, PlanState, TaskState
from loopwright.core.values.wording import to_type
from loopwright.engine.intake.progress import MARKS
from loopwright.engine.intake.source_checks import WORDS, could_be_an_agents, followed, tell_kept
from loopwright.engine.intake.submit import check_part
from loopwright.engine.people import commands
from loopwright.engine.people.served_projects import serves
from loopwright.engine.processes.held_files import keep
from loopwright.engine.rows.added_tasks import FIRST, add_task
from loopwright.engine.rows.moves import cancel_attempt, complete_task, move_plan, move_task, need
from loopwright.engine.rows.order import count_order
from loopwright.engine.rows.plan_states_text import held_because
from loopwright.engine.rows.source_marks import TAKEN_IN, edited, is_new, is_theirs, keep_marks, marks_of
from loopwright.engine.rows.world import World, no_source
from loopwright.ports import Files, Ids, Mark, PlannedTask, PlannedWork, Source, Tx

log = logging.getLogger(__name__)

_DOUBT: Final = "an agent without a sandbox could have written that"
_WAITING: Final = (TaskState.CREATED, TaskState.QUEUED, TaskState.ERROR)
"""Tasks whose text the next attempt reads: they take it from their item."""
_REPLACED: Final = f"its text changed while an agent worked on it, and {_DOUBT}"
_CHANGED: Final = "its text changed after it was done, and nothing did what it says now"


class Edits:
    """Reads the sources of running loops and follows the user's edits."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._seen: dict[str, str] = {}
        """Each loop's files when they were last read: only a change is read."""
        self._told: dict[str, str] = {}
        """Why the files of each plan could not be read: reported once, not at every pass."""

    async def take_in(self, plans: Collection[str] | None = None) -> bool:
        """Read every source that may have changed, or those of some plans; return whether one had."""
        if self._world.source is no_source:
            return False
        changed = False
        for project, loop, plan in await self._world.store.read(self._watched):
            if plans is not None and plan.id not in plans:
                continue
            source = _readable(self._world, project, loop)
            if source is None:
                continue
            try:
                # In parallel: a source may have to start a program.
                files = await asyncio.to_thread(source.files, Path(project.path) / loop.source_path)
                digest = _digest(files)
                if self._seen.get(loop.id) == digest:
                    continue
                work = await _parsed(self._world, source, files, loop.source_path, plan)
            except (UserError, OSError) as broken:
                # The user may be editing it, or the disk is full; the next pass may succeed.
                await self._tell(plan, str(broken))
                continue
            except Exception as defect:  # the boundary: the content of one source must not stop the worker
                if await self._tell(plan, f"internal error: {type(defect).__name__}: {defect}"):
                    log.exception("source not read", extra={"plan": plan.id})
                continue
            self._told.pop(plan.id, None)
            await self._world.store.transact(
                "source.edited", partial(_apply, ids=self._world.ids, plan_id=plan.id, work=work)
            )
            # Only now: a source that could not be read is tried again.
            self._seen[loop.id] = digest
            changed = True
        return changed

    def _watched(self, tx: Tx) -> list[tuple[Project, Loop, Plan]]:
        found = []
        for loop in tx.find(Loop, state=LoopState.RUNNING):
            plan = tx.get(Plan, loop.plan_id) if loop.plan_id else None
            if plan and plan.status in TAKEN_IN and serves(tx, self._world, plan.project_id):
                found.append((need(tx.get(Project, plan.project_id), "the project"), loop, plan))
        return found

    async def _tell(self, plan: Plan, why: str) -> bool:
        """Report why a source is not followed; False if that was reported before."""
        if self._told.get(plan.id) == why:
            return False
        self._told[plan.id] = why
        log.warning("source not read", extra={"plan": plan.id, "why": why})

        def tell(tx: Tx) -> None:
            tx.append(happened("source_unreadable", "loopwright", plan=plan, reason=why[:1000]))

        await self._world.store.transact("source.unreadable", tell)
        return True


async def read_at_end(world: World, project: Project, plan: Plan) -> PlannedWork | None:
    """Read a plan's source once more before the plan ends; None if there is nothing to read, or it is broken.

    A broken source does not hold up the end: its content then counts as changed afterwards.
    """
    loop: Loop = await world.store.read(lambda tx: need(tx.get(Loop, plan.loop_id), "the loop"))
    source = _readable(world, project, loop) if world.source is not no_source else None
    if source is None or loop.plan_id != plan.id:
        return None
    try:
        files = await asyncio.to_thread(source.files, Path(project.path) / loop.source_path)
        return await _parsed(world, source, files, loop.source_path, plan)
    except (UserError, OSError) as broken:
        log.warning("source not read", extra={"plan": plan.id, "why": str(broken)})
    except Exception:  # the boundary: a defect in a reader must not stop the worker
        log.exception("source not read", extra={"plan": plan.id})
    return None


def follow_at_end(tx: Tx, ids: Ids, plan: Plan, work: PlannedWork) -> bool:
    """Follow the user's edits since the plan had nothing left to do; return whether they add work.

    It runs in the transaction that ends the plan: the file as just read is compared with the rows.
    """
    told, wanted = _follow_keys(tx, ids, plan, work)
    tasks = {task.key: task for task in tx.find(Task, plan_id=plan.id)}
    states = {key: MARKS[task.status] for key, task in tasks.items()}
    items = edited(wanted, marks_of(tx, plan.id), states)
    if not items and not told:
        return False
    more = any(item.key not in tasks or _is_opened(item, tasks[item.key]) for item in items)
    if more:
        about = {"reason": "its source was changed while gate:all ran"}
        plan = move_plan(tx, plan, PlanState.RUNNING, "plan_reopened", about=about, reason="")
    _follow(tx, ids, plan, work, wanted, told)
    return more


def _is_opened(item: PlannedTask, task: Task) -> bool:
    """Return whether a mark gives a settled task more to do; landed work is removed by a command alone."""
    return item.mark is Mark.OPEN and (
        task.status is not TaskState.COMPLETE
        or (task.landed_sha is None and task.outcome is Outcome.UNVERIFIED)
    )


def _readable(world: World, project: Project, loop: Loop) -> Source | None:
    """Return the reader of a loop's source; None if it has no place for marks, or is perhaps on another machine."""
    source = world.source(loop.source_kind)
    return source if source is not None and source.has_status and Path(project.path).is_dir() else None


async def _parsed(world: World, source: Source, files: Files, name: str, plan: Plan) -> PlannedWork:
    work = source.parse(files, name)
    check_part(plan, name, work)
    if problems := impossible(work.tasks):
        raise BadPlan(name, problems)
    # Before a row names them: a gate may need them at once.
    if work.held_files:
        await asyncio.to_thread(keep, world.paths, work.held_files)
    return work


def _digest(files: Files) -> str:
    whole = hashlib.sha256()
    for name, content in sorted(files.items()):
        whole.update(f"{name}\0{len(content)}\0".encode() + content)
    return whole.hexdigest()


def marks_in(work: PlannedWork) -> dict[str, str]:
    """Return the mark of each item of a source."""
    return {task.key: task.mark.value for task in work.tasks}


def _apply(tx: Tx, *, ids: Ids, plan_id: str, work: PlannedWork) -> None:
    plan = need(tx.get(Plan, plan_id), "the plan")
    if plan.status in TAKEN_IN:
        told, wanted = _follow_keys(tx, ids, plan, work)
        _follow(tx, ids, plan, work, wanted, told)


def _follow_keys(
    tx: Tx, ids: Ids, plan: Plan, work: PlannedWork
) -> tuple[list[str], tuple[PlannedTask, ...]]:
    """Give each task the current key of its item; return what changed, and the items.

    A task whose key belongs to another item now gets a key that the source does not use, so nothing of it is
    written to that item. The other item becomes a new task. If it still has the tick of the old text, it
    waits for the user.
    """
    tasks = {task.key: task for task in tx.find(Task, plan_id=plan.id)}
    titles = {key: task.title for key, task in tasks.items() if not task.origin}
    items = {item.key: item.title for item in work.tasks if item.key not in tasks or item.key in titles}
    begun = {key for key in titles if tasks[key].status not in _WAITING}
    found = identify(titles, items, begun)
    if not found.moved and not found.displaced:
        return [], work.tasks
    marks = dict(marks_of(tx, plan.id))
    used = {*tasks, *items, *marks}
    told: list[str] = []
    new_marks = {key: known for key, known in marks.items() if key not in {*found.moved, *found.displaced}}
    for old, new in found.moved.items():
        tx.update(Task, tasks[old].id, key=new, updated_at=tx.now())
        new_marks[new] = marks.get(old, [Mark.OPEN.value, Mark.OPEN.value])
        told.append(f"{old} is {new} now")
    for key in found.displaced:
        name = unused_key(key, used)
        used.add(name)
        task = tx.update(Task, tasks[key].id, key=name, updated_at=tx.now())
        if task.status is TaskState.COMPLETE:
            told.append(f"{key} is another item now: what was done for {tasks[key].title!r} is {name}")
        told += _dropped(tx, ids, task)
    keep_marks(tx, plan.id, new_marks)
    replaced = [tasks[key] for key in found.displaced if key not in new_marks]
    return told, _held(tx, plan, work, replaced, marks)


def _held(
    tx: Tx, plan: Plan, work: PlannedWork, replaced: Sequence[Task], marks: Mapping[str, Any]
) -> tuple[PlannedTask, ...]:
    """Return the items; a replacement of another item waits for the user if its text may not mean what it seems to.

    It may have the tick of the old text. Or the agent at work on the old text may have written an easier one.
    """
    ticked = {task.key for task in replaced if Mark.DONE.value in marks.get(task.key, ())}
    at_work = {task.key for task in replaced if task.status not in (TaskState.COMPLETE, TaskState.CANCELLED)}
    doubted = at_work if could_be_an_agents(tx, plan) else set()
    why = {
        item.key: _REPLACED if item.key in doubted else _CHANGED
        for item in work.tasks
        if item.key in doubted or (item.key in ticked and item.mark is Mark.DONE)
    }
    return tuple(
        replace(item, mark=Mark.BLOCKED, reason=why[item.key]) if item.key in why else item
        for item in work.tasks
    )


def _follow(
    tx: Tx, ids: Ids, plan: Plan, work: PlannedWork, wanted: Sequence[PlannedTask], told: list[str]
) -> None:
    known, marks = {task.key: task for task in tx.find(Task, plan_id=plan.id)}, marks_of(tx, plan.id)
    decided: dict[str, str] = {}
    for position, item in enumerate(wanted):
        task = known.get(item.key)
        if task is None:
            if is_new(item.mark, marks.get(item.key)):
                against = alone(item)
                known[item.key] = add_task(tx, ids, plan, item, position=position, against=against)
                how = "was opened again" if item.key in marks else "was added"
                told.append("; ".join((f"{item.key} {how}", *(one.text for one in against))))
            continue
        told += _reworded(tx, plan, task, item, position)
        if item.manual and not task.manual and task.status in (TaskState.CREATED, TaskState.QUEUED):
            _stop_attempt(tx, task)
            tx.update(Task, task.id, manual=True, acceptance=(), held_out=(), attempt_id=None)
            told.append(f"{item.key} is a manual step now")
        marked = _marked(tx, ids, plan, task, item, marks.get(task.key))
        if marked:
            decided[item.key] = item.mark.value
        told += marked
    named = {item.key for item in work.tasks}
    for key, task in known.items():
        if key not in named and key in marks and not task.origin:
            told += _dropped(tx, ids, task)
    _rewire(tx, plan, work)
    keep_marks(tx, plan.id, _merged(marks, marks_in(work), decided))
    if told:
        # It is followed anyway: ticked tasks are unverified, removed ones are cancelled, and both are reported.
        doubt = _DOUBT if could_be_an_agents(tx, plan) else ""
        tx.append(happened("source_edited", _person(plan), plan=plan, changes=told[:50], doubt=doubt))


def _merged(known: Mapping[str, Any], seen: Mapping[str, str], decided: Mapping[str, str]) -> dict[str, Any]:
    """Return the marks to store; a written mark from before the user's decision is no longer expected."""
    told = {**{key: marks[1] for key, marks in known.items()}, **decided}
    return {key: [mark, told.get(key, mark)] for key, mark in seen.items()}


def _person(plan: Plan) -> str:
    return f"the source of {plan.id}"


def _reworded(tx: Tx, plan: Plan, task: Task, item: PlannedTask, position: int) -> list[str]:
    if task.origin:
        return []  # Loopwright added it: the file has only a part of its text
    if task.status not in (TaskState.COMPLETE, TaskState.CANCELLED):
        # Work in progress goes first, whatever its file says.
        names = [name for name in WORDS if (name, task.priority) != ("priority", FIRST)]
        new = followed(tx, plan, task, item, names)
        tell_kept(tx, plan, task, item, new)
        if new.changes:
            tx.update(Task, task.id, **new.changes, position=position, updated_at=tx.now())
            # Its complexity follows from its other fields, if the file does not set it.
            said = sorted(name for name in new.changes if name != "complexity" or item.complexity)
            return [f"{task.key}: {', '.join(said)}"] if said else []
    if task.position != position:
        tx.update(Task, task.id, position=position)
    return _renamed(tx, plan, task, item)


def _renamed(tx: Tx, plan: Plan, task: Task, item: PlannedTask) -> list[str]:
    """Record once that a settled task has a slightly different title now."""
    line = f"{task.key} is called {item.title!r} now, and stays as it is"
    if task.title == item.title or any(
        line in one.payload["changes"] for one in tx.events(plan=plan.id, types=("source_edited",))
    ):
        return []
    return [line]


def _marked(
    tx: Tx, ids: Ids, plan: Plan, task: Task, item: PlannedTask, known: Sequence[str] | None
) -> list[str]:
    task = need(tx.get(Task, task.id), "the task")
    if not is_theirs(item.mark, known, MARKS[task.status]):
        return []
    match item.mark:
        case Mark.DONE if task.status is not TaskState.COMPLETE:
            _stop_attempt(tx, task)
            complete_task(
                tx,
                task,
                outcome=Outcome.UNVERIFIED,
                landed_sha=None,
                actor=_person(plan),
                reason="ticked by hand: nothing was checked",
            )
            return [f"{task.key} was ticked by hand"]
        case Mark.OPEN if task.status is TaskState.COMPLETE:
            return _unticked(tx, ids, plan, task)
        case Mark.OPEN if task.status in (TaskState.ERROR, TaskState.CANCELLED):
            if against := alone(task):
                why = "; ".join(one.text for one in against)
                return _not_followed(tx, plan, task, why, "name a check that can fail, then open it again")
            return _asked(tx, ids, task, "retry", "was opened again")
        case Mark.SKIPPED if task.status not in (TaskState.COMPLETE, TaskState.CANCELLED):
            return _asked(tx, ids, task, "cancel", "is not wanted any more")
        case Mark.BLOCKED if task.status in (TaskState.CREATED, TaskState.QUEUED):
            _stop_attempt(tx, task)
            reason = held_because(item.reason)
            move_task(tx, task, TaskState.ERROR, "task_failed", _person(plan), about={}, reason=reason)
            return [f"{task.key} was marked as blocked"]
    return []


def _unticked(tx: Tx, ids: Ids, plan: Plan, task: Task) -> list[str]:
    """Reopen tasks that only a tick had settled; landed work is removed by a command alone.

    An editor that saves what it read before the work landed also unticks it: that must not undo hours of
    work.
    """
    ticked = task.landed_sha is None and task.outcome is Outcome.UNVERIFIED
    later = tx.find(Task, id=list(task.dependents), status=TaskState.COMPLETE, limit=1)
    if ticked and not later:
        return _asked(tx, ids, task, "rollback", "was opened again")
    hint = f"`{to_type('rollback', task.key)}` takes it back and does it again"
    return _not_followed(tx, plan, task, "it is done, and stays so", hint)


def _not_followed(tx: Tx, plan: Plan, task: Task, why: str, hint: str) -> list[str]:
    reason = f"{task.key} was opened again, but {why}"
    tx.append(happened("source_not_followed", _person(plan), plan=plan, task=task, reason=reason, hint=hint))
    return []


def _dropped(tx: Tx, ids: Ids, task: Task) -> list[str]:
    if task.status in (TaskState.COMPLETE, TaskState.CANCELLED):
        return []
    return _asked(tx, ids, task, "cancel", "was removed")


def _asked(tx: Tx, ids: Ids, task: Task, verb: str, what: str) -> list[str]:
    """Request what an edit means, like a typed command: it is carried out, or refused, in the same way."""
    plan = need(tx.get(Plan, task.plan_id), "the plan")
    commands.request(tx, ids, actor=_person(plan), verb=verb, target=task.id, arguments={})
    return [f"{task.key} {what}"]


def _stop_attempt(tx: Tx, task: Task) -> None:
    attempt = tx.get(Attempt, task.attempt_id) if task.attempt_id else None
    if attempt is None or attempt.state not in LIVE_ATTEMPT:
        return
    if attempt.state in (AttemptState.QUEUED, AttemptState.WAITING):
        cancel_attempt(tx, attempt, fence=None)
    else:
        tx.update(Attempt, attempt.id, interrupt="cancel")


def _rewire(tx: Tx, plan: Plan, work: PlannedWork) -> None:
    """Give every task that has not begun the dependencies in the source."""
    tasks = {task.key: task for task in tx.find(Task, plan_id=plan.id)}
    waits = {task.id: list(task.depends_on) for task in tasks.values()}
    # A fix that the user does not want is no longer waited for, though the file still names it.
    fixes = [task for task in tasks.values() if task.origin in (ORIGIN, SPLIT_ORIGIN)]
    declined = {task.id for task in fixes if task.status is TaskState.CANCELLED}
    for item in work.tasks:
        task = tasks.get(item.key)
        if (
            task is not None
            and not task.origin
            and task.status in (TaskState.CREATED, TaskState.QUEUED, TaskState.ERROR)
        ):
            said = [tasks[key].id for key in dict.fromkeys(item.depends_on) if key in tasks]
            # Dependencies of a QA review or a split task may not be in the file that the user edits.
            needed = [one.id for one in fixes if one.id in task.depends_on]
            waits[task.id] = [one for one in dict.fromkeys((*said, *needed)) if one not in declined]
    done = {task.id for task in tasks.values() if is_met(task)}
    waiting: dict[str, list[str]] = {}
    for task_id, needed in waits.items():
        for one in dict.fromkeys(needed):
            waiting.setdefault(one, []).append(task_id)
    for task in tasks.values():
        needs, followers = tuple(waits[task.id]), tuple(waiting.get(task.id, ()))
        unmet = sum(one not in done for one in needs)
        if (task.depends_on, task.dependents, task.unmet) != (needs, followers, unmet):
            tx.update(Task, task.id, depends_on=needs, dependents=followers, unmet=unmet)
    _reorder(tx, plan, work, tasks, waits)


def _reorder(
    tx: Tx, plan: Plan, work: PlannedWork, tasks: Mapping[str, Task], waits: Mapping[str, Sequence[str]]
) -> None:
    """Give the tasks the order of the source."""
    named = {item.key: item.after for item in work.tasks}
    among = graph.order_among(tasks, named)
    order, _ = graph.ordered(
        waits, {task.id: [tasks[one].id for one in among[key]] for key, task in tasks.items()}
    )
    followers = graph.dependents(order)
    changed = False
    for task in tasks.values():
        wired = (order[task.id], tuple(followers[task.id]))
        if (task.after, task.followers) != wired:
            tx.update(Task, task.id, after=wired[0], followers=wired[1])
            changed = True
    if changed:
        count_order(tx, plan.id)
