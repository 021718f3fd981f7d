"""A home in a PostgreSQL database, shared by many machines.

Writers of a home run one after another: each begins by locking the row that counts events. So every transaction sees
all that was committed before it, as in SQLite, nothing has to be run again because of another writer, and event
numbers are committed in order. The lock is held for the few milliseconds of a transaction; an idle one is ended by
the server.
"""

import logging
import os
import secrets
import select
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import psycopg
from sqlalchemy import URL, Connection, create_engine, event, text
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError, SQLAlchemyError

from loopwright.adapters.store.backend import Seen
from loopwright.adapters.store.tables import VERSION_TABLE
from loopwright.adapters.store.tx import Link, Unsure
from loopwright.adapters.store.wake import Signal
from loopwright.core.values.errors import StaleVersion, StoreUnavailable

_log: Final = logging.getLogger(__name__)
_CHANNEL: Final = "loopwright"
_UPGRADE_LOCK: Final = 0x6C6F6F70  # any number, as long as it is always the same
_CONFLICTS: Final = frozenset({"40001", "40P01"})
_IDLE_LIMIT_S: Final = 30
_CONNECT_LIMIT_S: Final = 10
_RECONNECT_S: Final = 1.0

_SENTENCES: Final = {
    "55P03": "another worker has held the home's lock for too long. Nothing was lost; look for a stuck session in "
    "pg_stat_activity, then try again",
    "40001": "there were too many conflicts with other writers. Nothing was lost; try again",
    "40P01": "there were too many conflicts with other writers. Nothing was lost; try again",
    "53100": "the server's disk is full. Nothing was lost; free some space and try again",
    "25006": "it is read-only (a standby?). Use the address of the primary server",
    "28P01": "the password is wrong. Correct the address of the home",
    "28000": "the server does not let this user in. Correct the address of the home, or pg_hba.conf",
    "3D000": "there is no such database. Create it, or correct the address of the home",
    "42501": "this user may not do that. Grant it the rights to create and write tables",
}


class PostgresBackend:
    """One PostgreSQL database and the workers that share it."""

    def __init__(self, url: URL, *, patience: float) -> None:
        url = url.set(drivername="postgresql+psycopg")
        self.where = url.set(drivername="postgresql").render_as_string(hide_password=True)
        self._patience = patience
        self.engine = create_engine(
            url,
            isolation_level="READ COMMITTED",
            pool_size=5,
            max_overflow=5,
            connect_args={
                "connect_timeout": _CONNECT_LIMIT_S,
                "application_name": f"loopwright {os.getpid()}",
            },
        )
        event.listen(self.engine, "connect", self._prepare)
        self.errors = (SQLAlchemyError,)
        self.wake = NotifyWake(url.set(drivername="postgresql").render_as_string(hide_password=False))

    @contextmanager
    def writing(self) -> Iterator[Link]:
        """Lock the row that counts events: the next statement sees everything that was committed before."""
        with self.engine.connect() as connection:
            link = PostgresLink(connection)
            link.rows("SELECT n FROM counters WHERE id = 'events' FOR UPDATE")
            yield link

    @contextmanager
    def reading(self) -> Iterator[Link]:
        """Read one state of the rows throughout."""
        with self.engine.connect() as connection:
            connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            yield PostgresLink(connection)

    def announce(self, link: Link) -> None:
        """Have the server wake the others when this transaction commits."""
        link.rows("SELECT pg_notify(?, ?)", (_CHANNEL, self.wake.token))

    def may_run_again(self, error: Exception) -> bool:
        """Return whether it was a conflict, or a connection that was lost."""
        return isinstance(error, DBAPIError) and (
            error.connection_invalidated or getattr(error.orig, "sqlstate", None) in _CONFLICTS
        )

    def explain(self, error: Exception) -> Exception:
        """Return what PostgreSQL's error means and what to do."""
        if isinstance(error, IntegrityError):
            return StaleVersion(f"a row would have been left without the row it belongs to ({error.orig})")
        if not isinstance(error, DBAPIError):
            return error
        sentence = _SENTENCES.get(getattr(error.orig, "sqlstate", None) or "")
        if sentence is None and not isinstance(error, OperationalError | InterfaceError):
            return error
        cause = str(error.orig).strip().splitlines() or [""]
        sentence = sentence or "it cannot be reached. Start the server, or correct the address of the home"
        return StoreUnavailable(f"The database {self.where}: {sentence} ({cause[0]}).")

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def look(self) -> Seen:
        """Return what is there; all else that matters is set on each connection."""
        with self.engine.connect() as connection:
            found = connection.execute(
                text("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
            )
            tables = frozenset(found.scalars())
            query = text(f"SELECT version_num FROM {VERSION_TABLE}")  # noqa: S608 - a constant
            versions = tuple(connection.execute(query).scalars()) if VERSION_TABLE in tables else ()
        return Seen(tables=tables, versions=versions, settled=True)

    def make(self, _head: str, /) -> bool:
        """Leave it to the usual way, which loads nothing that is not loaded already."""
        return False

    @contextmanager
    def upgrading(self) -> Iterator[Connection]:
        """Hold the database alone among the workers that want to create or upgrade it."""
        with self.engine.connect() as connection, connection.begin():
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _UPGRADE_LOCK})
            yield connection

    def backup(self, _found: str, /) -> str | None:
        """Leave it to the server: the upgrade is one transaction, and backups are its administrator's."""
        return None

    def backup_daily(self, _now: datetime, /) -> None:
        """Leave it to the server's administrator."""

    def _prepare(self, connection: Any, _record: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET TIME ZONE 'UTC'")
            cursor.execute(f"SET idle_in_transaction_session_timeout = '{_IDLE_LIMIT_S}s'")
            cursor.execute(f"SET lock_timeout = '{int(self._patience * 1000)}ms'")
        connection.commit()


class PostgresLink:
    """A connection in a transaction."""

    taken = IntegrityError

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, values: Sequence[Any] = (), /) -> list[Any]:
        """Carry out a statement and return all its rows, if it has any."""
        result = self._connection.exec_driver_sql(_marked(sql), tuple(values))
        return list(result) if result.returns_rows else []

    def many(self, sql: str, values: Sequence[Sequence[Any]], /) -> None:
        """Carry out a statement once for each list of values."""
        self._connection.exec_driver_sql(_marked(sql), [tuple(one) for one in values])

    def now(self) -> datetime:
        """Return the server's time."""
        [[now]] = self.rows("SELECT clock_timestamp()")
        assert isinstance(now, datetime)
        return now.astimezone(UTC)

    def commit(self) -> None:
        """Have the server make it durable."""
        try:
            self._connection.commit()
        except DBAPIError as error:
            lost = error.connection_invalidated
            self._connection.invalidate()
            if lost:
                raise Unsure from error
            raise


