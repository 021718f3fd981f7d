"""What differs between the two databases, as a Protocol. `sqlite` and `postgres` fill it."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from loopwright.adapters.store.tx import Link
from loopwright.adapters.store.wake import Wake

if TYPE_CHECKING:
    # Loading it takes as long as a short command: a home in SQLite needs it for an upgrade alone.
    from sqlalchemy import Connection, Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is in a database, apart from its rows."""

    tables: frozenset[str]
    versions: tuple[str, ...]
    """What its version table says."""
    settled: bool
    """Whether it is set up as it should be, apart from its tables."""


class Backend(Protocol):
    """One database: how to begin, what its errors mean, and how to wake others."""

    @property
    def engine(self) -> "Engine":
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
        """Return whether the transaction certainly did not happen and may succeed when run again."""

    def explain(self, error: Exception) -> Exception:
        """Return the error that says what happened and what to do, or the error itself when it is a defect."""

    def close(self) -> None:
        """Let go of all connections."""

    def look(self) -> Seen:
        """Return what is there, without changing anything."""

    def make(self, head: str, /) -> bool:
        """Make the tables of this revision where there is nothing yet, in the quickest way; False if there is none."""

    def upgrading(self) -> AbstractContextManager["Connection"]:
        """Hold the database alone for creating or upgrading it; commit at the end, or change nothing."""

    def backup(self, found: str, /) -> str | None:
        """Copy the database aside while it is held for upgrading; return where, None if that is the server's task."""

    def backup_daily(self, now: datetime, /) -> None:
        """Copy the database aside if that was not done for a day, unless that is the server's task."""
