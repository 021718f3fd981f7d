"""A quick look sees exactly what the store sees, and leaves to the store whatever is out of the ordinary."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests.contracts.store.rows import AT, attempt, event, family, filled, task

from loopwright.adapters.store.sql import SqlStore
from loopwright.adapters.store.sqlite_links import Glimpse
from loopwright.adapters.store.tables import VERSION_TABLE, stored_as
from loopwright.core.rows.model import Attempt, Plan, Project, Task
from loopwright.core.rows.row_types import ROW_TYPES
from loopwright.core.values.states import AttemptState, TaskState


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "loopwright.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqlStore]:
    opened = SqlStore.open(path)
    yield opened
    opened.close_sync()


@pytest.fixture
def glimpse(store: SqlStore, path: Path) -> Iterator[Glimpse]:
    opened = Glimpse.open(path)
    assert opened is not None
    yield opened
    opened.close_sync()


def _filled_home(tx: Any) -> None:
    for _ in range(2):
        plan = family(tx)
        for position in range(4):
            due = None if position % 2 else AT + timedelta(microseconds=position)
            made = task(plan, position=position, priority=position % 2, not_before=due)
            tx.insert(made)
            tx.insert(attempt(made, state=[*AttemptState][position], interrupt="pause" if position else ""))
            tx.append(event(plan=plan.id, task=made.id, type="task_queued" if position else "task_started"))


QUERIES: list[Callable[[Any], Any]] = [
    lambda tx: tx.find(Task),
    lambda tx: tx.find(Task, order_by=("-priority", "position")),
    lambda tx: tx.find(Task, order_by=("not_before",), limit=3),
    lambda tx: tx.find(Task, order_by=("-not_before",)),
    lambda tx: tx.find(Task, not_before=None),
    lambda tx: tx.find(Task, not_before=AT),
    lambda tx: tx.find(Task, not_before=(None, AT)),
    lambda tx: tx.find(Task, priority=1, status=TaskState.CREATED),
    lambda tx: tx.find(Attempt, state=frozenset({AttemptState.QUEUED, AttemptState.WAITING})),
    lambda tx: tx.find(Attempt, interrupt=("pause", "cancel")),
    lambda tx: tx.find(Attempt, id=[]),
    lambda tx: tx.find(Attempt, id=[one.id for one in tx.find(Attempt, limit=2)]),
    lambda tx: (tx.count(Task), tx.count(Task, priority=0), tx.count(Plan, status=())),
    lambda tx: tx.get(Project, tx.find(Project)[0].id),
    lambda tx: tx.get(Project, "proj_none"),
    lambda tx: tx.events(),
    lambda tx: tx.events(after=2, limit=3, as_stored=True),
    lambda tx: tx.events(plan=tx.find(Plan)[0].id, types=("task_queued",)),
    lambda tx: tx.events(task=tx.find(Task)[0].id),
    lambda tx: tx.last_event(),
]


def test_it_sees_what_the_store_sees(store: SqlStore, glimpse: Glimpse) -> None:
    store.transact_sync("fill", _filled_home)
    for n, query in enumerate(QUERIES):
        assert glimpse.read_sync(query) == store.read_sync(query), f"query {n}"


def test_it_reads_every_row_type_with_every_field_filled(store: SqlStore, glimpse: Glimpse) -> None:
    owners: dict[str, str] = {}

    def make_owners(tx: Any) -> None:
        planned = family(tx)
        made = task(planned)
        tx.insert(made)
        owners.update(
            project_id=planned.project_id, loop_id=planned.loop_id, plan_id=planned.id, task_id=made.id
        )

    store.transact_sync("owners", make_owners)
    for kind in ROW_TYPES:
        given_owners = {column: owners[column] for column in stored_as(kind).owners}
        _reads_the_same(store, glimpse, kind, given_owners)


def _reads_the_same(store: SqlStore, glimpse: Glimpse, kind: type[Any], owners: dict[str, str]) -> None:
    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(filled(kind, **owners))
    def the_same(row: Any) -> None:
        store.transact_sync("insert", lambda tx: tx.insert(row))
        assert glimpse.read_sync(lambda tx: tx.get(kind, row.id)) == row
        store.transact_sync("delete", lambda tx: tx.delete(kind, row.id))

    the_same()


def test_it_only_reads(store: SqlStore, glimpse: Glimpse) -> None:
    store.transact_sync("fill", _filled_home)
    row = store.read_sync(lambda tx: tx.find(Project))[0]
    for write in (
        lambda tx: tx.insert(row),
        lambda tx: tx.update(Project, row.id, name="other"),
        lambda tx: tx.delete(Project, row.id),
        lambda tx: tx.append(event()),
    ):
        with pytest.raises(TypeError, match="only reads"):
            glimpse.read_sync(write)
    with pytest.raises(TypeError, match="has no order"):
        glimpse.read_sync(lambda tx: tx.find(Plan, order_by=("policy",)))


def test_another_schema_is_left_to_the_store(store: SqlStore, path: Path) -> None:
    store.transact_sync("age", lambda tx: tx._link.rows(f"UPDATE {VERSION_TABLE} SET version_num = '0000'"))
    assert Glimpse.open(path) is None


def test_what_is_no_home_is_left_to_the_store(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(b"nothing of the kind" * 100)
    assert Glimpse.open(damaged) is None
    assert Glimpse.open(tmp_path / "missing.db") is None