@lru_cache(2000)
def _marked(sql: str) -> str:
    """Return a statement with the driver's marks for values; no other percent or question mark is in any."""
    return sql.replace("?", "%s")


class NotifyWake:
    """Wakes by LISTEN and NOTIFY, on its own connection."""

    def __init__(self, conninfo: str) -> None:
        self.token = secrets.token_hex(8)
        self._conninfo = conninfo
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stop: socket.socket | None = None

    def listen(self, signal: Signal) -> None:
        """Connect, and bump the signal for each notification of another process."""
        with self._lock:
            if self._thread is not None:
                return
            try:
                connection = self._connect()
            except psycopg.OperationalError as error:
                # The query that the caller is about to make says it better.
                _log.warning("no wake-ups, changes are noticed later: %s", error)
                return
            self._stop, stopped = socket.socketpair()
            self._thread = threading.Thread(
                target=self._run, args=(connection, stopped, signal), name="loopwright-wake", daemon=True
            )
            self._thread.start()

    def send(self) -> None:
        """Do nothing: the notification left with the commit."""

    def close(self) -> None:
        """Stop listening."""
        with self._lock:
            if self._thread is not None and self._stop is not None:
                self._stop.send(b"x")
                self._thread.join()
                self._stop.close()
                self._thread = self._stop = None

    def _connect(self) -> psycopg.Connection[Any]:
        connection = psycopg.connect(self._conninfo, autocommit=True, connect_timeout=_CONNECT_LIMIT_S)
        connection.execute(f"LISTEN {_CHANNEL}")
        return connection

    def _run(
        self, connection: psycopg.Connection[Any] | None, stopped: socket.socket, signal: Signal
    ) -> None:
        with stopped:
            while True:
                connection = connection or self._reconnect(signal)
                watched: list[Any] = [stopped] if connection is None else [stopped, connection]
                ready, _, _ = select.select(watched, [], [], _RECONNECT_S if connection is None else None)
                if stopped in ready:
                    break
                if connection is not None and not self._take(connection, signal):
                    connection.close()
                    connection = None
            if connection is not None:
                connection.close()

    def _reconnect(self, signal: Signal) -> psycopg.Connection[Any] | None:
        try:
            connection = self._connect()
        except psycopg.OperationalError as error:
            _log.warning("the database does not answer, trying again: %s", error)
            return None
        signal.bump()  # whatever was committed in between
        return connection

    def _take(self, connection: psycopg.Connection[Any], signal: Signal) -> bool:
        """Bump for what came in; return whether the connection still stands."""
        try:
            connection.pgconn.consume_input()
        except psycopg.OperationalError:
            return False
        others = False
        while (notification := connection.pgconn.notifies()) is not None:
            others = others or notification.extra.decode() != self.token
        if others:
            signal.bump()
        return True
