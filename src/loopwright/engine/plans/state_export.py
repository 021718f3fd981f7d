"""Write the rows of a project into its state directory: a durable outbox with its cursor in the database."""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from loopwright.core.receipts.model import render
from loopwright.core.receipts.script import check_script
from loopwright.core.replies.discoveries import Discovery
from loopwright.core.rows.events import RecordedEvent
from loopwright.core.rows.model import (
    RESTORED,
    Attempt,
    Command,
    Cursor,
    Finish,
    Loop,
    Plan,
    Project,
    Review,
    Run,
    Task,
    VerdictRecord,
)
from loopwright.core.rows.source_rows import SourceDebt, SourceMarks
from loopwright.core.rows.state_files import session_document, session_file
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.documents import document
from loopwright.core.values.errors import LoopwrightError, StaleVersion, StoreUnavailable
from loopwright.core.values.states import ENDED_PLAN, ENDED_RUN, LIVE_ATTEMPT, RunState
from loopwright.engine.branch.receipt import plan_receipt
from loopwright.engine.rows.projects import state_place
from loopwright.engine.rows.world import World
from loopwright.engine.rows.writeback_debts import TOLD_OF, Untold, answer, debts, is_settled, note_outcome
from loopwright.engine.sources.source_heartbeats import ENDS, last_words
from loopwright.engine.sources.status_writeback import tell
from loopwright.ports import StateFiles, Tx

log = logging.getLogger(__name__)

_ENDS: Final = ("plan_verified", "plan_failed")
_ABOUT_PROJECT: Final = frozenset(
    {"loop_started", "loop_paused", "loop_stopped", "loop_completed", "loop_failed", "plan_created"}
)
"""Events of a plan that change a loop of its project."""
_OPEN_RUN: Final = frozenset(RunState) - ENDED_RUN
_CURSOR: Final = "state-files"
_PAGE: Final = 5_000
"""How many events are taken at once: for each page their plans are written again as a whole."""
_REST_S: Final = 5.0
_LONGEST_REST_S: Final = 300.0
"""The longest pause before a failed write-back is tried again. The pause doubles each time."""

Page = tuple[int | None, list[RecordedEvent]]
"""The position of the cursor, None if there is none yet, and the events after it."""


