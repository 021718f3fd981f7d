"""What differs between the two databases, as a Protocol. `sqlite` and `postgres` fill it."""

from contextlib import AbstractContextManager
from typing import Protocol

from sqlalchemy import Connection, Engine

from loopwright.adapters.store.link import Link
from loopwright.adapters.store.wake import Wake


class Backend(Protocol):
    """One database: how to begin, what its errors mean, and how to wake others."""

    @property
    def engine(self) -> Engine:
        """Connections for what is not a transaction over rows: creating the tables, upgrading them."""

    @property
    def wake(self) -> Wake:
        """The way to wake other processes."""

    @property
    def where(self) -> str:
        """The database in words for people, without a password."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What it raises when something is wrong with it."""

    def writing(self) -> AbstractContextManager[Link]:
        """Begin a transaction that no other writer of this home runs beside."""

    def reading(self) -> AbstractContextManager[Link]:
        """Begin a transaction that sees one state of the rows throughout."""

    def announce(self, link: Link, /) -> None:
        """Do what must be done inside a transaction so that others wake when it commits."""

    def may_run_again(self, error: Exception, /) -> bool:
        """Say whether the transaction certainly did not happen and may succeed when run again."""

    def explain(self, error: Exception) -> Exception:
        """Return the error that says what happened and what to do, or the error itself when it is a defect."""

    def close(self) -> None:
        """Let go of all connections."""

    def tables(self, connection: Connection) -> frozenset[str]:
        """Return the names of the tables that are there."""

    def is_settled(self, connection: Connection, /) -> bool:
        """Say whether the database is set up as it should be, apart from its tables."""

    def upgrading(self) -> AbstractContextManager[Connection]:
        """Hold the database alone for creating or upgrading it; commit at the end, or change nothing."""

    def backup(self, found: str, /) -> str | None:
        """Copy the database aside while it is held for upgrading; return where, None if that is the server's task."""
