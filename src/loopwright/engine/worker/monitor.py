"""Observe the agents that work here and running plans, and keep a row of everything that goes wrong.

Observing starts no process and uses one transaction at most. `core.policy.monitor` decides what is wrong.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from loopwright.core.policy import monitor
from loopwright.core.policy.graph import kept
from loopwright.core.policy.monitor import FailedCall, FailedTask, Pace, Working
from loopwright.core.rows.events import happened
from loopwright.core.rows.healing_rows import AttemptFailure
from loopwright.core.rows.model import AUTHORS, Attempt, Loop, Plan, Project, Run, Task
from loopwright.core.rows.monitor_rows import Trouble, Watched
from loopwright.core.values.alerts import TroubleKind
from loopwright.core.values.states import ENDED_PLAN, AttemptState, PlanState, RunState, TaskState
from loopwright.engine.integrity.gate_scripts import inside
from loopwright.engine.people.steering import begin_again
from loopwright.engine.rows.moves import MACHINE, need
from loopwright.engine.rows.world import World
from loopwright.engine.views.activity import progress
from loopwright.ports import Tx

_MOST_FILES: Final = 50_000
_MADE: Final = frozenset({"__pycache__", "node_modules", "target", "dist", "build"})
"""Folders that tools fill: their files show no progress and belong to no task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _At:
    """A working agent, from the rows."""

    run: Run
    attempt: Attempt
    task: Task
    plan: Plan
    loop: Loop
    subfolder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    agents: tuple[_At, ...]
    watched: dict[str, Watched]
    troubles: tuple[Trouble, ...]
    tasks: tuple[FailedTask, ...] = ()
    calls: tuple[FailedCall, ...] = ()
    paces: tuple[Pace, ...] = ()


class Monitor:
    """Watches the agents of one worker, and as the controller also the plans."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._limits = world.thresholds

    async def look(self, *, controls: bool) -> None:
        """Observe once, and record what is wrong now and what no longer is."""
        world = self._world
        known = await world.store.read(lambda tx: self._known(tx, controls=controls))
        now = world.clock.now()
        working = await asyncio.to_thread(lambda: [self._seen(one, now) for one in known.agents])
        watched = monitor.watched(known.watched, working, now)
        found = monitor.of_agents(
            working, {one.id: one for one in watched}, now=now, limits=self._limits
        ) + monitor.of_plans(known.tasks, known.calls, known.paces, now=now, limits=self._limits)
        changed, ended = monitor.merged(known.troubles, found)
        gone = sorted(known.watched.keys() - {one.id for one in watched})
        if watched or changed or ended or gone:
            await world.store.transact("monitor", lambda tx: _record(tx, watched, changed, ended, gone))

    def _known(self, tx: Tx, *, controls: bool) -> _Known:
        me = self._world.me.host_id
        runs = tx.find(Run, state=RunState.RUNNING, role=AUTHORS, host_id=me)
        plans = {one.id: one for one in tx.find(Plan, id={run.plan_id for run in runs})} if runs else {}
        agents = tuple(_at(tx, run, plans[run.plan_id]) for run in runs if run.attempt_id and run.task_id)
        all_troubles = tx.find(Trouble)
        ours = {
            one.id
            for one in tx.find(Run, id={trouble.run_id for trouble in all_troubles if trouble.run_id})
            if one.host_id == me
        }
        known = _Known(
            agents=agents,
            watched={
                one.id: one
                for one in tx.find(Watched)
                if (run := tx.get(Run, one.id)) is None or run.host_id == me
            },
            troubles=tuple(one for one in all_troubles if (one.run_id in ours if one.run_id else controls)),
        )
        if not controls:
            return known
        under_way = tx.find(Plan, status=PlanState.RUNNING)
        return replace(
            known,
            tasks=tuple(each for plan in under_way for each in _failed_tasks(tx, plan)),
            calls=tuple(
                each for plan in under_way for each in _failed_calls(tx, plan, tx.now() - self._limits.window)
            ),
            paces=tuple(each for plan in under_way for each in _pace(tx, plan)),
        )

    def _seen(self, at: _At, now: datetime) -> Working:
        """Read the files of an agent's run and of its workspace."""
        directory = self._world.paths.run(at.run.id)
        sighting = self._world.keepers.look(directory)
        said = progress(directory)
        began = at.run.started_at or at.run.created_at
        changed, newest = _changed(Path(at.attempt.workspace or ""), began)
        quiet = now - sighting.beat_at if sighting.state == "alive" and sighting.beat_at else timedelta()
        return Working(
            run_id=at.run.id,
            attempt_id=at.attempt.id,
            task_id=at.task.id,
            plan_id=at.plan.id,
            loop_id=at.loop.id,
            project_id=at.plan.project_id,
            task=at.task.key,
            loop=at.loop.name,
            progress=f"{said.get('new', 0)} {newest}",
            in_tool=said.get("in_tool") is True,
            error=str(said.get("error", "")),
            errors=_whole(said.get("errors")),
            quiet=quiet,
            changed=kept(inside(at.subfolder, path) for path in changed),
            scope=at.task.scope,
        )


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _at(tx: Tx, run: Run, plan: Plan) -> _At:
    project = need(tx.get(Project, plan.project_id), "the project")
    return _At(
        run=run,
        attempt=need(tx.get(Attempt, run.attempt_id or ""), "the attempt"),
        task=need(tx.get(Task, run.task_id or ""), "the task"),
        plan=plan,
        loop=need(tx.get(Loop, plan.loop_id), "the loop"),
        subfolder=project.subfolder,
    )


