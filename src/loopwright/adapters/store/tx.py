"""One transaction over a SQL connection: the port's `Tx`, the same for both databases."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Any, Final, TypeVar
from uuid import uuid4

from sqlalchemy import Connection, Table, delete, select
from sqlalchemy.exc import IntegrityError

from loopwright.adapters.store import schema, statements
from loopwright.adapters.store.chain import FIRST, chain_of, hash_of
from loopwright.adapters.store.codec import decode, encode, encode_some, field_of, storable
from loopwright.adapters.store.upcast import UPCASTERS, Upcaster, upcast
from loopwright.core.errors import StaleVersion
from loopwright.core.happenings import Event, RecordedEvent
from loopwright.core.ids import Kind, make

R = TypeVar("R")
InsertOrSkip = Callable[[Table], Any]
"""Builds an INSERT that skips a row which breaks a unique key: without it, PostgreSQL would end the transaction."""

_EVENT_FIELDS: Final = tuple(field.name for field in fields(Event))
_EVENT_TEXTS: Final = ("type", "actor", "project", "loop", "plan", "task", "attempt", "run")


class SqlTx:
    """Rows and events of one transaction."""

    def __init__(
        self,
        connection: Connection,
        *,
        clock: Callable[[Connection], datetime],
        insert_or_skip: InsertOrSkip,
        writable: bool,
        upcasters: Mapping[tuple[str, int], Upcaster] = UPCASTERS,
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._insert_or_skip = insert_or_skip
        self._writable = writable
        self._upcasters = upcasters
        self._now: datetime | None = None
        self._appended: list[Event] = []
        self._known: dict[tuple[type[Any], str], Any] = {}
        """Rows by id as this transaction knows them: no other writer runs beside it, and a reader sees one state."""
        self.dirty = False
        """Whether anything was changed."""

    def now(self) -> datetime:
        """Return the database's clock, the same moment for the whole transaction."""
        if self._now is None:
            self._now = self._clock(self._connection)
        return self._now

    def get(self, kind: type[R], id: str) -> R | None:
        """Return one row by id."""
        if (kind, id) in self._known:
            row: R = self._known[kind, id]
            return row
        table = schema.table_of(kind)
        found = self._connection.execute(statements.one(table), {statements.ID: storable(id)}).first()
        if found is None:
            return None
        row = self._known[kind, id] = _decoded(kind, table, found)
        return row

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
        table = schema.table_of(kind)
        query = statements.matching(kind, where, order_by, limited=limit is not None)
        values = statements.values_of(kind, where)
        if limit is not None:
            values[statements.LIMIT] = limit
        return [_decoded(kind, table, row) for row in self._connection.execute(query, values)]

    def count(self, kind: type[Any], /, **where: Any) -> int:
        """Count the rows that match."""
        query = statements.matching(kind, where, None, limited=False)
        return int(self._connection.execute(query, statements.values_of(kind, where)).scalar_one())

    def insert(self, row: Any) -> None:
        """Add a row."""
        table = schema.table_of(type(row))
        self._write()
        added = self._connection.execute(self._insert_or_skip(table).returning(table.c.id), encode(row))
        if added.first() is None:
            raise StaleVersion(f"{table.name}: {row.id} is there already, or another row has its place")

    def update(
        self, kind: type[R], id: str, /, *, expect: Mapping[str, Any] | None = None, **changes: Any
    ) -> R:
        """Change a row, provided that it is as expected."""
        table = schema.table_of(kind)
        if "id" in changes:
            raise TypeError("an id never changes")
        self._write()
        expected = expect or {}
        values = {statements.ID: storable(id), **statements.values_of(kind, expected)}
        values |= {statements.becoming(name): value for name, value in encode_some(kind, changes).items()}
        query = statements.change(kind, expected, tuple(changes))
        if any(changes.keys() & set(key) for key in schema.unique_keys(table)):
            row = self._update_place(query, values, table, id)
        else:
            row = self._connection.execute(query, values).first()
        if row is None:
            raise StaleVersion(f"{table.name}: {id} is gone or no longer as expected")
        changed = self._known[kind, id] = _decoded(kind, table, row)
        return changed

    def delete(self, kind: type[Any], id: str) -> bool:
        """Remove a row and say whether it was there."""
        table = schema.table_of(kind)
        self._write()
        self._known.pop((kind, id), None)
        return self._connection.execute(delete(table).where(table.c.id == storable(id))).rowcount == 1

    def append(self, event: Event) -> None:
        """Record an event."""
        self._write()
        self._appended.append(storable_event(event))

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
        """Return committed events in order, lifted to their newest version unless asked for `as_stored`."""
        columns = schema.events.c
        query = select(schema.events).where(columns.n > after).order_by(columns.n).limit(limit)
        for column, wanted in ((columns.plan, plan), (columns.task, task), (columns.run, run)):
            if wanted is not None:
                query = query.where(column == wanted)
        if types:
            query = query.where(columns.type.in_(types))
        rows = self._connection.execute(query)
        found = [_decoded(RecordedEvent, schema.events, row) for row in rows]
        return found if as_stored else [upcast(event, self._upcasters) for event in found]

    def last_event(self) -> int:
        """Return the highest committed event number."""
        return int(self._connection.execute(statements.LAST_NUMBER).scalar_one())

    def finish(self) -> None:
        """Number, chain and store the appended events: the last thing before the commit."""
        if not self._appended:
            return
        count = len(self._appended)
        last = self._connection.execute(statements.TAKE_NUMBERS, {statements.COUNT: count}).scalar_one()
        names = sorted({chain_of(event) for event in self._appended})
        stored = self._connection.execute(statements.HEADS, {statements.HEADS_WANTED: names})
        before = {chain.id: chain.hash for chain in stored}
        recorded = number(self._appended, first=last - count + 1, at=self.now(), heads=before, ids=_random_id)
        heads = {chain_of(event): event.hash for event in recorded}
        for name, head in heads.items():
            change = statements.MOVE_HEAD if name in before else statements.FIRST_HEAD
            values = {statements.ID: name, statements.becoming("hash"): head}
            self._connection.execute(change, values)
        self._connection.execute(statements.RECORD, [encode(event) for event in recorded])

    def _update_place(self, query: Any, values: Mapping[str, Any], table: Table, id: str) -> Any:
        # In a savepoint, so that the transaction can go on after a place was found taken.
        try:
            with self._connection.begin_nested():
                return self._connection.execute(query, values).first()
        except IntegrityError as error:
            raise StaleVersion(f"{table.name}: the place that {id} should take is taken") from error

    def _write(self) -> None:
        if not self._writable:
            raise TypeError("a reading transaction cannot write: use `transact`")
        self.dirty = True


