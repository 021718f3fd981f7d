"""The statements of a transaction as text, the same for both databases, each put together once.

A task needs some two hundred of them, which differ in little but their values.
"""

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final

from loopwright.adapters.store.codec import field_of, fields_of
from loopwright.adapters.store.tables import EVENTS, name_of
from loopwright.core.rows.events import RecordedEvent
from loopwright.ports import NOT_NULL

MANY: Final = (list, tuple, set, frozenset)
_SHAPES: Final = 2000
"""How many different questions are kept: those for a number of ids are as many as there are numbers."""

_ANY: Final = -1
"""The number of values of a column that may have any but NULL."""

Shape = tuple[tuple[str, int, bool], ...]
"""Which columns are compared, each with how many values or `_ANY`, and whether nothing counts too."""

TAKE_NUMBERS: Final = "UPDATE counters SET n = n + ? WHERE id = 'events' RETURNING n"
LAST_NUMBER: Final = "SELECT n FROM counters WHERE id = 'events'"
KNOWN_EVENTS: Final = f"SELECT id FROM {EVENTS} WHERE plan = ?"  # noqa: S608 - a constant
MOVE_HEAD: Final = "UPDATE chains SET hash = ? WHERE id = ?"
LARGEST: Final = (1 << 63) - 1
"""The largest number that both databases can hold."""
FIRST_HEAD: Final = "INSERT INTO chains (hash, id) VALUES (?, ?)"


def heads(count: int) -> str:
    """Select the last hashes of so many chains."""
    return f"SELECT id, hash FROM chains WHERE id IN ({_marks(count)})"  # noqa: S608 - marks only


def values_of(kind: type[Any], where: Mapping[str, Any]) -> list[Any]:
    """Return the values that a statement with these conditions takes."""
    values: list[Any] = []
    for name, wanted in where.items():
        encode = field_of(kind, name).encode
        if wanted is NOT_NULL:
            continue
        values += [
            encode(one) for one in (wanted if isinstance(wanted, MANY) else (wanted,)) if one is not None
        ]
    return values


def _shape(where: Mapping[str, Any]) -> Shape:
    return tuple((name, *_size(wanted)) for name, wanted in where.items())


def _size(wanted: Any) -> tuple[int, bool]:
    if wanted is NOT_NULL:
        return _ANY, False
    if not isinstance(wanted, MANY):
        return int(wanted is not None), wanted is None
    nothing = None in wanted
    return sum(one is not None for one in wanted) if nothing else len(wanted), nothing


def one(kind: Any) -> str:
    """Select a row by its id."""
    return _change(kind, (), ())


def insert(kind: Any) -> str:
    """Add a row, unless it breaks a unique key: without that, PostgreSQL would end the transaction."""
    return _insert(kind, " ON CONFLICT DO NOTHING RETURNING id")


def delete(kind: Any) -> str:
    """Remove a row and return its id."""
    return f"DELETE FROM {_table(kind)} WHERE id = ? RETURNING id"  # noqa: S608 - known names


def record() -> str:
    """Add an event."""
    return _insert(RecordedEvent, "")


def matching(
    kind: Any, where: Mapping[str, Any], order_by: Sequence[str], *, behind: bool, limited: bool
) -> str:
    """Select the rows that match, in order, all of them or those behind a place."""
    return _matching(kind, _shape(where), tuple(order_by), behind, limited)


def values_behind(kind: type[Any], order_by: Sequence[str], place: Sequence[Any]) -> list[Any]:
    """Return the values that a statement with a place takes: each column as often as `_behind` names it."""
    if not place:
        return []
    names = [*(term.removeprefix("-") for term in order_by), "id"]
    if len(place) != len(names):
        raise TypeError(f"a place in this order has {len(names)} values")
    values = [field_of(kind, name).encode(value) for name, value in zip(names, place, strict=True)]
    first = values[:1] if len(values) > 1 else []
    return first + [one for n in range(len(values)) for one in values[: n + 1]]


def counting(kind: Any, where: Mapping[str, Any]) -> str:
    """Count the rows that match."""
    return _counting(kind, _shape(where))


def tally(kind: Any, by: str, where: Mapping[str, Any]) -> str:
    """Count the rows that match for each value of a column."""
    return _tally(kind, by, _shape(where))


def columns(kind: Any, names: Sequence[str], where: Mapping[str, Any]) -> str:
    """Select some columns of the rows that match."""
    return _some(kind, tuple(names), _shape(where))


def change(kind: Any, expect: Mapping[str, Any], names: Sequence[str]) -> str:
    """Update these columns of a row that is as expected, and return it; without any, only select it."""
    return _change(kind, _shape(expect), tuple(names))


def events(where: Mapping[str, Any], *, newest: bool = False) -> str:
    """Select the events that match, after a number, in order or from the newest back, up to a limit."""
    return _events(_shape(where), newest)


