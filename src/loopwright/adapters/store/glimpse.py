"""A quick look into a SQLite home with nothing but the standard library.

Loading the database toolkit takes longer than reading a whole home, and a command that only shows how things stand
must answer at once. So this reads, and only reads, what the real store wrote; anything out of the ordinary (another
schema, a lock, a damaged file) is left to the real store, which can explain it.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn, TypeVar
from urllib.parse import quote

from loopwright.adapters.store.chain import moment_text
from loopwright.adapters.store.codec import Field, decode, field_of, storable
from loopwright.adapters.store.tables import HEAD, VERSION_TABLE, name_of
from loopwright.adapters.store.upcast import upcast
from loopwright.core.happenings import Event, RecordedEvent
from loopwright.ports import Tx

R = TypeVar("R")
T = TypeVar("T")
_MANY = (list, tuple, set, frozenset)


class Glimpse:
    """One SQLite home, opened for reading."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @classmethod
    def open(cls, path: Path) -> "Glimpse | None":
        """Open a home's file; None when the real store should have a look instead."""
        try:
            connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, isolation_level=None)
            connection.row_factory = sqlite3.Row
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
            return work(GlimpseTx(self._connection))
        finally:
            self._connection.execute("ROLLBACK")

    def close_sync(self) -> None:
        """Let go of the file."""
        self._connection.close()


class GlimpseTx:
    """The reading half of a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._now = datetime.now(UTC)

    def now(self) -> datetime:
        """Return the time of this machine, which is the database's machine too."""
        return self._now

    def get(self, kind: type[R], id: str) -> R | None:
        """Return one row by id."""
        rows = self.find(kind, id=id, limit=1)
        return rows[0] if rows else None

    def find(
        self,
        kind: type[R],
        /,
        *,
        order_by: Sequence[str] = (),
        limit: int | None = None,
        **where: Any,
    ) -> list[R]:
        """Return the rows that match, in order."""
        matches, values = _matches(kind, where)
        query = f"SELECT * FROM {name_of(kind)}{matches} ORDER BY {_order(kind, order_by)}"  # noqa: S608 - known names
        if limit is not None:
            query, values = f"{query} LIMIT ?", [*values, limit]
        return [_decoded(kind, row) for row in self._connection.execute(query, values)]

    def count(self, kind: type[Any], /, **where: Any) -> int:
        """Count the rows that match."""
        matches, values = _matches(kind, where)
        query = f"SELECT count(*) FROM {name_of(kind)}{matches}"  # noqa: S608 - known names
        return int(self._connection.execute(query, values).fetchone()[0])

    def events(
        self,
        *,
        after: int = 0,
        limit: int = 1000,
        plan: str | None = None,
        task: str | None = None,
        run: str | None = None,
        types: Sequence[str] = (),
        as_stored: bool = False,
    ) -> list[RecordedEvent]:
        """Return committed events in order."""
        wanted = {"plan": plan, "task": task, "run": run, "type": tuple(types) or None}
        where = {name: value for name, value in wanted.items() if value is not None}
        matches, values = _matches(RecordedEvent, where)
        both = f"{matches} AND n > ?" if matches else " WHERE n > ?"
        query = f"SELECT * FROM events{both} ORDER BY n LIMIT ?"  # noqa: S608 - known names
        rows = self._connection.execute(query, [*values, after, limit])
        found = [_decoded(RecordedEvent, row) for row in rows]
        return found if as_stored else [upcast(event) for event in found]

    def last_event(self) -> int:
        """Return the highest committed event number."""
        return int(self._connection.execute("SELECT n FROM counters WHERE id = 'events'").fetchone()[0])

    def insert(self, row: Any) -> None:
        """Refuse."""
        _refuse(row)

    def update(
        self, kind: type[R], id: str, /, *, expect: Mapping[str, Any] | None = None, **changes: Any
    ) -> R:
        """Refuse."""
        _refuse(kind, id, expect, changes)

    def delete(self, kind: type[Any], id: str) -> bool:
        """Refuse."""
        _refuse(kind, id)

    def append(self, event: Event) -> None:
        """Refuse."""
        _refuse(event)


def _refuse(*_what: object) -> NoReturn:
    raise TypeError("a glimpse only reads: use the store")


def _matches(kind: type[Any], where: Mapping[str, Any]) -> tuple[str, list[Any]]:
    terms: list[str] = []
    values: list[Any] = []
    for name, wanted in where.items():
        field = field_of(kind, name)
        some = list(wanted) if isinstance(wanted, _MANY) else [wanted]
        known = [_column(field, value) for value in some if value is not None]
        choices = [f'"{name}" IN ({", ".join("?" * len(known))})'] if known or None not in some else []
        choices += [f'"{name}" IS NULL'] if None in some else []
        terms.append("(" + " OR ".join(choices) + ")")
        values += known
    return (" WHERE " + " AND ".join(terms) if terms else ""), values


def _order(kind: type[Any], order_by: Sequence[str]) -> str:
    terms = []
    for term in order_by:
        field = field_of(kind, term.removeprefix("-"))
        if field.storage == "json":
            raise TypeError(f"{kind.__name__}.{field.name} has no order")
        # SQLite puts NULL first when going up and last when going down, as the store does everywhere.
        terms.append(f'"{field.name}" {"DESC" if term.startswith("-") else "ASC"}')
    return ", ".join([*terms, '"id" ASC'])


def _column(field: Field, value: Any) -> Any:
    if field.name == "id":
        return storable(value)
    stored = field.encode(value)
    return moment_text(stored) if field.storage == "moment" else stored


def _decoded(kind: type[R], row: sqlite3.Row) -> R:
    columns = {name: row[name] for name in row.keys()}  # noqa: SIM118 - a Row iterates over its values
    for name, value in columns.items():
        if value is not None and field_of(kind, name).storage == "moment":
            columns[name] = datetime.fromisoformat(value)
    return decode(kind, columns)