class Outbox:
    """Writes what happened since the cursor, then moves the cursor: a kill between the two repeats harmlessly."""

    def __init__(self, world: World, files: StateFiles) -> None:
        self._world = world
        self._files = files
        self._telling: dict[str, asyncio.Lock] = {}
        """Held while status is written to a plan's source: new status and debts are not written at the same time."""
        self._resting: dict[str, tuple[float, float]] = {}
        """When write-back to a failing source is tried again, by the monotonic clock, and after which pause."""

    async def catch_up(self) -> None:
        """Bring every project's state directory up to date with what happened until now."""
        owed, there, (done, events) = await self._world.store.read(self._left)
        for project_id in there:
            if await self._pay(project_id, owed[project_id]):
                del owed[project_id]
        if there:
            done, events = await self._world.store.read(_next_page)
        while events:
            # Apart from the files, so that neither blocks the other, and before the cursor moves: then the status of
            # every source behind it is written or is a debt. Events about write-back do not count: a tracker that
            # refuses with a different message each time would never get a pause.
            news = [event for event in events if event.type not in TOLD_OF]
            for plan_id in await self._world.store.read(partial(_plans, events=news)):
                await self._tell(plan_id)
            for project_id in _distinct(event.project for event in events):
                mine = [one for one in events if one.project == project_id]
                # In order or not at all: later events in the file would hide that earlier ones are missing.
                if project_id not in owed and not await self._export(project_id, mine):
                    owed[project_id] = mine[0].n - 1
            last = events[-1].n
            await self._world.store.transact("outbox", partial(_move, done=done, last=last, owed=dict(owed)))
            if len(events) < _PAGE:
                return  # newer events are for the next pass: this could continue forever
            done, events = await self._world.store.read(_next_page)

    async def _pay(self, project_id: str, since: int) -> bool:
        """Write what could not be written before; one failing project never holds up the others."""
        while events := await self._world.store.read(partial(_after, since=since)):
            mine = [one for one in events if one.project == project_id]
            if mine and not await self._export(project_id, mine):
                return False
            since = events[-1].n
        await self._world.store.transact("outbox.paid", lambda tx: tx.delete(Cursor, _debt(project_id)))
        return True

    @staticmethod
    def _left(tx: Tx) -> tuple[dict[str, int], list[str], Page]:
        """Return all that is left to write: debts, restored folders, and new events."""
        if tx.get(Cursor, RESTORED) is not None:
            return (
                {},
                [],
                (None, []),
            )  # the files may be newer than the rows: nothing is written before both are compared
        owed = _owed(tx)
        return owed, [project_id for project_id in owed if _where(tx, project_id)], _next_page(tx)

    async def _export(self, project_id: str, events: list[RecordedEvent]) -> bool:
        """Write what these events changed; False if the disk or the folder refused."""
        where = await self._world.store.read(lambda tx: _where(tx, project_id))
        if where is None:
            return False  # the repository was moved or is on another machine: the rows are the truth anyway
        try:
            # Outside the event loop: each file is synced to the disk, and a large plan has much to write.
            await self._files.beside(lambda: self._files.append_events(where, events))
            if any(event.type in _ABOUT_PROJECT or event.plan is None for event in events):
                whole = await self._world.store.read(partial(_whole_project, project_id=project_id))
                await self._files.beside(partial(self._files.put, where, "projects", project_id, whole))
            for plan_id in _distinct(event.plan for event in events):
                await self._export_plan(where, plan_id)
            for loop_id in _distinct(event.loop for event in events if event.type in ENDS):
                # Once more, since a heartbeat exists only for running loops: otherwise it would say "running" forever.
                if health := await self._world.store.read(partial(last_words, loop_id=loop_id)):
                    await self._files.beside(
                        partial(self._files.put, where, "health", loop_id, health, durably=False)
                    )
            runs, verdicts = await self._world.store.read(lambda tx: _runs(tx, events))
            sessions = await self._world.store.read(partial(_sessions, runs=runs))

            def write() -> None:
                for run in runs:
                    self._files.put(where, "runs", run.id, document(run))
                for verdict in verdicts:
                    self._files.put(where, "verdicts", verdict.id, document(verdict))
                for name, session in sessions:
                    self._files.put(where, "sessions", name, session, durably=False)

            await self._files.beside(write)
        except StoreUnavailable:
            raise
        except (LoopwrightError, OSError, ValueError, KeyError) as trouble:
            # The user's disk is full, the checkout read-only or no repository any more, or a file was damaged:
            # work continues, and the next time tries again.
            log.warning("state files not written", extra={"project": str(where), "why": str(trouble)})
            return False
        except Exception:  # the boundary: one project's files must not stop the work of all others
            log.exception("state files not written", extra={"project": str(where)})
            return False
        return True

    async def pay_debts(self) -> None:
        """Write back owed status again; one failing source never holds up the others."""
        due = [one for one in await self._world.store.read(_payable) if self._is_due(one)]
        while due:
            for debt in due:
                await self._pay_debt(debt)
            # Those that were requested in the meantime.
            due = [one for one in await self._world.store.read(_payable) if one.asked_at is not None]

    def _is_due(self, debt: SourceDebt) -> bool:
        again_at, _ = self._resting.get(debt.id, (0.0, 0.0))
        return debt.asked_at is not None or self._world.clock.monotonic() >= again_at

    async def _pay_debt(self, debt: SourceDebt) -> None:
        try:
            is_paid = await self._tell(debt.id)
        except StoreUnavailable:
            raise
        except (LoopwrightError, OSError) as trouble:
            log.warning("status not written back", extra={"plan": debt.id, "why": str(trouble)})
            is_paid = False
        _, rest_s = self._resting.pop(debt.id, (0.0, _REST_S / 2))
        if not is_paid:
            rest_s = min(2 * rest_s, _LONGEST_REST_S)
            self._resting[debt.id] = (self._world.clock.monotonic() + rest_s, rest_s)
        if debt.asked_at is not None:
            await self._world.store.transact(
                "source.tried", partial(answer, plan_id=debt.id, asked_at=debt.asked_at)
            )

    async def _tell(self, plan_id: str) -> bool:
        """Write the plan's status to its source; a failure is a debt, and an event for each new reason."""
        async with self._telling.setdefault(plan_id, asyncio.Lock()):
            left = await self._left_untold(plan_id)
            store = self._world.store
            if not await store.read(partial(is_settled, plan_id=plan_id, left=left)):
                await store.transact("source.debt", partial(note_outcome, plan_id=plan_id, left=left))
            return left is None

    async def _left_untold(self, plan_id: str) -> Untold | None:
        """Write to a source; every problem is a reason, unless the database itself is unreachable."""
        try:
            try:
                return await tell(self._world, plan_id)
            except StaleVersion:
                # Another process changed a row at this exact moment. Usually it has finished by now.
                return await tell(self._world, plan_id)
        except StoreUnavailable:
            raise
        except (LoopwrightError, OSError) as trouble:
            log.warning("status not written back", extra={"plan": plan_id, "why": str(trouble)})
            return Untold(reason=str(trouble))
        except Exception as defect:  # the boundary: the content of one source must not stop the worker
            log.exception("status not written back", extra={"plan": plan_id})
            return Untold(reason=f"internal error: {type(defect).__name__}: {defect}")

    async def _export_plan(self, where: Path, plan_id: str) -> None:
        loaded = await self._world.store.read(lambda tx: _whole(tx, plan_id))
        if loaded is None:
            return
        plan, ends, whole = loaded
        receipt = await plan_receipt(self._world, plan.id) if plan.status in ENDED_PLAN or ends else None

        def write() -> None:
            self._files.put(where, "plans", plan.id, whole)
            for end in ends:
                if end.receipt:
                    # The commit's trailer has the hash of this file: anyone can check it with sha256sum.
                    self._files.put_text(where, "receipts", f"{end.id}.json", end.receipt)
            if receipt is not None:
                text, script = render(receipt), f"{plan.id}.sh"
                self._files.put_text(where, "receipts", f"{plan.id}.json", text)
                self._files.put_text(where, "receipts", script, check_script(receipt, text, name=script))

        await self._files.beside(write)


