"""What people change in a work source while its plan runs: tasks added, removed, reordered, reworded, ticked by hand.

What was last seen in the file, and what was last told to it, are kept by item. A mark that is neither of these, and not
how the task stands, was set by a person.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from loopwright.core.errors import BadPlan, UserError
from loopwright.core.events import happened
from loopwright.core.model import Attempt, Loop, Outcome, Plan, Project, Task
from loopwright.core.qa import ORIGIN
from loopwright.core.states import LIVE_ATTEMPT, AttemptState, LoopState, PlanState, TaskState
from loopwright.engine import commands
from loopwright.engine.adding import add_task
from loopwright.engine.books import writes
from loopwright.engine.held import held_because
from loopwright.engine.marks import keep_marks, marks_of
from loopwright.engine.moves import cancel_attempt, complete_task, move_task, need
from loopwright.engine.progress import MARKS
from loopwright.engine.source_checks import (
    followed,
    tell_kept,
    tell_not_taken,
    written_beside_an_agent,
)
from loopwright.engine.submit import FIRST, SETTLED
from loopwright.engine.world import World, no_source
from loopwright.ports import Files, Ids, Mark, PlannedTask, PlannedWork, Tx

log = logging.getLogger(__name__)

_TAKEN_IN: Final = (PlanState.DRAFT, PlanState.DISPATCHING, PlanState.RUNNING)
_WORDS: Final = ("title", "description", "criteria", "acceptance", "scope", "priority", "agent", "model")


class Edits:
    """Looks at the sources of running loops and takes in what people changed there."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._seen: dict[str, str] = {}
        """What each loop's files were when they were last looked at: only a change is read."""
        self._told: dict[str, str] = {}
        """Why each loop's files could not be read: said once, not at every look."""

    async def take_in(self) -> bool:
        """Look at every source that may have been changed; say whether one was."""
        if self._world.source is no_source:
            return False
        changed = False
        for project, loop, plan in await self._world.store.read(_watched):
            source = self._world.source(loop.source_kind)
            if source is None or not writes(source) or not Path(project.path).is_dir():
                continue  # on another machine, perhaps: whoever has the checkout looks
            try:
                # Beside everything else: a source may have to ask a program of its own.
                place = Path(project.path) / loop.source_path
                files = await asyncio.to_thread(source.files, place)
                digest = _digest(files)
                if self._seen.get(loop.id) == digest:
                    continue
                self._seen[loop.id] = digest
                work = source.parse(files, loop.source_path)
                _check(work)
                written_at = await asyncio.to_thread(_written_at, place)
            except (UserError, OSError) as broken:
                # A person may be in the middle of it; the next look may find it whole.
                if self._told.get(loop.id) != str(broken):
                    self._told[loop.id] = str(broken)
                    await self._tell(plan, str(broken))
                continue
            self._told.pop(loop.id, None)
            await self._world.store.transact(
                "source.edited",
                partial(_apply, ids=self._world.ids, plan_id=plan.id, work=work, written_at=written_at),
            )
            changed = True
        return changed

    async def _tell(self, plan: Plan, why: str) -> None:
        log.warning("source not read", extra={"plan": plan.id, "why": why})

        def tell(tx: Tx) -> None:
            tx.append(happened("source_unreadable", "loopwright", plan=plan, reason=why[:1000]))

        await self._world.store.transact("source.unreadable", tell)


def _watched(tx: Tx) -> list[tuple[Project, Loop, Plan]]:
    found = []
    for loop in tx.find(Loop, state=LoopState.RUNNING):
        plan = tx.get(Plan, loop.plan_id) if loop.plan_id else None
        if plan is not None and plan.status in _TAKEN_IN:
            found.append((need(tx.get(Project, plan.project_id), "the project"), loop, plan))
    return found


