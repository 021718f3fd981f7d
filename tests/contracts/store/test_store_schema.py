"""The tables are the dataclasses, and looking at a home is quick."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loopwright.adapters.store import schema
from loopwright.adapters.store.codec import fields_of
from loopwright.adapters.store.sql import SqlStore
from loopwright.adapters.store.tables import ALL, EVENT_COLUMNS, STORED
from loopwright.core.rows.events import RecordedEvent
from loopwright.core.rows.row_types import ROW_TYPES
from loopwright.testing.memory_store import MemoryStore


def test_every_row_type_has_a_table_and_every_table_a_name() -> None:
    assert set(STORED) == set(ROW_TYPES)
    assert set(schema.metadata.tables) == ALL


def test_every_field_of_an_event_has_a_column() -> None:
    assert sorted(EVENT_COLUMNS) == sorted(field.name for field in fields_of(RecordedEvent))
    assert [column.name for column in schema.events.primary_key] == ["n"]


def test_a_field_becomes_a_column_of_its_own_kind() -> None:
    columns = schema.metadata.tables["runs"].c
    assert columns.id.primary_key
    kinds = {
        "role": (schema.TEXT, False),
        "agent": (schema.TEXT, True),
        "exit_code": (schema.INTEGER, True),
        "cost_estimated": (schema.BOOLEAN, False),
        "argv": (schema.JSON, False),
        "usage": (schema.JSON, True),
        "created_at": (schema.MOMENT, False),
        "ended_at": (schema.MOMENT, True),
    }
    assert {name: (columns[name].type, columns[name].nullable) for name in kinds} == kinds


def test_both_stores_have_the_same_methods() -> None:
    def methods(kind: type[Any]) -> set[str]:
        return {name for name in vars(kind) if not name.startswith("_")}

    assert methods(SqlStore) - methods(MemoryStore) == {"open", "close_sync"}
    assert methods(MemoryStore) <= methods(SqlStore)


def test_looking_at_a_home_imports_neither_alembic_nor_pydantic_nor_psycopg(tmp_path: Path) -> None:
    path = tmp_path / "loopwright.db"
    script = """
import json, sys
from loopwright.adapters.store.sql import SqlStore
from loopwright.adapters.store.tables import ALL, EVENT_COLUMNS, STORED
store = SqlStore.open(sys.argv[1], create=sys.argv[2] == "create")
store.read_sync(lambda tx: tx.last_event())
print(json.dumps(sorted(m for m in ("alembic", "pydantic", "psycopg", "dbos") if m in sys.modules)))
"""
    for mode in ("create", "create", "look"):
        done = subprocess.run(
            [sys.executable, "-c", script, str(path), mode], capture_output=True, text=True, check=True
        )
        assert json.loads(done.stdout) == []


@pytest.mark.serial
def test_the_file_is_written_the_safe_way(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / "loopwright.db")
    with store._backend.engine.connect() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 15000}
    store.close_sync()


def test_text_is_ordered_by_code_point_whatever_language_the_server_speaks(postgres_url: str) -> None:
    store = SqlStore.open(postgres_url)
    with store._backend.engine.connect() as connection:
        found = connection.exec_driver_sql(
            "SELECT table_name, column_name, collation_name FROM information_schema.columns "
            "WHERE table_schema = current_schema() AND data_type = 'text'"
        )
        collations = {(table, column): collation for table, column, collation in found}
    tables = schema.metadata.sorted_tables
    plain = {
        (table.name, column.name) for table in tables for column in table.c if column.type is schema.TEXT
    }
    assert {place for place, collation in collations.items() if collation == "C"} == plain
    store.close_sync()