def _whole(tx: Tx, plan_id: str) -> tuple[Plan, list[Finish], dict[str, Any]] | None:
    """Return a plan with all that is needed to restore its rows; runs and verdicts are separate files."""
    plan = tx.get(Plan, plan_id)
    if plan is None:
        return None
    project, loop = tx.get(Project, plan.project_id), tx.get(Loop, plan.loop_id)
    tasks = tx.find(Task, plan_id=plan_id, order_by=("position",))
    attempts, ends = tx.find(Attempt, plan_id=plan_id), tx.find(Finish, plan_id=plan_id)
    questions = tx.find(Question, plan_id=plan_id)
    current = [one.run_id for one in attempts if one.run_id and one.state in LIVE_ATTEMPT]
    subjects = [plan_id, plan.loop_id]
    subjects += [one.id for rows in (tasks, attempts, questions) for one in rows]
    more: dict[str, Sequence[Any]] = {
        "tasks": tasks,
        "attempts": attempts,
        # As they were at the same moment as the attempts that continue; all others are separate files.
        "runs": [*tx.find(Run, plan_id=plan_id, state=_OPEN_RUN), *tx.find(Run, id=current, state=ENDED_RUN)],
        "reviews": tx.find(Review, plan_id=plan_id),
        "questions": questions,
        "discoveries": tx.find(Discovery, plan_id=plan_id),
        "commands": tx.find(Command, target=subjects),
    }
    marks, debt = tx.get(SourceMarks, plan_id), tx.get(SourceDebt, plan_id)
    whole = {
        **_without_environment(plan),
        "event": tx.last_event(),
        "project": _without_environment(project) if project else None,
        "loop": document(loop) if loop else None,
        **{name: [document(one) for one in rows] for name, rows in more.items()},
        "source_marks": document(marks) if marks else None,
        "source_debt": document(debt) if debt else None,
        # Their receipts are separate files.
        "finishes": [{**document(end), "receipt": f"receipts/{end.id}.json"} for end in ends],
    }
    return plan, ends, whole


def _without_environment(row: Plan | Project) -> dict[str, Any]:
    """Return a row as a document; the environment describes this machine, and these files may be committed."""
    return {name: value for name, value in document(row).items() if name != "environment"}