def _written_at(place: Path) -> datetime:
    """Return when a source was last written to, by the one time of a file that nobody can set."""
    latest = place.lstat().st_ctime
    for one in place.rglob("*") if place.is_dir() else ():
        with suppress(FileNotFoundError):  # a program of the source's own may be at work in there
            latest = max(latest, one.lstat().st_ctime)
    return datetime.fromtimestamp(latest, UTC)


def _digest(files: Files) -> str:
    whole = hashlib.sha256()
    for name, content in sorted(files.items()):
        whole.update(f"{name}\0{len(content)}\0".encode() + content)
    return whole.hexdigest()


def _check(work: PlannedWork) -> None:
    keys = [task.key for task in work.tasks]
    if not keys or len(set(keys)) != len(keys):
        raise BadPlan("the source", ("it names no task, or one of them twice",))


def marks_in(work: PlannedWork) -> dict[str, str]:
    """Return how each item of a source is marked."""
    return {task.key: task.mark.value for task in work.tasks}


def _apply(tx: Tx, *, ids: Ids, plan_id: str, work: PlannedWork, written_at: datetime) -> None:
    plan: Plan = need(tx.get(Plan, plan_id), "the plan")
    if plan.status not in _TAKEN_IN:
        return
    known, marks = {task.key: task for task in tx.find(Task, plan_id=plan.id)}, marks_of(tx, plan.id)
    told: list[str] = []
    # What the source decides besides its words, each with what carries it out.
    decided: list[tuple[str, Callable[[], object]]] = []
    for position, item in enumerate(work.tasks):
        task = known.get(item.key)
        if task is None:
            if item.key not in marks and item.mark not in SETTLED:
                add = partial(add_task, tx, ids, plan, item, position=position)
                decided.append((f"{item.key} was added", add))
            continue
        told += _reworded(tx, plan, task, item, position)
        if what := _mark_set(tx, task, item, marks.get(task.key, (Mark.OPEN.value,))):
            decided.append((what, partial(_marked, tx, ids, plan, task, item)))
    named = {item.key for item in work.tasks}
    for key, task in known.items():
        gone = key not in named and key in marks and not task.origin
        if gone and task.status not in _ENDED:
            decided.append((f"{key} was removed", partial(_asked, tx, ids, task, "cancel")))
    left = [what for what, _ in decided]
    if decided and not written_beside_an_agent(tx, plan, written_at):
        for _, carry_out in decided:
            carry_out()
        told, left = [*told, *left], []
    _rewire(tx, plan, work)
    keep_marks(tx, plan.id, _merged(marks, marks_in(work)))
    if told:
        tx.append(happened("source_edited", _person(plan), plan=plan, changes=told[:50]))
    if left:
        tell_not_taken(tx, plan, left)


def _merged(known: Mapping[str, Any], seen: Mapping[str, str]) -> dict[str, Any]:
    return {key: [mark, (known.get(key) or [mark, mark])[1]] for key, mark in seen.items()}


def _person(plan: Plan) -> str:
    return f"the source of {plan.id}"


def _reworded(tx: Tx, plan: Plan, task: Task, item: PlannedTask, position: int) -> list[str]:
    if task.origin:
        return []  # the machine added it: the file has but a part of its words
    if task.status not in (TaskState.COMPLETE, TaskState.CANCELLED):
        # What was under way goes first, whatever its file says of it.
        names = [name for name in _WORDS if (name, task.priority) != ("priority", FIRST)]
        new = followed(tx, plan, task, item, names)
        tell_kept(tx, plan, task, item, new.kept)
        if new.changes:
            tx.update(Task, task.id, **new.changes, position=position, updated_at=tx.now())
            return [f"{task.key}: {', '.join(sorted(new.changes))}"]
    if task.position != position:
        tx.update(Task, task.id, position=position)
    return []


_ENDED: Final = (TaskState.COMPLETE, TaskState.CANCELLED)
_SET: Final = {
    Mark.DONE: ("was ticked by hand", frozenset(TaskState) - {TaskState.COMPLETE}),
    Mark.OPEN: ("was opened again", frozenset({TaskState.ERROR, TaskState.CANCELLED})),
    Mark.SKIPPED: ("is not wanted any more", frozenset(TaskState) - frozenset(_ENDED)),
    Mark.BLOCKED: ("was marked as blocked", frozenset({TaskState.CREATED, TaskState.QUEUED})),
}
"""What a mark that somebody set means, and of tasks in which states."""


