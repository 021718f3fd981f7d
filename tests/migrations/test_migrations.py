"""Databases of every released schema are brought up to date, on both databases, and nothing is lost."""

import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from loopwright.adapters.store.schema import metadata
from loopwright.adapters.store.sql import SqlStore
from loopwright.adapters.store.tables import HEAD, REVISIONS, VERSION_TABLE
from loopwright.adapters.store.upgrade import HISTORY, History, migrate
from loopwright.core.rows.events import Event
from loopwright.core.rows.model import Cursor, Plan, Project
from loopwright.core.values.errors import StoreUnavailable
from loopwright.core.values.policy import Limits, Policy, RoundsPolicy

RELEASED = Path(__file__).parent / "released"
NEXT = '''"""A later schema."""

import sqlalchemy as sa
from alembic import op

revision = "next"
down_revision = "{head}"


def upgrade() -> None:
    """Add a column, and change one, which SQLite can only do by rebuilding the table."""
    with op.batch_alter_table("projects") as batch:
        batch.add_column(sa.Column("colour", sa.Text(), nullable=False, server_default="red"))
        batch.alter_column("name", type_=sa.String(200))
    {then}
'''


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return str(tmp_path / "home" / "loopwright.db")


def later(tmp_path: Path, then: str = "") -> History:
    """Return a history with one more revision than this program has."""
    place = tmp_path / "later"
    shutil.copytree(HISTORY.location, place)
    (place / "versions" / "vnext.py").write_text(NEXT.format(head=HEAD, then=then))
    return History(location=place, revisions=(*REVISIONS, "next"))


