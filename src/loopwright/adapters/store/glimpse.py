"""A quick look into a SQLite home with nothing but the standard library.

Loading the database toolkit takes longer than reading a whole home, and a command that only shows how things stand
must answer at once. So this reads, and only reads, what the real store wrote; anything out of the ordinary (another
schema, a lock, a damaged file) is left to the real store, which can explain it.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from loopwright.adapters.store.sqlite_links import SqliteLink
from loopwright.adapters.store.tables import HEAD, VERSION_TABLE
from loopwright.adapters.store.tx import SqlTx
from loopwright.ports import Tx

T = TypeVar("T")


class Glimpse:
    """One SQLite home, opened for reading."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @classmethod
    def open(cls, path: Path) -> "Glimpse | None":
        """Open a home's file; None when the real store should have a look instead."""
        try:
            connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, isolation_level=None)
            versions = connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchall()  # noqa: S608 - a constant
        except sqlite3.Error:
            return None
        if [row[0] for row in versions] != [HEAD]:
            connection.close()
            return None
        return cls(connection)

    def read_sync(self, work: Callable[[Tx], T]) -> T:
        """Run `work` on one state of the home."""
        self._connection.execute("BEGIN")
        try:
            return work(SqlTx(SqliteLink(self._connection), writable=False))
        finally:
            self._connection.execute("ROLLBACK")

    def close_sync(self) -> None:
        """Let go of the file."""
        self._connection.close()