def _changed(workspace: Path, since: datetime) -> tuple[list[str], int]:
    """Return the files of a workspace that changed since a moment, and when the newest did."""
    if not workspace.is_absolute():
        return [], 0
    first, newest, found = int(since.timestamp() * 1e9), 0, []
    for path, changed_at in _files(workspace):
        if changed_at >= first:
            found.append(os.path.relpath(path, workspace))
            newest = max(newest, changed_at)
    return sorted(found), newest


def _files(workspace: Path) -> Iterator[tuple[str, int]]:
    seen = 0
    for folder, folders, names in os.walk(workspace):
        folders[:] = [one for one in folders if not one.startswith(".") and one not in _MADE]
        for name in names:
            seen += 1
            if seen > _MOST_FILES:
                return
            path = Path(folder, name)
            try:
                yield str(path), path.lstat().st_mtime_ns
            except OSError:
                continue  # it was removed in the meantime


def _failed_tasks(tx: Tx, plan: Plan) -> Iterator[FailedTask]:
    """Return the tasks whose newest attempt failed, with its error."""
    newest: dict[str, AttemptFailure] = {}
    for one in tx.find(AttemptFailure, plan_id=plan.id, order_by=("n",)):
        newest[one.task_id] = one
    if not newest:
        return
    for task in tx.find(Task, id=list(newest)):
        if task.status in (TaskState.COMPLETE, TaskState.CANCELLED):
            continue
        yield FailedTask(
            plan_id=plan.id,
            loop_id=plan.loop_id,
            project_id=plan.project_id,
            task=task.key,
            error=newest[task.id].error,
        )


def _failed_calls(tx: Tx, plan: Plan, since: datetime) -> Iterator[FailedCall]:
    for run in tx.find(Run, plan_id=plan.id, failure=tuple(monitor.SERVICE)):
        if run.failure is not None and run.ended_at is not None and run.ended_at >= since:
            yield FailedCall(
                plan_id=plan.id,
                loop_id=plan.loop_id,
                project_id=plan.project_id,
                agent=run.agent or plan.policy.agent,
                failure=run.failure,
                at=run.ended_at,
            )


def _pace(tx: Tx, plan: Plan) -> Iterator[Pace]:
    if plan.policy.max_cost is None:
        return
    yield Pace(
        plan_id=plan.id,
        loop_id=plan.loop_id,
        project_id=plan.project_id,
        title=plan.title,
        setting="max_cost",
        limit_micros=plan.policy.max_cost,
        spent_micros=plan.spent_micros,
        done=tx.count(Task, plan_id=plan.id, status=TaskState.COMPLETE),
        total=tx.count(Task, plan_id=plan.id),
    )


def _record(
    tx: Tx, watched: list[Watched], changed: list[Trouble], ended: list[str], gone: list[str]
) -> None:
    for one in watched:
        _put(tx, one)
    restarted: Counter[str] = Counter()
    for trouble in changed:
        is_new = tx.get(Trouble, trouble.id) is None
        _put(tx, trouble)
        plan = tx.get(Plan, trouble.plan_id)
        if is_new and plan is not None and plan.status not in ENDED_PLAN:
            tx.append(
                happened(
                    "trouble_found",
                    MACHINE,
                    plan=plan,
                    kind=trouble.kind,
                    message=trouble.message,
                    hint=trouble.hint,
                )
            )
            if trouble.kind == TroubleKind.STUCK and plan.policy.auto_heal:
                restarted[plan.id] += _restart(tx, plan, trouble, restarted[plan.id])
    for trouble_id in ended:
        tx.delete(Trouble, trouble_id)
    for run_id in gone:
        tx.delete(Watched, run_id)


def _restart(tx: Tx, plan: Plan, trouble: Trouble, just_now: int) -> bool:
    """End a stuck agent, so that its task begins again; return False if that happened too often within an hour."""
    told = tx.events(plan=plan.id, types=("task_interrupted",), newest=True, limit=100)
    recent = [one for one in told if one.actor == MACHINE and one.at > tx.now() - timedelta(hours=1)]
    run = tx.get(Run, trouble.run_id or "")
    attempt = tx.get(Attempt, run.attempt_id or "") if run is not None else None
    if attempt is None or attempt.state is not AttemptState.WORKING or attempt.interrupt:
        return False
    if len(recent) + just_now >= monitor.MOST_RESTARTS:
        return False
    task = need(tx.get(Task, attempt.task_id), "the task")
    begin_again(tx, plan, task, attempt, MACHINE, task.note or monitor.RESTARTED)
    return True


def _put(tx: Tx, row: Trouble | Watched) -> None:
    if tx.get(type(row), row.id) is None:
        tx.insert(row)
    else:
        values = {one.name: getattr(row, one.name) for one in fields(row) if one.name != "id"}
        tx.update(type(row), row.id, **values)
