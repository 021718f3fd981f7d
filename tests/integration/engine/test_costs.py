"""What a task costs in rows and files: counted, so that no busy machine can blur it."""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from bench.counted import shape
from bench.instant import InstantRepository, instant_world, submission, work
from tests.fakes.virtual_loop import VirtualClock, VirtualLoop

from loopwright.adapters.home.statefiles import ProjectStateFiles
from loopwright.adapters.machine.host import new_id
from loopwright.adapters.store.sql import SqlStore
from loopwright.core.rows.model import Plan
from loopwright.core.values.states import PlanState
from loopwright.engine.intake.submit import submit

TASKS = 30


class CountingFiles(ProjectStateFiles):
    """The real state files, counted by kind."""

    def __init__(self) -> None:
        self.written: Counter[str] = Counter()

    async def beside(self, write: Callable[[], object]) -> None:
        write()  # virtual time has no threads

    def put(
        self, project: Path, kind: str, id: str, document: Mapping[str, Any], *, durably: bool = True
    ) -> Path:
        self.written[kind] += 1
        return super().put(project, kind, id, document, durably=durably)


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    seen: Counter[str] = Counter()
    connect: Any = sqlite3.connect

    def told(*where: Any, **how: Any) -> Any:
        connection = connect(*where, **how)
        connection.set_trace_callback(lambda statement: seen.update([shape(statement)]))
        return connection

    monkeypatch.setattr(sqlite3, "connect", told)
    return seen


class InThisThread(Executor):
    """Does at once what it is given, so that nothing depends on which of two threads is faster."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - raised by whoever asks for the result
            future.set_exception(error)
        return future


class OneThreadStore(SqlStore):
    """The real store without threads."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._writer = self._readers = InThisThread()  # type: ignore[assignment]


def done(folder: Path, files: CountingFiles) -> str:
    """Do a plan of many tasks in virtual time, in which no timer fires by itself, and return its id."""
    loop = VirtualLoop()  # type: ignore[abstract] # it has what is asked for here
    try:
        return cast("str", loop.run_until_complete(_done(folder, files, VirtualClock(loop))))
    finally:
        loop.close()


async def _done(folder: Path, files: CountingFiles, clock: VirtualClock) -> str:
    (folder / "project").mkdir()
    store = OneThreadStore.open(folder / "loopwright.db")
    world = replace(instant_world(folder, store), clock=clock)
    asked = submission(folder / "project", "plan", TASKS)
    plan_id = (await store.transact("submit", lambda tx: submit(tx, new_id, asked))).plan.id

    async def finished() -> bool:
        plan = await store.read(lambda tx: tx.get(Plan, plan_id))
        return plan is not None and plan.status is PlanState.VERIFIED

    try:
        await work(world, files, finished)
    finally:
        world.membership.release()
        await store.close()
    return plan_id


def test_a_task_takes_few_transactions(tmp_path: Path, statements: Counter[str]) -> None:
    done(tmp_path, CountingFiles())
    assert 5 < statements["BEGIN IMMEDIATE"] / TASKS < 10
    # A pass after every commit of a leg took 80 of them, and building pictures nobody saw.
    assert statements["BEGIN"] / TASKS < 22
    assert sum(statements.values()) / TASKS < 250


def test_a_plan_is_exported_at_the_start_and_completely_at_the_end(tmp_path: Path) -> None:
    files = CountingFiles()
    plan_id = done(tmp_path, files)
    # No time passes, so nothing is exported in between: not after each of some 300 commits.
    assert files.written["plans"] == 2
    exported = json.loads((tmp_path / "project" / ".loopwright" / "plans" / f"{plan_id}.json").read_text())
    assert exported["status"] == "VERIFIED"
    assert {task["status"] for task in exported["tasks"]} == {"COMPLETE"}
    assert len(exported["attempts"]) == TASKS
    assert (tmp_path / "project" / ".loopwright" / "receipts" / f"{plan_id}.json").exists()


def test_a_part_that_cannot_do_what_is_asked_of_it_fails_this_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(InstantRepository, "snapshot")
    with pytest.raises(AttributeError, match="snapshot"):
        done(tmp_path, CountingFiles())