def _whole_project(tx: Tx, *, project_id: str) -> dict[str, Any]:
    """Return a project with its loops, which may have no plan."""
    project = tx.get(Project, project_id)
    assert project is not None, "a project is never deleted"
    loops = tx.find(Loop, project_id=project_id, order_by=("created_at",))
    return {**_without_environment(project), "loops": [document(one) for one in loops]}


def _sessions(tx: Tx, *, runs: Sequence[Run]) -> list[tuple[str, dict[str, Any]]]:
    """Return the conversations with agents that these runs belong to, each with the name of its file."""
    found = []
    for ref, attempt_id in dict.fromkeys((one.session_ref, one.attempt_id) for one in runs):
        attempt = tx.get(Attempt, attempt_id) if attempt_id else None
        plan = tx.get(Plan, attempt.plan_id) if attempt is not None else None
        if ref is None or attempt is None or plan is None:
            continue
        parts = tx.find(Run, attempt_id=attempt_id, order_by=("created_at",))
        session = session_document(plan.project_id, [one for one in parts if one.session_ref == ref])
        found.append((session_file(ref), session))
    return found


def is_exported(tx: Tx, plan_id: str) -> bool:
    """Return whether a plan's end was written back to its source, or is a debt; true while it has not ended."""
    ended = tx.events(plan=plan_id, types=(*_ENDS, "plan_cancelled"))
    cursor = tx.get(Cursor, _CURSOR)
    return not ended or (cursor is not None and cursor.n >= ended[-1].n)


def _next_page(tx: Tx) -> Page:
    cursor = tx.get(Cursor, _CURSOR)
    return (cursor.n if cursor else None), tx.events(after=cursor.n if cursor else 0, limit=_PAGE)


def _where(tx: Tx, project_id: str) -> Path | None:
    project = tx.get(Project, project_id)
    return state_place(project) if project is not None and Path(project.path).is_dir() else None


def _payable(tx: Tx) -> list[SourceDebt]:
    """Return the write-back debts whose folders exist: first those that a command waits for."""
    owed = debts(tx)
    plans = tx.find(Plan, id=[one.id for one in owed])
    there = {plan.id for plan in plans if _where(tx, plan.project_id)}
    return sorted((one for one in owed if one.id in there), key=lambda one: one.asked_at is None)


def _after(tx: Tx, *, since: int) -> list[RecordedEvent]:
    return tx.events(after=since, limit=_PAGE)


def _debt(project_id: str) -> str:
    return f"{_CURSOR}:{project_id}"


def _owed(tx: Tx) -> dict[str, int]:
    """Return the projects whose files are behind, with the number of the last exported event."""
    start = _debt("")
    return {one.id.removeprefix(start): one.n for one in tx.find(Cursor) if one.id.startswith(start)}


def _move(tx: Tx, *, done: int | None, last: int, owed: Mapping[str, int]) -> None:
    for project_id in owed.keys() - _owed(tx).keys():
        tx.insert(Cursor(id=_debt(project_id), n=owed[project_id]))
    if done is None:
        tx.insert(Cursor(id=_CURSOR, n=last))
    else:
        tx.update(Cursor, _CURSOR, expect={"n": done}, n=last)


def _runs(tx: Tx, events: list[RecordedEvent]) -> tuple[list[Run], list[VerdictRecord]]:
    """Return the runs that events are about, with their verdicts; with a plan's end also its last run."""
    ended = _distinct(event.plan for event in events if event.type in _ENDS)
    plans = tx.find(Plan, id=ended) if ended else []
    ids = _distinct([*(event.run for event in events), *(plan.verify_run_id for plan in plans)])
    return (tx.find(Run, id=ids), tx.find(VerdictRecord, run_id=ids)) if ids else ([], [])


def _plans(tx: Tx, events: list[RecordedEvent]) -> list[str]:
    """Return the plans that events are about: an event of a loop alone is about its current plan."""
    ids = _distinct(event.loop for event in events if event.plan is None)
    loops = tx.find(Loop, id=ids) if ids else []
    return _distinct([*(event.plan for event in events), *(loop.plan_id for loop in loops)])


def _distinct(ids: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(one for one in ids if one))
