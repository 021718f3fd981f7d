"""Connections to a SQLite file, with nothing but the standard library."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from loopwright.adapters.store.chain import moment_text
from loopwright.adapters.store.tables import HEAD, VERSION_TABLE
from loopwright.adapters.store.tx import SqlTx
from loopwright.ports import Tx


class SqliteLink:
    """A connection in a transaction."""

    taken = sqlite3.IntegrityError

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.broken = False
        """Whether this connection must not be used again."""

    def rows(self, sql: str, values: Sequence[Any] = (), /) -> list[Any]:
        """Carry out a statement and return all its rows."""
        return self._connection.execute(sql, _stored(values)).fetchall()

    def many(self, sql: str, values: Sequence[Sequence[Any]], /) -> None:
        """Carry out a statement once for each list of values."""
        self._connection.executemany(sql, map(_stored, values))

    def now(self) -> datetime:
        """Return the time of this machine, which is the database's machine too."""
        return datetime.now(UTC)

    def commit(self) -> None:
        """Put what was done on the disk."""
        # SQLite leaves a transaction open when its commit fails.
        self.broken = True
        self._connection.execute("COMMIT")
        self.broken = False


class SqliteLinks:
    """The connections of this process to one file: as many as it has used at once.

    Readers and the writer have their own, because a connection keeps every statement that it ever prepared.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._idle: dict[str, list[sqlite3.Connection]] = {}

    @contextmanager
    def begun(self, how: str) -> Iterator[SqliteLink]:
        """Begin a transaction with these words; what was not committed at the end has not happened."""
        idle = self._idle.setdefault(how, [])
        try:
            connection = idle.pop()
        except IndexError:
            connection = self._connect()
        link = SqliteLink(connection)
        try:
            connection.execute(how)
            yield link
        except sqlite3.Error:
            # Whatever is wrong with the file, the next one begins with a new connection.
            link.broken = True
            raise
        finally:
            if link.broken:
                connection.close()
            else:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                idle.append(connection)

    def close(self) -> None:
        """Close all that are unused."""
        for idle in self._idle.values():
            while idle:
                idle.pop().close()


def _stored(values: Sequence[Any]) -> list[Any]:
    return [moment_text(value) if isinstance(value, datetime) else value for value in values]


# A quick look into a SQLite home with nothing but the standard library.

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
