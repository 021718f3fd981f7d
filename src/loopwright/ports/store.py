"""A home's database."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, Final, Protocol, TypeVar

from loopwright.core.rows.events import Event, RecordedEvent

T = TypeVar("T")
R = TypeVar("R")


class AnyValue(Enum):
    """Any value but NULL, as a condition in `where`."""

    NOT_NULL = "not null"


NOT_NULL: Final = AnyValue.NOT_NULL


class Tx(Protocol):
    """One transaction over the rows. Everything is committed together with its events, or nothing is."""

    def now(self) -> datetime:
        """Return the database's own clock: the only one that leases and fences trust."""

    def get(self, kind: type[R], id: str) -> R | None:
        """Return one row by id."""

    def find(
        self,
        kind: type[R],
        /,
        *,
        order_by: Sequence[str] = (),
        limit: int | None = None,
        after: Sequence[Any] = (),
        **where: Any,
    ) -> list[R]:
        """Return rows whose columns equal `where`; a list, tuple, set or frozenset means any of them.

        `None` means IS NULL, `NOT_NULL` any value. `order_by` takes column names, with `-` in front for descending;
        the id is always the last tie-breaker. `after` is a place in this order, the values of its columns and an
        id: only rows behind it are returned. Its columns cannot be NULL.
        """

    def count(self, kind: type[Any], /, **where: Any) -> int:
        """Count rows, with the same `where` as `find`."""

    def tally(self, kind: type[Any], by: str, /, **where: Any) -> dict[str, int]:
        """Count rows for each text in a column that is never NULL, with the same `where` as `find`."""

    def columns(self, kind: type[Any], names: Sequence[str], /, **where: Any) -> list[tuple[Any, ...]]:
        """Return some columns of rows, in any order: of many rows, the rest is not read. `where` is that of `find`."""

    def insert(self, row: Any) -> None:
        """Add a row; a second one with the same id raises `StaleVersion`."""

    def update(
        self, kind: type[R], id: str, /, *, expect: Mapping[str, Any] | None = None, **changes: Any
    ) -> R:
        """Change a row and return it; raise `StaleVersion` unless it exists and its columns equal `expect`."""

    def delete(self, kind: type[Any], id: str) -> bool:
        """Remove a row and return whether it existed."""

    def append(self, event: Event) -> None:
        """Record an event; it is numbered when the transaction commits."""

    def events(
        self,
        *,
        after: int = 0,
        upto: int | None = None,
        limit: int = 1000,
        projects: Sequence[str] | None = None,
        loop: str | None = None,
        plan: str | None = None,
        task: str | None = None,
        run: str | None = None,
        types: Sequence[str] = (),
        as_stored: bool = False,
        newest: bool = False,
    ) -> list[RecordedEvent]:
        """Return committed events with a number above `after`, and with `upto` at most that, in order.

        They are the first `limit` ones, or the `newest`.

        Old versions are brought up to date, unless `as_stored`: a hash fits only what was written.
        """

    def put_back(self, events: Sequence[RecordedEvent]) -> None:
        """Record events again that the database lost; those that it has stay as they are.

        They keep their numbers if all of these are still to come, else they are numbered and chained again.
        """

    def last_event(self) -> int:
        """Return the highest committed event number, 0 when there is none."""


class Store(Protocol):
    """A home's database."""

    async def transact(self, name: str, work: Callable[[Tx], T]) -> T:
        """Run `work` in one writing transaction, named for failpoints and tracing.

        It may be run again after a conflict, so it must have no effect but through its `Tx`.
        """

    async def read(self, work: Callable[[Tx], T]) -> T:
        """Run `work` in one reading transaction."""

    async def changed(self, timeout: float, *, ignoring: Collection[str] = ()) -> bool:
        """Wait until some process committed something, at most `timeout` seconds; return whether it did.

        Transactions of this process with a name in `ignoring` do not count.
        """

    async def back_up(self, now: datetime) -> None:
        """Copy the database aside if that was not done for a day; raise instead of keeping a damaged copy."""

    async def close(self) -> None:
        """Let go of connections and sockets."""
