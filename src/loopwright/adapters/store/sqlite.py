"""A home in one SQLite file: WAL, one writer at a time, every commit on the disk before it counts."""

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from loopwright.adapters.store import backups
from loopwright.adapters.store.backend import Seen
from loopwright.adapters.store.sqlite_links import SqliteLinks
from loopwright.adapters.store.tables import VERSION_TABLE
from loopwright.adapters.store.tx import Link
from loopwright.adapters.store.wake import SocketWake
from loopwright.core.values.errors import (
    DamagedDatabase,
    DatabaseGone,
    DatabaseReplaced,
    StaleVersion,
    StoreUnavailable,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection, Dialect, Engine

_WAL_WRITE_LOCK: Final = 120
"""The byte of the `-shm` file that a writer locks (SQLite's file format, section 4.5)."""

_OLDEST: Final = (3, 35)

_TABLES: Final = Path(__file__).with_name("tables.sql")
"""What makes a new database, one statement after the other; made from `schema` by `make docs`."""

_STATEMENTS: Final = 500
"""How many a connection keeps prepared: a plan has some hundred and fifty, and to prepare one takes the longest."""

_CACHED_KIB: Final = 1024
"""How much of the file a connection keeps in memory: the system keeps it too."""

_COMPILED: Final[dict[Any, Any]] = {}
"""Statements that were compiled already, for all files that this process opens: that takes longer than to run them."""


@cache
def _dialect() -> "Dialect":
    """Return the one that all engines share, because statements are compiled for one and no other."""
    # It takes long to load, and a command that only looks does without it.
    from sqlalchemy import create_engine

    model = create_engine("sqlite://")
    model.connect().close()  # it finds out then what it can do
    return model.dialect


def _engine(connect: Callable[[], Any]) -> "Engine":
    # It takes long to load, and a command that only looks does without it.
    from sqlalchemy import Engine, QueuePool, make_url

    pool = QueuePool(connect, pool_size=5, max_overflow=5)
    return Engine(pool, _dialect(), make_url("sqlite://"), execution_options={"compiled_cache": _COMPILED})


class SqliteBackend:
    """One SQLite file and the processes that share it."""

    def __init__(self, path: Path, *, patience: float, create: bool) -> None:
        if sqlite3.sqlite_version_info < _OLDEST:
            raise StoreUnavailable(
                f"SQLite {sqlite3.sqlite_version} is too old: 3.35 or newer is needed. Use a newer Python."
            )
        self.path = path
        self.where = str(path)
        self._patience = patience
        self._create = create
        self.wake = SocketWake(path.parent / "wake")
        self.errors = (sqlite3.Error,)
        self._links = SqliteLinks(self._connect)
        self._file: tuple[int, int] | None = None
        """Device and inode of the file that this process uses."""

    @cached_property
    def engine(self) -> "Engine":
        """Connections for upgrading the tables; nothing else needs them."""
        return _engine(lambda: self._connect(create=self._create))

    def writing(self) -> AbstractContextManager[Link]:
        """Take the file's only write lock, waiting for it as long as there is patience."""
        self._refuse_lost()
        return self._links.begun("BEGIN IMMEDIATE")

    def reading(self) -> AbstractContextManager[Link]:
        """Begin reading one state of the file; writers continue beside it."""
        self._refuse_lost()
        return self._links.begun("BEGIN")

    def announce(self, _link: Link, /) -> None:
        """Do nothing: the datagrams go out after the commit."""

    def may_run_again(self, _error: Exception, /) -> bool:
        """Return False: the write lock was held from the start, so no other writer can have been in the way."""
        return False

    def explain(self, error: Exception) -> Exception:
        """Return what SQLite's error means and what to do."""
        cause = getattr(error, "orig", error)  # SQLAlchemy wraps it
        if isinstance(cause, sqlite3.IntegrityError):
            return StaleVersion(f"a row would have been left without the row it belongs to ({cause})")
        name = getattr(cause, "sqlite_errorname", "")
        for prefix, sentence in (
            ("SQLITE_NOTADB", "the file is not a database, or its beginning is damaged"),
            ("SQLITE_CORRUPT", "the file is damaged"),
        ):
            if name.startswith(prefix):
                hint = backups.what_to_do(self.path)
                return DamagedDatabase(f"The database {self.where}: {sentence} ({cause}).", hint=hint)
        for prefix, sentence in (
            ("SQLITE_BUSY", self._who_holds_it()),
            ("SQLITE_FULL", "the disk is full. Nothing was lost; free some space and try again"),
            ("SQLITE_READONLY", "it cannot be written. Make the file and its folder writable for this user"),
            ("SQLITE_PERM", "this user may not open it. Change the permissions of the file and its folder"),
            (
                "SQLITE_CANTOPEN",
                "it cannot be opened. Check that its folder exists and is writable for this user",
            ),
            ("SQLITE_IOERR", "the disk failed to read or write. Check the disk, then try again"),
        ):
            if name.startswith(prefix):
                return StoreUnavailable(f"The database {self.where}: {sentence} ({cause}).")
        return self._lost() or error

    def close(self) -> None:
        """Close the file."""
        self._links.close()
        if "engine" in self.__dict__:
            self.engine.dispose()

    def look(self) -> Seen:
        """Return what is there, without changing anything."""
        with closing(self._connect(create=self._create)) as connection:
            tables = _tables(connection)
            query = f"SELECT version_num FROM {VERSION_TABLE}"  # noqa: S608 - a constant
            versions = connection.execute(query).fetchall() if VERSION_TABLE in tables else ()
            [mode] = connection.execute("PRAGMA journal_mode").fetchone()
        # Readers and writers work beside each other only in WAL: a file restored from a dump has lost that.
        return Seen(tables=tables, versions=tuple(one for (one,) in versions), settled=mode == "wal")

    def make(self, head: str, /) -> bool:
        """Make the tables in an empty file."""
        with self._held_alone(), closing(self._connect()) as connection:
            # Switching to WAL does not wait for others, hence the lock around it; it stays in the file for ever.
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            if _tables(connection):
                return False  # another process was quicker; closing the connection ends the transaction
            for statement in _TABLES.read_text(encoding="utf-8").removesuffix(";\n").split(";\n"):
                connection.execute(statement)
            connection.execute(f"INSERT INTO {VERSION_TABLE} VALUES (?)", (head,))  # noqa: S608 - a constant
            connection.execute("COMMIT")
        return True

    @contextmanager
    def upgrading(self) -> Iterator["Connection"]:
        """Hold the file alone: two processes that find no database yet must not both make it."""
        with self._held_alone(), self.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")
            # Tables are rebuilt with their children in place; what they refer to is checked as a whole below.
            connection.exec_driver_sql("PRAGMA foreign_keys = OFF")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            try:
                yield connection
                if connection.exec_driver_sql("PRAGMA foreign_key_check").first() is not None:
                    raise StoreUnavailable(
                        f"The database {self.where}: the upgrade would leave rows without the rows they belong to; "
                        "nothing was changed. Please report this."
                    )
                connection.commit()
            except BaseException:
                connection.rollback()
                raise
            finally:
                connection.exec_driver_sql("PRAGMA foreign_keys = ON")

    def backup(self, found: str, /) -> str | None:
        """Copy the file aside with SQLite's own means, complete or not at all."""
        return str(backups.make(self.path, found, self._connect, datetime.now(UTC)))

    def backup_daily(self, now: datetime, /) -> None:
        """Copy the file aside if that was not done for a day."""
        if backups.is_due(self.path, now):
            backups.make(self.path, backups.DAILY, self._connect, now)

    def _connect(self, *, create: bool = False) -> sqlite3.Connection:
        # Only what makes or upgrades a database may make its file: later it was moved away, and must not be made again.
        mode = "rwc" if create else "rw"
        connection = sqlite3.connect(
            f"file:{quote(str(self.path))}?mode={mode}",
            uri=True,
            timeout=self._patience,
            isolation_level=None,  # transactions are begun by us, in the mode that is needed
            check_same_thread=False,  # the pool gives a connection to one thread at a time
            cached_statements=_STATEMENTS,
        )
        try:
            connection.execute(f"PRAGMA cache_size = -{_CACHED_KIB}")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA fullfsync = ON")  # on macOS a plain fsync stops short of the disk
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _refuse_lost(self) -> None:
        """Refuse to continue a file that was deleted or replaced: what is written to it is nowhere."""
        if lost := self._lost():
            raise lost

    def _lost(self) -> StoreUnavailable | None:
        """Return the error of a file that is not there any more, or is another one."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return DatabaseGone(self.where)
        file = (found.st_dev, found.st_ino)
        self._file = self._file or file
        return DatabaseReplaced(self.where) if self._file != file else None

    @contextmanager
    def _held_alone(self) -> Iterator[None]:
        descriptor = os.open(f"{self.path}.upgrade-lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            deadline = time.monotonic() + self._patience
            while not _try_lock(descriptor):
                if time.monotonic() > deadline:
                    raise StoreUnavailable(
                        f"The database {self.where}: another process has been creating or upgrading it for "
                        f"{self._patience:g} s. Wait for it, or end it and try again."
                    )
                time.sleep(0.02)
            yield
        finally:
            os.close(descriptor)

    def _who_holds_it(self) -> str:
        holder = _holder(Path(f"{self.path}-shm"))
        who = f"process {holder}" if holder else "another process"
        return (
            f"{who} has held its write lock for more than {self._patience:g} s. Nothing was lost; "
            "wait for that process or end it, then try again"
        )


def _tables(connection: sqlite3.Connection) -> frozenset[str]:
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return frozenset(name for (name,) in found)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(shared: Path) -> str | None:
    """Return the pid and name of the process that holds the write lock, where the system tells."""
    try:
        inode = shared.stat().st_ino
        # A line: "1: POSIX  ADVISORY  WRITE 4242 08:01:131 120 120".
        locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        for lock in locks:
            if len(lock) == 8 and lock[3] == "WRITE" and lock[5].rpartition(":")[2] == str(inode):
                last = _WAL_WRITE_LOCK if lock[7] == "EOF" else int(lock[7])
                if int(lock[6]) <= _WAL_WRITE_LOCK <= last:
                    name = Path(f"/proc/{int(lock[4])}/comm").read_text().strip()
                    return f"{lock[4]} ({name})"
    except (OSError, ValueError):
        return None
    return None