@lru_cache(_SHAPES)
def _matching(kind: Any, shape: Shape, order_by: tuple[str, ...], behind: bool, limited: bool) -> str:
    terms = ", ".join([*(_order(kind, term) for term in order_by), "id ASC"])
    limit = " LIMIT ?" if limited else ""
    where = [*(_match(kind, *one) for one in shape), *([_behind(kind, order_by)] if behind else [])]
    wanted = f" WHERE {' AND '.join(where)}" if where else ""
    table = _table(kind)
    if limited and order_by:
        # The ids are put in order first: sorting whole rows, of which most are not wanted, takes much longer.
        wanted = f' WHERE "id" IN (SELECT "id" FROM {table}{wanted} ORDER BY {terms}{limit})'  # noqa: S608
        limit = ""
    return f"SELECT {_columns(kind)} FROM {table}{wanted} ORDER BY {terms}{limit}"  # noqa: S608


def _behind(kind: Any, order_by: tuple[str, ...]) -> str:
    """Select what comes behind a place: the first column further on, or equal and the next further on, and so on."""
    columns = [(_sortable(kind, term), "<" if term.startswith("-") else ">") for term in order_by]
    columns.append(('"id"', ">"))
    ways = []
    for n, (column, further) in enumerate(columns):
        equal = [f"{one} = ?" for one, _ in columns[:n]]
        ways.append(" AND ".join([*equal, f"{column} {further} ?"]))
    either = f"({' OR '.join(ways)})"
    if len(columns) == 1:
        return either
    first, further = columns[0]
    # What follows from the rest: databases take it for a range of an index.
    return f"{first} {further}= ? AND {either}"


def _sortable(kind: Any, term: str) -> str:
    name = term.removeprefix("-")
    if field_of(kind, name).nullable:
        raise TypeError(f"{kind.__name__}.{name} may be empty, so no place can be named in its order")
    return f'"{name}"'


@lru_cache(_SHAPES)
def _counting(kind: Any, shape: Shape) -> str:
    return f"SELECT count(*) FROM {_table(kind)}{_where(kind, shape)}"  # noqa: S608 - known names


@lru_cache(_SHAPES)
def _tally(kind: Any, by: str, shape: Shape) -> str:
    column = _quoted(kind, by)
    return f"SELECT {column}, count(*) FROM {_table(kind)}{_where(kind, shape)} GROUP BY {column}"  # noqa: S608


@lru_cache(_SHAPES)
def _some(kind: Any, names: tuple[str, ...], shape: Shape) -> str:
    chosen = ", ".join(_quoted(kind, name) for name in names)
    return f"SELECT {chosen} FROM {_table(kind)}{_where(kind, shape)}"  # noqa: S608 - known names


@lru_cache(_SHAPES)
def _change(kind: Any, shape: Shape, names: tuple[str, ...]) -> str:
    expected = " AND ".join(["id = ?", *(_match(kind, *one) for one in shape)])
    if not names:
        return f"SELECT {_columns(kind)} FROM {_table(kind)} WHERE {expected}"  # noqa: S608 - known names
    changes = ", ".join(f"{_quoted(kind, name)} = ?" for name in names)
    return f"UPDATE {_table(kind)} SET {changes} WHERE {expected} RETURNING {_columns(kind)}"  # noqa: S608


@lru_cache(_SHAPES)
def _events(shape: Shape, newest: bool) -> str:
    terms = " AND ".join(["n > ?", "n <= ?", *(_match(RecordedEvent, *one) for one in shape)])
    order = "n DESC" if newest else "n"
    return f"SELECT {_columns(RecordedEvent)} FROM {EVENTS} WHERE {terms} ORDER BY {order} LIMIT ?"  # noqa: S608


def _where(kind: Any, shape: Shape) -> str:
    return " WHERE " + " AND ".join(_match(kind, *one) for one in shape) if shape else ""


def _match(kind: Any, name: str, count: int, nothing: bool) -> str:
    column = _quoted(kind, name)
    if count == _ANY:
        return f"{column} IS NOT NULL"
    some = "1 = 0" if count == 0 else f"{column} = ?" if count == 1 else f"{column} IN ({_marks(count)})"
    if not nothing:
        return some
    return f"({some} OR {column} IS NULL)" if count else f"{column} IS NULL"


def _order(kind: Any, term: str) -> str:
    name = term.removeprefix("-")
    field = field_of(kind, name)
    if field.storage == "json":
        raise TypeError(f"{kind.__name__}.{name} has no order")
    way, nothing = ("DESC", "LAST") if term.startswith("-") else ("ASC", "FIRST")
    # The databases disagree on where NULL goes; here it is the smallest value.
    return f'"{name}" {way} NULLS {nothing}' if field.nullable else f'"{name}" {way}'


def _table(kind: Any) -> str:
    return EVENTS if kind is RecordedEvent else name_of(kind)


def _columns(kind: Any) -> str:
    return ", ".join(f'"{field.name}"' for field in fields_of(kind))


@cache
def _insert(kind: Any, more: str) -> str:
    columns = _columns(kind)
    return f"INSERT INTO {_table(kind)} ({columns}) VALUES ({_marks(columns.count(',') + 1)}){more}"  # noqa: S608


def _quoted(kind: Any, name: str) -> str:
    return f'"{field_of(kind, name).name}"'


def _marks(count: int) -> str:
    return ", ".join("?" * count)
