"""A Store in memory with the manners of the real ones: it passes the same contract suite.

Rows are put through the same codec, so that a value comes back exactly as a database would give it, and the unique
keys and owners of the tables hold here too.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import Any, Final, TypeVar
from uuid import UUID

from loopwright.adapters.store.chain import chain_of
from loopwright.adapters.store.codec import (
    UPCASTERS,
    Field,
    Upcaster,
    decode,
    encode,
    field_of,
    fields_of,
    storable,
    upcast,
)
from loopwright.adapters.store.tables import OWNERS, STORED, stored_as
from loopwright.adapters.store.tx import again, number, storable_event
from loopwright.adapters.store.wake import Signal
from loopwright.core.rows.events import Event, RecordedEvent
from loopwright.core.values.errors import StaleVersion
from loopwright.core.values.ids import Kind, make
from loopwright.ports import NOT_NULL, Clock, Failpoint, Tx, no_failpoint

_NOTHING: Mapping[str, Any] = {}


class Table(dict[str, Any]):
    """Rows by id. They change through `put` and `drop` alone, which keep what is known about columns."""

    def __init__(self, kind: type[Any]) -> None:
        super().__init__()
        self._kind = kind
        self._by: dict[str, dict[Any, dict[str, Any]]] = {}
        """For each column that was looked for: the rows that have a value there."""

    def put(self, row: Any) -> None:
        """Add a row, or replace the one with its id."""
        before = self.get(row.id)
        for name, places in self._by.items():
            value = getattr(row, name)
            if before is not None and (was := getattr(before, name)) != value:
                del places[was][row.id]
            places.setdefault(value, {})[row.id] = row
        self[row.id] = row

    def drop(self, id: str) -> None:
        """Forget a row, if it is there."""
        before = self.pop(id, None)
        if before is not None:
            for name, places in self._by.items():
                del places[getattr(before, name)][id]

    def near(self, wanted: Mapping[str, Any]) -> Iterable[Any]:
        """Return few rows, among which are all that have these values; a list means any of them."""
        best: Sequence[Mapping[str, Any]] = [self]
        found: Sequence[Mapping[str, Any]]
        fewest = len(self)
        for name, value in wanted.items():
            if fewest <= 1:
                break
            if value is NOT_NULL:
                continue
            places = self._by.get(name) or self._places(name)
            if places is None:
                continue
            if type(value) is list:
                found = [places[one] for one in dict.fromkeys(value) if one in places]
                count = sum(map(len, found))
            else:
                found = [places.get(value, _NOTHING)]
                count = len(found[0])
            if count < fewest:
                best, fewest = found, count
        return chain.from_iterable([one.values() for one in best])

    def _places(self, name: str) -> dict[Any, dict[str, Any]] | None:
        places = self._by.get(name)
        if places is None:
            if field_of(self._kind, name).storage == "json":
                return None  # such a value may have no hash
            places = self._by[name] = {}
            for row in self.values():
                places.setdefault(getattr(row, name), {})[row.id] = row
        return places


T = TypeVar("T")
R = TypeVar("R")
Changes = dict[type[Any], dict[str, Any]]
_ID: Final = attrgetter("id")

_MANY: Final = (list, tuple, set, frozenset)
_UNCHANGED: Final[Mapping[str, Any]] = {}
"""The changes of a kind of which a transaction changed nothing."""


class MemoryStore:
    """Rows and events that live as long as this object."""

    def __init__(
        self,
        clock: Clock,
        *,
        failpoint: Failpoint = no_failpoint,
        upcasters: Mapping[tuple[str, int], Upcaster] = UPCASTERS,
    ) -> None:
        self._clock = clock
        self._failpoint = failpoint
        self._upcasters = upcasters
        self._rows = {kind: Table(kind) for kind in STORED}
        self._events: list[RecordedEvent] = []
        self._heads: dict[str, str] = {}
        self._signal = Signal()

    async def transact(self, name: str, work: Callable[[Tx], T]) -> T:
        """Run `work` in one writing transaction."""
        self._signal.mark()
        await asyncio.sleep(0)  # others run here, as they would while a real database is asked
        return self.transact_sync(name, work)

    async def read(self, work: Callable[[Tx], T]) -> T:
        """Run `work` in one reading transaction."""
        self._signal.mark()
        await asyncio.sleep(0)
        return self.read_sync(work)

    async def changed(self, timeout: float, *, ignoring: Collection[str] = ()) -> bool:
        """Wait until something was committed since the current task last looked, in this store's time."""
        return await self._signal.wait(timeout, self._clock.sleep, ignoring)

    async def back_up(self, now: datetime) -> None:
        """Do nothing: this store has no file."""

    async def close(self) -> None:
        """Do nothing: there is nothing to let go of."""

    def transact_sync(self, name: str, work: Callable[[Tx], T]) -> T:
        """Run `work` in one writing transaction, now."""
        tx = self._tx(writable=True)
        result = work(tx)
        tx.check_owners()
        back = again(tx.lost, first=len(self._events) + 1, heads=self._heads)
        recorded = back + number(
            tx.appended,
            first=len(self._events) + len(back) + 1,
            at=tx.now(),
            heads={**self._heads, **{chain_of(event): event.hash for event in back}},
            ids=lambda n: make(Kind.EVENT, UUID(int=n)),
        )
        self._failpoint(f"store.{name}.before")
        for kind, changed in tx.changed.items():
            for row_id, row in changed.items():
                if row is None:
                    self._rows[kind].drop(row_id)
                else:
                    self._rows[kind].put(row)
        self._events.extend(recorded)
        self._heads.update({chain_of(event): event.hash for event in recorded})
        self._failpoint(f"store.{name}.after")
        if tx.dirty:
            self._signal.bump(name)
        return result

    def read_sync(self, work: Callable[[Tx], T]) -> T:
        """Run `work` in one reading transaction, now."""
        return work(self._tx(writable=False))

    def _tx(self, *, writable: bool) -> "MemoryTx":
        return MemoryTx(
            self._rows, self._events, now=self._clock.now(), writable=writable, upcasters=self._upcasters
        )


