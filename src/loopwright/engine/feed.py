"""Carries the rows of a project into its state directory: a durable outbox with its cursor in the database."""

import logging
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from loopwright.core.documents import document
from loopwright.core.model import Attempt, Cursor, Loop, Plan, Project, RecordedEvent, Run, Task
from loopwright.core.states import ENDED_PLAN
from loopwright.engine.receipt import plan_receipt
from loopwright.engine.world import World
from loopwright.ports import StateFiles, Tx

log = logging.getLogger(__name__)

_CURSOR = "state-files"
_PAGE = 500


class Outbox:
    """Writes what happened since the cursor, then moves the cursor: a kill between the two repeats harmlessly."""

    def __init__(self, world: World, files: StateFiles) -> None:
        self._world = world
        self._files = files

    async def catch_up(self) -> None:
        """Bring every project's state directory up to date."""
        while True:
            done, events = await self._world.store.read(self._next_page)
            if not events:
                return
            for project_id in dict.fromkeys(event.project for event in events if event.project):
                await self._export(project_id, [one for one in events if one.project == project_id])
            last = events[-1].n
            await self._world.store.transact("outbox", partial(_move, done=done, last=last))

    def _next_page(self, tx: Tx) -> tuple[int | None, list[RecordedEvent]]:
        cursor = tx.get(Cursor, _CURSOR)
        return (cursor.n if cursor else None), tx.events(after=cursor.n if cursor else 0, limit=_PAGE)

    async def _export(self, project_id: str, events: list[RecordedEvent]) -> None:
        project = await self._world.store.read(lambda tx: tx.get(Project, project_id))
        if project is None or not Path(project.path).is_dir():
            return  # the repository was moved or is on another machine: the rows are the truth anyway
        where = Path(project.path)
        try:
            self._files.append_events(where, events)
            for plan_id in _distinct(event.plan for event in events):
                await self._export_plan(where, plan_id)
            for run_id in _distinct(event.run for event in events):
                run = await self._world.store.read(partial(_run, run_id=run_id))
                if run is not None:
                    self._files.put(where, "runs", run.id, document(run))
        except OSError as trouble:
            # The user's disk is full or the checkout read-only: work goes on, and the next page tries again.
            log.warning("state files not written", extra={"project": project.path, "why": str(trouble)})

    async def _export_plan(self, where: Path, plan_id: str) -> None:
        def load(tx: Tx) -> tuple[Plan, Loop | None, list[Task], list[Attempt]] | None:
            plan = tx.get(Plan, plan_id)
            if plan is None:
                return None
            tasks = tx.find(Task, plan_id=plan_id, order_by=("position",))
            return plan, tx.get(Loop, plan.loop_id), tasks, tx.find(Attempt, plan_id=plan_id)

        loaded = await self._world.store.read(load)
        if loaded is None:
            return
        plan, loop, tasks, attempts = loaded
        whole = {
            **document(plan),
            "loop": document(loop) if loop else None,
            "tasks": [document(task) for task in tasks],
            "attempts": [document(attempt) for attempt in attempts],
        }
        self._files.put(where, "plans", plan.id, whole)
        if plan.status in ENDED_PLAN:
            receipt = await plan_receipt(self._world, plan.id)
            self._files.put(where, "receipts", plan.id, receipt)


def _run(tx: Tx, *, run_id: str) -> Run | None:
    return tx.get(Run, run_id)


def _move(tx: Tx, *, done: int | None, last: int) -> None:
    if done is None:
        tx.insert(Cursor(id=_CURSOR, n=last))
    else:
        tx.update(Cursor, _CURSOR, expect={"n": done}, n=last)


def _distinct(ids: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(one for one in ids if one))
