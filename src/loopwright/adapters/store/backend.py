"""What differs between the two databases, as a Protocol. `sqlite` and `postgres` fill it."""

from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import Connection, Engine, Table
from sqlalchemy.exc import SQLAlchemyError

from loopwright.adapters.store.wake import Wake


class Backend(Protocol):
    """One database: how to begin, what its errors mean, and how to wake others."""

    @property
    def engine(self) -> Engine:
        """The connections."""

    @property
    def wake(self) -> Wake:
        """The way to wake other processes."""

    @property
    def where(self) -> str:
        """The database in words for people, without a password."""

    def begin_writing(self, connection: Connection) -> None:
        """Begin a transaction that no other writer of this home runs beside."""

    def begin_reading(self, connection: Connection) -> None:
        """Begin a transaction that sees one state of the rows throughout."""

    def clock(self, connection: Connection, /) -> datetime:
        """Return the database's time."""

    def insert_or_skip(self, table: Table) -> Any:
        """Build an INSERT that skips a row which breaks a unique key."""

    def announce(self, connection: Connection, /) -> None:
        """Do what must be done inside a transaction so that others wake when it commits."""

    def may_run_again(self, error: SQLAlchemyError, /) -> bool:
        """Say whether the transaction certainly did not happen and may succeed when run again."""

    def explain(self, error: SQLAlchemyError) -> Exception:
        """Return the error that says what happened and what to do, or the error itself when it is a defect."""

    def tables(self, connection: Connection) -> frozenset[str]:
        """Return the names of the tables that are there."""

    def is_settled(self, connection: Connection, /) -> bool:
        """Say whether the database is set up as it should be, apart from its tables."""

    def upgrading(self) -> AbstractContextManager[Connection]:
        """Hold the database alone for creating or upgrading it; commit at the end, or change nothing."""

    def backup(self, found: str, /) -> str | None:
        """Copy the database aside while it is held for upgrading; return where, None if that is the server's task."""