class MemoryTx:
    """One transaction: changes are kept beside the rows until it commits."""

    def __init__(
        self,
        rows: Mapping[type[Any], Table],
        events: Sequence[RecordedEvent],
        *,
        now: datetime,
        writable: bool,
        upcasters: Mapping[tuple[str, int], Upcaster],
    ) -> None:
        self._rows = rows
        self._events = events
        self._now = now
        self._writable = writable
        self._upcasters = upcasters
        self.changed: Changes = {}
        self.appended: list[Event] = []
        self.lost: list[RecordedEvent] = []
        self.dirty = False

    def now(self) -> datetime:
        """Return the clock's time at the beginning of the transaction."""
        return self._now

    def get(self, kind: type[R], id: str) -> R | None:
        """Return one row by id."""
        if kind not in self._rows:
            stored_as(kind)  # says what is wrong
        place = storable(id)
        changed = self.changed.get(kind, _UNCHANGED)
        row: R | None = changed[place] if place in changed else self._rows[kind].get(place)
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
        found = self._matching(kind, _normal(kind, where))
        terms = _terms(kind, tuple(order_by)) if order_by else ()
        if after:
            found = [row for row in found if _is_behind(row, order_by, after)]
        if len(found) > 1:
            found.sort(key=_ID)
            for name, backwards in terms:
                found.sort(key=lambda row, name=name: _order(getattr(row, name)), reverse=backwards)  # type: ignore[misc]
        return found if limit is None else found[:limit]

    def count(self, kind: type[Any], /, **where: Any) -> int:
        """Count the rows that match."""
        wanted = _normal(kind, where)
        return len(self._matching(kind, wanted))

    def tally(self, kind: type[Any], by: str, /, **where: Any) -> dict[str, int]:
        """Count the rows that match for each text in a column."""
        field_of(kind, by)
        return dict(Counter(getattr(row, by) for row in self._matching(kind, _normal(kind, where))))

    def columns(self, kind: type[Any], names: Sequence[str], /, **where: Any) -> list[tuple[Any, ...]]:
        """Return some columns of the rows that match."""
        known = [field_of(kind, name).name for name in names]
        return [
            tuple(getattr(row, name) for name in known) for row in self._matching(kind, _normal(kind, where))
        ]

    def insert(self, row: Any) -> None:
        """Add a row."""
        kind = type(row)
        stored_as(kind)
        self._write()
        row = decode(kind, encode(row))
        if self.get(kind, row.id) is not None or self._taken(row, _KEYS[kind]):
            raise StaleVersion(f"{kind.__name__}: {row.id} is there already, or another row has its place")
        self.changed.setdefault(kind, {})[row.id] = row

    def update(
        self, kind: type[R], id: str, /, *, expect: Mapping[str, Any] | None = None, **changes: Any
    ) -> R:
        """Change a row, provided that it is as expected."""
        stored_as(kind)
        if "id" in changes:
            raise TypeError("an id never changes")
        stored = {name: _one_as_stored(field_of(kind, name), value) for name, value in changes.items()}
        self._write()
        row: Any = self.get(kind, id)
        if row is None or not _fits(row, _normal(kind, expect or {})):
            raise StaleVersion(f"{kind.__name__}: {id} is gone or no longer as expected")
        # As `dataclasses.replace` does, which looks at each field's definition every time.
        row = kind(**{name: getattr(row, name) for name in _NAMES[kind]} | stored)
        if self._taken(row, [key for key in _KEYS[kind] if not stored.keys().isdisjoint(key)]):
            raise StaleVersion(f"{kind.__name__}: the place that {id} should take is taken")
        self.changed.setdefault(kind, {})[row.id] = row
        return row  # type: ignore[no-any-return]

    def delete(self, kind: type[Any], id: str) -> bool:
        """Remove a row and return whether it existed."""
        self._write()
        was_there = self.get(kind, id) is not None
        self.changed.setdefault(kind, {})[storable(id)] = None
        return was_there

    def append(self, event: Event) -> None:
        """Record an event."""
        self._write()
        self.appended.append(storable_event(event))

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
        found = [
            event
            for event in self._events[max(after, 0) : upto]
            if (projects is None or event.project in projects)
            and (loop is None or event.loop == loop)
            and (plan is None or event.plan == plan)
            and (task is None or event.task == task)
            and (run is None or event.run == run)
            and (not types or event.type in types)
        ]
        found = found[-limit:] if newest else found[:limit]
        return found if as_stored else [upcast(event, self._upcasters) for event in found]

    def put_back(self, events: Sequence[RecordedEvent]) -> None:
        """Record lost events again; here they always get new numbers."""
        self._write()
        known = {one.id for one in self._events}
        self.lost += sorted((one for one in events if one.id not in known), key=lambda one: one.n)

    def last_event(self) -> int:
        """Return the highest committed event number."""
        return len(self._events)

    def check_owners(self) -> None:
        """Raise when a row would be left without the row it belongs to."""
        for kind, changed in self.changed.items():
            for row in changed.values():
                if row is not None:
                    self._check_owner(kind, row)
            gone = [row_id for row_id, row in changed.items() if row is None]
            for child, column in _OWNED[kind] if gone else ():
                for row in self._matching(child, {column: gone}):
                    self._check_owner(child, row)

    def _check_owner(self, kind: type[Any], row: Any) -> None:
        for column, owner in _OWNERS[kind]:
            owner_id = getattr(row, column)
            if owner_id is not None and self.get(owner, owner_id) is None:
                raise StaleVersion(
                    f"{kind.__name__} {row.id} would be left without {owner.__name__} {owner_id}"
                )

    def _matching(self, kind: type[R], wanted: Mapping[str, Any]) -> list[R]:
        """Return the rows that have these values, in no order."""
        if kind not in self._rows:
            stored_as(kind)  # says what is wrong
        changed = self.changed.get(kind, _UNCHANGED)
        near = self._rows[kind].near(wanted)
        if not changed:
            return [row for row in near if _fits(row, wanted)]
        here = (row for row in changed.values() if row is not None)
        return [
            row for row in chain((row for row in near if row.id not in changed), here) if _fits(row, wanted)
        ]

    def _taken(self, row: Any, keys: Iterable[Sequence[str]]) -> bool:
        return any(
            other.id != row.id
            for key in keys
            for other in self._matching(type(row), {name: getattr(row, name) for name in key})
        )

    def _write(self) -> None:
        if not self._writable:
            raise TypeError("a reading transaction cannot write: use `transact`")
        self.dirty = True


