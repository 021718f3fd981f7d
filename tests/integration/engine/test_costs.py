"""What a task costs in rows and files: counted, so that no busy machine can blur it."""

import asyncio
import json
import sqlite3
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from bench.counted import shape
from bench.instant import InstantRepository, instant_world, submission, work

from loopwright.adapters.host import new_id
from loopwright.adapters.statefiles import ProjectStateFiles
from loopwright.adapters.store.sql import SqlStore
from loopwright.core.model import Plan
from loopwright.core.states import PlanState
from loopwright.engine.submit import submit
from loopwright.engine.worker import EXPORT_S

TASKS = 30


class CountingFiles(ProjectStateFiles):
    """The real state files, counted by kind."""

    def __init__(self) -> None:
        self.written: Counter[str] = Counter()

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


async def done(folder: Path, files: CountingFiles) -> tuple[str, float]:
    """Do a plan of many tasks and return it with the seconds it took."""
    (folder / "project").mkdir()
    store = SqlStore.open(folder / "loopwright.db")
    world = instant_world(folder, store)
    asked = submission(folder / "project", "plan", TASKS)
    plan_id = (await store.transact("submit", lambda tx: submit(tx, new_id, asked))).plan.id

    async def finished() -> bool:
        plan = await store.read(lambda tx: tx.get(Plan, plan_id))
        return plan is not None and plan.status is PlanState.VERIFIED

    began = asyncio.get_running_loop().time()
    try:
        await work(world, files, finished)
    finally:
        world.membership.release()
        await store.close()
    took = asyncio.get_running_loop().time() - began
    return plan_id, took


@pytest.mark.anyio
async def test_a_task_takes_few_transactions(tmp_path: Path, statements: Counter[str]) -> None:
    await done(tmp_path, CountingFiles())
    assert 5 < statements["BEGIN IMMEDIATE"] / TASKS < 13
    # A pass after every commit of a leg took 80 of them, and building pictures nobody saw.
    assert statements["BEGIN"] / TASKS < 40
    assert sum(statements.values()) / TASKS < 260


@pytest.mark.anyio
async def test_a_plan_is_exported_now_and_then_and_completely_at_the_end(tmp_path: Path) -> None:
    files = CountingFiles()
    plan_id, took = await done(tmp_path, files)
    # At the start, at the end, and once per rest in between; not after each of some 300 commits.
    assert files.written["plans"] <= 3 + took / EXPORT_S
    exported = json.loads((tmp_path / "project" / ".loopwright" / "plans" / f"{plan_id}.json").read_text())
    assert exported["status"] == "VERIFIED"
    assert {task["status"] for task in exported["tasks"]} == {"COMPLETE"}
    assert len(exported["attempts"]) == TASKS
    assert (tmp_path / "project" / ".loopwright" / "receipts" / f"{plan_id}.json").exists()


@pytest.mark.anyio
async def test_a_part_that_cannot_do_what_is_asked_of_it_fails_this_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(InstantRepository, "snapshot")
    with pytest.raises(AttributeError, match="snapshot"):
        await done(tmp_path, CountingFiles())