def differences(store: SqlStore) -> list[Any]:
    """Return what Alembic would change to make the database equal to the tables."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with store._backend.engine.connect() as connection:
        options = {"version_table": VERSION_TABLE, "compare_type": True}
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))


def put(tx: Any) -> None:
    tx.insert(Cursor(id="kept", n=7))
    tx.append(Event(type="Kept", actor="test"))


def test_a_database_made_at_once_equals_one_that_was_migrated(address: str) -> None:
    store = SqlStore.open(address)
    assert differences(store) == []
    store.close_sync()


def test_the_migrations_lead_to_the_tables_of_this_program(address: str) -> None:
    _migrated(address)
    store = SqlStore.open(address)
    assert differences(store) == [], "render the difference with tests/migrations/render.py"
    store.transact_sync("put", put)
    assert store.read_sync(lambda tx: tx.last_event()) == 1
    store.close_sync()


def test_both_ways_of_making_a_database_give_the_same_sql(tmp_path: Path) -> None:
    _migrated(str(tmp_path / "migrated.db"))
    SqlStore.open(tmp_path / "made.db").close_sync()
    made, migrated = (_description(tmp_path / name) for name in ("made.db", "migrated.db"))
    assert made == migrated


def test_both_ways_give_the_same_columns_and_keys_in_postgres(postgres_url: str) -> None:
    _migrated(postgres_url)
    store = SqlStore.open(postgres_url)
    migrated = _postgres_description(store)
    with store._backend.engine.begin() as connection:
        metadata.drop_all(connection)
        metadata.create_all(connection, checkfirst=False)
    assert _postgres_description(store) == migrated
    store.close_sync()


def test_the_first_schema_is_upgraded_without_what_was_dropped_since(address: str) -> None:
    _migrated(address, History(location=HISTORY.location, revisions=REVISIONS[:1]))
    store = SqlStore.open(address)
    assert differences(store) == []
    store.transact_sync("put", put)
    store.close_sync()


def test_a_plan_of_the_first_schema_keeps_its_policy_under_the_new_names(tmp_path: Path) -> None:
    dump = (RELEASED / f"{REVISIONS[0]}.sql").read_text()
    for old, new in (
        ('"max_cost_micros":null', '"max_cost_micros":5'),
        ('"max_day_cost_micros":null', '"max_day_cost_micros":7'),
        ('"hard_s":3600.0', '"hard_s":60.0'),
        ('"stop_after_s":null', '"stop_after_s":9.0'),
    ):
        assert old in dump
        dump = dump.replace(old, new)
    path = tmp_path / "loopwright.db"
    with closing(sqlite3.connect(path)) as raw:
        raw.executescript(dump)
    store = SqlStore.open(path)
    [plan] = store.read_sync(lambda tx: tx.find(Plan))
    store.close_sync()
    wanted = Policy(
        max_cost=5, max_cost_per_day=7, limits=Limits(hard=60.0), rounds=RoundsPolicy(stop_after=9.0)
    )
    assert plan.policy == wanted


def test_every_released_schema_is_listed_and_has_a_database_to_upgrade_from() -> None:
    assert sorted(path.stem for path in RELEASED.glob("*.sql")) == sorted(REVISIONS)


@pytest.mark.capability("C005")
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_released_database_is_upgraded_with_everything_in_it(tmp_path: Path, revision: str) -> None:
    path = tmp_path / "loopwright.db"
    with closing(sqlite3.connect(path)) as raw:
        raw.executescript((RELEASED / f"{revision}.sql").read_text())
    store = SqlStore.open(path)
    assert differences(store) == []
    with store._backend.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
    assert [row.name for row in store.read_sync(lambda tx: tx.find(Project))] == ["demo"]
    events = store.read_sync(lambda tx: tx.events())
    assert [one.n for one in events] == list(range(1, len(events) + 1))
    store.transact_sync("put", put)
    assert store.read_sync(lambda tx: tx.last_event()) == len(events) + 1
    store.close_sync()


@pytest.mark.capability("C005")
def test_an_older_database_is_upgraded_after_a_backup(tmp_path: Path, address: str) -> None:
    store = SqlStore.open(address)
    store.transact_sync("put", put)
    store.close_sync()
    history = later(tmp_path)
    with pytest.raises(StoreUnavailable, match=r"older Loopwright.*upgrades it after a backup"):
        SqlStore.open(address, create=False, history=history)
    upgraded = SqlStore.open(address, history=history)
    assert upgraded.read_sync(lambda tx: (tx.get(Cursor, "kept").n, tx.last_event())) == (7, 1)
    assert any("colour" in str(one) for one in differences(upgraded))
    upgraded.close_sync()
    SqlStore.open(address, history=history).close_sync()
    if "://" not in address:
        (backup,) = Path(address).parent.glob(f"*.backup-{HEAD}-*")
        old = SqlStore.open(backup)
        assert old.read_sync(lambda tx: tx.get(Cursor, "kept").n) == 7
        assert differences(old) == []
        old.close_sync()


@pytest.mark.capability("C005")
def test_an_upgrade_that_fails_changes_nothing(tmp_path: Path, address: str) -> None:
    store = SqlStore.open(address)
    store.transact_sync("put", put)
    store.close_sync()
    history = later(tmp_path, then="raise RuntimeError('half way')")
    with pytest.raises(StoreUnavailable, match=r"could not be upgraded.*it is as it was.*half way"):
        SqlStore.open(address, history=history)
    again = SqlStore.open(address)
    assert differences(again) == []
    assert again.read_sync(lambda tx: tx.get(Cursor, "kept").n) == 7
    again.close_sync()


def test_an_upgrade_that_orphans_rows_changes_nothing(tmp_path: Path) -> None:
    from tests.contracts.store.rows import family

    path = tmp_path / "loopwright.db"
    store = SqlStore.open(path)
    store.transact_sync("put", family)
    store.close_sync()
    with pytest.raises(StoreUnavailable, match=r"without the rows they belong to"):
        SqlStore.open(path, history=later(tmp_path, then="op.execute('DELETE FROM projects')"))
    again = SqlStore.open(path)
    assert again.read_sync(lambda tx: tx.count(Project)) == 1
    again.close_sync()


def test_many_processes_may_find_the_same_database_missing_or_old(tmp_path: Path, address: str) -> None:
    for history in (HISTORY, later(tmp_path)):
        with ThreadPoolExecutor(6) as pool:
            opening = [pool.submit(SqlStore.open, address, history=history) for _ in range(6)]
        for one in opening:
            one.result().close_sync()
    if "://" not in address:
        assert len(list(Path(address).parent.glob("*.backup-*"))) == 1


def _migrated(address: str, history: History = HISTORY) -> None:
    """Make a database by migrations alone."""
    from loopwright.adapters.store.sql import _backend

    backend = _backend(address, create=True, patience=5)
    with backend.upgrading() as connection:
        migrate(connection, history)
    backend.engine.dispose()


def _postgres_description(store: SqlStore) -> dict[str, list[Any]]:
    asked = {
        "columns": "SELECT table_name, column_name, data_type, is_nullable, collation_name "
        "FROM information_schema.columns WHERE table_schema = current_schema() "
        "ORDER BY table_name, ordinal_position",
        "indexes": "SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema() ORDER BY 1",
        "keys": "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE connamespace = current_schema()::regnamespace AND contype IN ('p', 'f') ORDER BY 1, 2",
    }
    with store._backend.engine.connect() as connection:
        return {what: [tuple(row) for row in connection.exec_driver_sql(sql)] for what, sql in asked.items()}


def _description(path: Path) -> dict[str, Any]:
    with closing(sqlite3.connect(path)) as raw:
        tables = [name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            table: (
                raw.execute(f"PRAGMA table_info({table})").fetchall(),
                sorted(key[2:] for key in raw.execute(f"PRAGMA foreign_key_list({table})")),
                sorted(index[1:3] for index in raw.execute(f"PRAGMA index_list({table})")),
            )
            for table in tables
        }
