"""One transaction over a SQL connection: the port's `Tx`, the same for both databases."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Any, Final, Protocol, TypeVar
from uuid import uuid4

from loopwright.adapters.store import statements
from loopwright.adapters.store.chain import FIRST, chain_of, event_hash, hash_of
from loopwright.adapters.store.codec import (
    UPCASTERS,
    Upcaster,
    decode_again,
    decode_columns,
    decode_row,
    encode,
    encode_some,
    field_of,
    storable,
    upcast,
)
from loopwright.adapters.store.tables import name_of, stored_as
from loopwright.core.rows.events import Event, RecordedEvent
from loopwright.core.values.errors import StaleVersion
from loopwright.core.values.ids import Kind, make


class Unsure(Exception):
    """The connection broke during a commit, so it is unknown whether it happened."""


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


R = TypeVar("R")
_EVENT_FIELDS: Final = tuple(field.name for field in fields(Event))
_EVENT_TEXTS: Final = ("type", "actor", "project", "loop", "plan", "task", "attempt", "run")


class SqlTx:
    """Rows and events of one transaction."""

    def __init__(
        self,
        link: Link,
        *,
        writable: bool,
        upcasters: Mapping[tuple[str, int], Upcaster] = UPCASTERS,
    ) -> None:
        self._link = link
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
            self._now = self._link.now()
        return self._now

    def get(self, kind: type[R], id: str) -> R | None:
        """Return one row by id."""
        if (kind, id) in self._known:
            row: R = self._known[kind, id]
            return row
        found = self._link.rows(statements.one(kind), (storable(id),))
        if not found:
            return None
        row = self._known[kind, id] = decode_again(kind, found[0])
        return row

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
        """Return the rows that match, in order."""
        values = [*statements.values_of(kind, where), *statements.values_behind(kind, order_by, after)]
        if limit is not None:
            values.append(limit)
        query = statements.matching(kind, where, order_by, behind=bool(after), limited=limit is not None)
        found: list[R] = []
        for stored in self._link.rows(query, values):
            # The id is the first column of every table.
            key = (kind, stored[0])
            if key not in self._known:
                self._known[key] = decode_again(kind, stored)
            found.append(self._known[key])
        return found

    def count(self, kind: type[Any], /, **where: Any) -> int:
        """Count the rows that match."""
        [[number]] = self._link.rows(statements.counting(kind, where), statements.values_of(kind, where))
        return int(number)

    def tally(self, kind: type[Any], by: str, /, **where: Any) -> dict[str, int]:
        """Count the rows that match for each text in a column."""
        return dict(self._link.rows(statements.tally(kind, by, where), statements.values_of(kind, where)))

    def columns(self, kind: type[Any], names: Sequence[str], /, **where: Any) -> list[tuple[Any, ...]]:
        """Return some columns of the rows that match."""
        query = statements.columns(kind, names, where)
        return decode_columns(kind, names, self._link.rows(query, statements.values_of(kind, where)))

    def insert(self, row: Any) -> None:
        """Add a row."""
        kind = type(row)
        query = statements.insert(kind)
        self._write()
        if not self._link.rows(query, list(encode(row).values())):
            raise StaleVersion(f"{name_of(kind)}: {row.id} is there already, or another row has its place")

    def update(
        self, kind: type[R], id: str, /, *, expect: Mapping[str, Any] | None = None, **changes: Any
    ) -> R:
        """Change a row, provided that it is as expected."""
        stored = stored_as(kind)
        if "id" in changes:
            raise TypeError("an id never changes")
        self._write()
        expected = expect or {}
        values = [*encode_some(kind, changes).values(), storable(id), *statements.values_of(kind, expected)]
        query = statements.change(kind, expected, tuple(changes))
        if changes.keys().isdisjoint(stored.unique):
            rows = self._link.rows(query, values)
        else:
            rows = self._update_place(query, values, stored.table, id)
        if not rows:
            raise StaleVersion(f"{stored.table}: {id} is gone or no longer as expected")
        changed = self._known[kind, id] = decode_again(kind, rows[0])
        return changed

    def delete(self, kind: type[Any], id: str) -> bool:
        """Remove a row and return whether it was there."""
        query = statements.delete(kind)
        self._write()
        self._known.pop((kind, id), None)
        return bool(self._link.rows(query, (storable(id),)))

    def append(self, event: Event) -> None:
        """Record an event."""
        self._write()
        self._appended.append(storable_event(event))

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
        """Return committed events in order, lifted to their newest version unless asked for `as_stored`."""
        wanted = {
            "project": None if projects is None else tuple(projects),
            "loop": loop,
            "plan": plan,
            "task": task,
            "run": run,
            "type": tuple(types) or None,
        }
        where = {name: value for name, value in wanted.items() if value is not None}
        last = statements.LARGEST if upto is None else upto
        values = [after, last, *statements.values_of(RecordedEvent, where), limit]
        select = statements.events(where, newest=newest)
        found = [decode_row(RecordedEvent, row) for row in self._link.rows(select, values)]
        if newest:
            found.reverse()
        return found if as_stored else [upcast(event, self._upcasters) for event in found]

    def last_event(self) -> int:
        """Return the highest committed event number."""
        [[number]] = self._link.rows(statements.LAST_NUMBER)
        return int(number)

    def put_back(self, events: Sequence[RecordedEvent]) -> None:
        """Record events again that the database lost."""
        self._write()
        plans = {one.plan for one in events}
        known = {row[0] for plan in plans for row in self._link.rows(statements.KNOWN_EVENTS, (plan,))}
        lost = sorted((one for one in events if one.id not in known), key=lambda one: one.n)
        if not lost:
            return
        last = self.last_event()
        names = sorted({chain_of(one) for one in lost})
        before: dict[str, str] = dict(self._link.rows(statements.heads(len(names)), names))
        if lost[0].n <= last or any(
            _first_of(lost, name).prev_hash != before.get(name, FIRST) for name in names
        ):
            lost = again(lost, first=last + 1, heads=before)
        self._link.rows(statements.TAKE_NUMBERS, (lost[-1].n - last,))
        heads = {chain_of(one): one.hash for one in lost}
        for name, head in heads.items():
            change = statements.MOVE_HEAD if name in before else statements.FIRST_HEAD
            self._link.rows(change, (head, name))
        self._link.many(statements.record(), [tuple(encode(one).values()) for one in lost])

    def finish(self) -> None:
        """Number, chain and store the appended events: the last thing before the commit."""
        if not self._appended:
            return
        count = len(self._appended)
        [[last]] = self._link.rows(statements.TAKE_NUMBERS, (count,))
        names = sorted({chain_of(event) for event in self._appended})
        before: dict[str, str] = dict(self._link.rows(statements.heads(len(names)), names))
        recorded = number(self._appended, first=last - count + 1, at=self.now(), heads=before, ids=_random_id)
        heads = {chain_of(event): event.hash for event in recorded}
        for name, head in heads.items():
            change = statements.MOVE_HEAD if name in before else statements.FIRST_HEAD
            self._link.rows(change, (head, name))
        self._link.many(statements.record(), [tuple(encode(event).values()) for event in recorded])

    def _update_place(self, query: str, values: Sequence[Any], table: str, id: str) -> list[Any]:
        # In a savepoint, so that the transaction can continue after a place was found taken.
        self._link.rows("SAVEPOINT place")
        try:
            rows = self._link.rows(query, values)
        except self._link.taken as error:
            self._link.rows("ROLLBACK TO SAVEPOINT place")
            raise StaleVersion(f"{table}: the place that {id} should take is taken") from error
        self._link.rows("RELEASE SAVEPOINT place")
        return rows

    def _write(self) -> None:
        if not self._writable:
            raise TypeError("a reading transaction only reads: use `transact`")
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


def _first_of(events: Sequence[RecordedEvent], chain: str) -> RecordedEvent:
    return next(one for one in events if chain_of(one) == chain)


def again(events: Sequence[RecordedEvent], *, first: int, heads: Mapping[str, str]) -> list[RecordedEvent]:
    """Return events with new numbers and hashes; what they tell, and when it was, stays."""
    ends = dict(heads)
    made = []
    for n, event in enumerate(events, start=first):
        moved = replace(event, n=n, prev_hash=ends.get(chain_of(event), FIRST))
        moved = replace(moved, hash=event_hash(moved))
        ends[chain_of(event)] = moved.hash
        made.append(moved)
    return made


def number(
    appended: Sequence[Event],
    *,
    first: int,
    at: datetime,
    heads: Mapping[str, str],
    ids: Callable[[int], str] = _random_id,
) -> list[RecordedEvent]:
    """Return events with their numbers and hashes, continuing from the chains' last hashes."""
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
