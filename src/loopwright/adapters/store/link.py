"""What a transaction needs of a connection: SQL in, rows out. `sqlite_links` and `postgres` fill it.

The statements of a transaction are few and plain, so they are written as text and given to the driver directly: a
database toolkit between the two takes several times as long as SQLite does to answer.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol


class Unsure(Exception):
    """The connection broke during a commit, so nobody knows yet whether it happened."""


class Link(Protocol):
    """One connection while it is in a transaction."""

    @property
    def taken(self) -> type[Exception]:
        """What is raised when a row would break a unique key."""

    def rows(self, sql: str, values: Sequence[Any] = (), /) -> list[Any]:
        """Carry out a statement, with a `?` for each value, and return all its rows, if it has any."""

    def many(self, sql: str, values: Sequence[Sequence[Any]], /) -> None:
        """Carry out a statement once for each list of values."""

    def now(self) -> datetime:
        """Return the database's time."""

    def commit(self) -> None:
        """Make what was done durable, or raise `Unsure`, or the driver's error when it certainly did not happen."""
