"""Backups of a SQLite home: made at an upgrade and daily, complete, few, and never of a damaged file."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from tests.refusals import raises_code

from loopwright.adapters.store import backups
from loopwright.adapters.store.sql import SqlStore
from loopwright.core.rows.model import RESTORED, Cursor
from loopwright.core.values.errors import DamagedDatabase

NOW = datetime.now(UTC)


def _back_up(store: SqlStore, at: datetime) -> None:
    anyio.run(store.back_up, at)


def test_a_day_without_a_backup_gets_one_and_only_the_last_three_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "loopwright.db"
    store = SqlStore.open(path)
    store.transact_sync("put", lambda tx: tx.insert(Cursor(id="kept", n=7)))
    _back_up(store, NOW + timedelta(hours=23))
    assert backups.backups_of(path) == [], "a new database needs none on its first day"
    for days in range(1, 6):
        _back_up(store, NOW + timedelta(days=days, minutes=1))
        _back_up(store, NOW + timedelta(days=days, minutes=2))
    kept = backups.backups_of(path)
    assert [one.made_at for one in kept] == [NOW + timedelta(days=days, minutes=1) for days in (5, 4, 3)]
    store.transact_sync("put", lambda tx: tx.insert(Cursor(id="later", n=8)))
    store.close_sync()

    aside = backups.put_back(path, kept[0].path, NOW)
    assert aside.exists()
    restored = SqlStore.open(path)
    found = {one.id for one in restored.read_sync(lambda tx: tx.find(Cursor))}
    restored.close_sync()
    assert found == {"kept", RESTORED}, "a backup says that it is one"
    assert not list(tmp_path.glob("*.unfinished"))


def test_a_damaged_database_is_not_kept_as_a_backup_and_the_last_good_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "loopwright.db"
    store = SqlStore.open(path)
    _back_up(store, NOW + timedelta(days=2))
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA writable_schema = ON")
        raw.execute("UPDATE sqlite_master SET rootpage = 3 WHERE name = 'cursors'")
        raw.commit()
    with pytest.raises(DamagedDatabase) as caught:
        _back_up(store, NOW + timedelta(days=4))
    store.close_sync()
    (good,) = backups.backups_of(path)
    assert f"loopwright doctor --restore {good.path}" in caught.value.hint


def test_a_database_that_is_gone_is_not_made_again_beside_its_backups(tmp_path: Path) -> None:
    path = tmp_path / "loopwright.db"
    store = SqlStore.open(path)
    _back_up(store, NOW + timedelta(days=2))
    store.close_sync()
    for loss in (path.unlink, path.touch):
        loss()
        for create in (True, False):
            with raises_code("damaged_database"):
                SqlStore.open(path, create=create)