_FIELDS: Final = {kind: {field.name: field for field in fields_of(kind)} for kind in STORED}
_NAMES: Final = {kind: tuple(field.name for field in fields(kind)) for kind in STORED}
_KEYS: Final = {kind: [how.unique] if how.unique else [] for kind, how in STORED.items()}
_OWNERS: Final = {kind: [(column, OWNERS[column]) for column in how.owners] for kind, how in STORED.items()}
_OWNED: Final = {
    kind: [(child, column) for child, owners in _OWNERS.items() for column, owner in owners if owner is kind]
    for kind in _OWNERS
}


@cache
def _is_behind(row: Any, order_by: Sequence[str], place: Sequence[Any]) -> bool:
    """Return whether a row comes behind a place in an order."""
    for term, value in zip((*order_by, "id"), place, strict=True):
        mine = getattr(row, term.removeprefix("-"))
        if mine != value:
            return bool(mine < value) if term.startswith("-") else bool(mine > value)
    return False


def _terms(kind: type[Any], order_by: tuple[str, ...]) -> list[tuple[str, bool]]:
    """Return the columns of an order, the last one first, each with whether it goes backwards."""
    terms = []
    for term in reversed(order_by):
        name = term.removeprefix("-")
        if field_of(kind, name).storage == "json":
            raise TypeError(f"{kind.__name__}.{name} has no order")
        terms.append((name, term.startswith("-")))
    return terms


def _normal(kind: type[Any], where: Mapping[str, Any]) -> dict[str, Any]:
    wanted = {}
    fields = _FIELDS.get(kind, _UNCHANGED)
    for name, value in where.items():
        field = fields.get(name) or field_of(kind, name)
        if value is None or value is NOT_NULL or type(value) is field.decode:
            wanted[name] = value
        elif isinstance(value, _MANY):
            wanted[name] = [_one_as_stored(field, one) for one in value]
        else:
            wanted[name] = _one_as_stored(field, value)
    return wanted


def _one_as_stored(field: Field, value: Any) -> Any:
    if value is None or type(value) is field.decode:
        return value  # a number, or a word of a list, comes back as it is
    return field.decode(field.encode(value))


def _fits(row: Any, wanted: Mapping[str, Any]) -> bool:
    # A plain loop: a simulation is here very often.
    for name, value in wanted.items():
        own = getattr(row, name)
        is_one = (
            own in value if type(value) is list else own == value or (value is NOT_NULL and own is not None)
        )
        if not is_one:
            return False
    return True


def _order(value: Any) -> tuple[bool, Any]:
    return (value is not None, value if value is not None else "")