def storable_event(event: Event) -> Event:
    """Return the event with texts that every database can hold, and check its payload, before it is hashed."""
    texts: dict[str, Any] = {
        name: storable(value) for name in _EVENT_TEXTS if (value := getattr(event, name)) is not None
    }
    payload = field_of(RecordedEvent, "payload")
    return replace(event, **texts, payload=payload.decode(payload.encode(event.payload)))


def _random_id(_n: int) -> str:
    return make(Kind.EVENT, uuid4())


def number(
    appended: Sequence[Event],
    *,
    first: int,
    at: datetime,
    heads: Mapping[str, str],
    ids: Callable[[int], str] = _random_id,
) -> list[RecordedEvent]:
    """Return events with their numbers and hashes, going on from the chains' last hashes."""
    ends = dict(heads)
    recorded = []
    for n, event in enumerate(appended, start=first):
        plain = {name: getattr(event, name) for name in _EVENT_FIELDS}
        prev_hash = ends.get(chain_of(event), FIRST)
        facts = {**plain, "n": n, "id": ids(n), "at": at, "prev_hash": prev_hash}
        done = RecordedEvent(**facts, hash=hash_of(facts))
        ends[chain_of(event)] = done.hash
        recorded.append(done)
    return recorded


def _decoded(kind: type[R], table: Table, row: Sequence[Any]) -> R:
    return decode(kind, dict(zip(statements.columns_of(table), row, strict=True)))