def _mark_set(tx: Tx, task: Task, item: PlannedTask, known: Sequence[str]) -> str:
    """Say what somebody decided by the mark of an item; empty when it is as it stands, or was told by us."""
    task = need(tx.get(Task, task.id), "the task")
    expected = {*known, MARKS[task.status].value, Mark.RUNNING.value}
    if item.mark.value in expected or item.mark not in _SET:
        return ""
    words, states = _SET[item.mark]
    return f"{task.key} {words}" if task.status in states else ""


def _marked(tx: Tx, ids: Ids, plan: Plan, task: Task, item: PlannedTask) -> None:
    """Carry out what the mark of an item means."""
    task = need(tx.get(Task, task.id), "the task")
    match item.mark:
        case Mark.DONE:
            _stop_attempt(tx, task)
            complete_task(
                tx,
                task,
                outcome=Outcome.UNVERIFIED,
                landed_sha=None,
                actor=_person(plan),
                reason="ticked by hand: nothing was checked",
            )
        case Mark.OPEN:
            _asked(tx, ids, task, "retry")
        case Mark.SKIPPED:
            _asked(tx, ids, task, "cancel")
        case Mark.BLOCKED:
            _stop_attempt(tx, task)
            reason = held_because(item.reason)
            move_task(tx, task, TaskState.ERROR, "task_failed", _person(plan), about={}, reason=reason)


def _asked(tx: Tx, ids: Ids, task: Task, verb: str) -> None:
    """Ask for what an edit means, as a person would have typed it: it is carried out, or refused, like that."""
    plan = need(tx.get(Plan, task.plan_id), "the plan")
    commands.request(tx, ids, actor=_person(plan), verb=verb, target=task.id, arguments={})


def _stop_attempt(tx: Tx, task: Task) -> None:
    attempt = tx.get(Attempt, task.attempt_id) if task.attempt_id else None
    if attempt is None or attempt.state not in LIVE_ATTEMPT:
        return
    if attempt.state in (AttemptState.QUEUED, AttemptState.WAITING):
        cancel_attempt(tx, attempt, fence=None)
    else:
        tx.update(Attempt, attempt.id, interrupt="cancel")


def _rewire(tx: Tx, plan: Plan, work: PlannedWork) -> None:
    """Let every task that has not begun wait for what the source says now."""
    tasks = {task.key: task for task in tx.find(Task, plan_id=plan.id)}
    waits = {task.id: list(task.depends_on) for task in tasks.values()}
    # A fix that a person does not want is waited for no more, though the file still names it.
    mending = [task for task in tasks.values() if task.origin == ORIGIN]
    declined = {task.id for task in mending if task.status is TaskState.CANCELLED}
    for item in work.tasks:
        task = tasks.get(item.key)
        if (
            task is not None
            and not task.origin
            and task.status in (TaskState.CREATED, TaskState.QUEUED, TaskState.ERROR)
        ):
            said = [tasks[key].id for key in dict.fromkeys(item.depends_on) if key in tasks]
            # What a look at the whole waits for may stand in no file that a person edits.
            mends = [one.id for one in mending if one.id in task.depends_on]
            waits[task.id] = [one for one in dict.fromkeys((*said, *mends)) if one not in declined]
    done = {task.id for task in tasks.values() if task.status is TaskState.COMPLETE}
    for task in tasks.values():
        needs = tuple(waits[task.id])
        followers = tuple(one for one, needed in waits.items() if task.id in needed)
        unmet = sum(one not in done for one in needs)
        if (task.depends_on, task.dependents, task.unmet) != (needs, followers, unmet):
            tx.update(Task, task.id, depends_on=needs, dependents=followers, unmet=unmet)
