"""What a list costs does not grow with its rows, and no request waits for a thread to learn what it asks for."""

import asyncio
import sqlite3
from collections import Counter
from typing import Any

import pytest
from tests.contracts.store import rows
from tests.integration.server.api import Api

from loopwright.core.rows.model import Task
from loopwright.core.values.states import PlanState, TaskState

TABLES = ("projects", "loops", "plans", "tasks", "attempts")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the statements of all connections by the table that they read."""
    seen: Counter[str] = Counter()
    connect: Any = sqlite3.connect

    def told(*where: Any, **how: Any) -> Any:
        connection = connect(*where, **how)
        connection.set_trace_callback(
            lambda statement: seen.update(one for one in TABLES if f" FROM {one}" in statement)
        )
        return connection

    monkeypatch.setattr(sqlite3, "connect", told)
    return seen


def test_a_list_asks_once_for_all_its_rows(asked: Counter[str], api: Api) -> None:
    project = api.family()[0]
    taken = _lists(api, asked, project.id, 1)

    def more(tx: Any) -> None:
        for n in range(9):
            driver = rows.loop(project)
            planned = rows.plan(driver, status=PlanState.RUNNING if n % 2 else PlanState.VERIFIED)
            working = rows.task(planned, status=TaskState.RUNNING)
            attempt = rows.attempt(working, state="WORKING")
            for row in (driver, planned, working, attempt):
                tx.insert(row)
            tx.update(Task, working.id, attempt_id=attempt.id)
            tx.update(type(driver), driver.id, plan_id=planned.id)

    api.write(more)
    grown = _lists(api, asked, project.id, 10)
    # The first row has no attempt, so nothing is asked about it; and the daemon looks for what it could start.
    assert sum((grown - taken).values()) < 9, grown
    assert sum(taken.values()) > 4


def _lists(api: Api, asked: Counter[str], project: str, count: int) -> Counter[str]:
    asked.clear()
    assert len(api.get("/api/loops")["loops"]) == count
    assert len(api.get(f"/api/projects/{project}/plans")["plans"]) == count
    return Counter(asked)


def test_what_a_request_depends_on_is_found_on_the_event_loop(api: Api) -> None:
    """A plain function would cost each request a thread, which waits until others let it run."""
    depends: set[Any] = set()

    def note(dependant: Any) -> None:
        for one in dependant.dependencies:
            depends.add(one.call)
            note(one)

    for part in api.app.router.routes:
        for route in getattr(getattr(part, "original_router", part), "routes", [part]):
            if hasattr(route, "dependant"):
                note(route.dependant)
    assert {one.__qualname__ for one in depends if not asyncio.iscoroutinefunction(one)} == set()
    assert len(depends) > 4
