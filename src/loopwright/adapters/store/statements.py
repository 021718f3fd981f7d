"""The statements of a transaction, each built once.

Building a statement with SQLAlchemy costs more than SQLite takes to answer it, and a task needs some two hundred. They
differ in little but their values, so they are built once per shape, with their values as parameters.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Insert,
    Integer,
    Select,
    Table,
    Update,
    and_,
    bindparam,
    func,
    insert,
    or_,
    select,
    update,
)

from loopwright.adapters.store import schema
from loopwright.adapters.store.codec import field_of

MANY: Final = (list, tuple, set, frozenset)
ID: Final = "the_id"
LIMIT: Final = "the_limit"
COUNT: Final = "the_count"

Shape = tuple[tuple[str, str], ...]
"""Which columns are compared, and how: with one value, with some, with nothing, or with some or nothing."""


def _shape(where: Mapping[str, Any]) -> Shape:
    return tuple((name, _way(wanted)) for name, wanted in where.items())


def _way(wanted: Any) -> str:
    if not isinstance(wanted, MANY):
        return "nothing" if wanted is None else "one"
    return "some or nothing" if None in wanted else "some"


def values_of(kind: type[Any], where: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that a statement of this shape takes."""
    values: dict[str, Any] = {}
    for name, wanted in where.items():
        encode = field_of(kind, name).encode
        if isinstance(wanted, MANY):
            values[_wanted(name)] = [encode(value) for value in wanted if value is not None]
        elif wanted is not None:
            values[_wanted(name)] = encode(wanted)
    return values


def _wanted(name: str) -> str:
    return f"is_{name}"


def becoming(name: str) -> str:
    """Return the parameter of a column's new value."""
    return f"to_{name}"


@cache
def columns_of(table: Table) -> tuple[str, ...]:
    """Return the names of a table's columns, in the order in which rows have them."""
    return tuple(column.name for column in table.columns)


@cache
def one(table: Table) -> Select[Any]:
    """Select a row by its id."""
    return select(table).where(table.c.id == bindparam(ID))


def matching(
    kind: Any, where: Mapping[str, Any], order_by: Sequence[str] | None, *, limited: bool
) -> Select[Any]:
    """Select the rows that match; without an order (None) they are counted."""
    return _matching(kind, _shape(where), None if order_by is None else tuple(order_by), limited)


def change(kind: Any, expect: Mapping[str, Any], names: Sequence[str]) -> Update | Select[Any]:
    """Update these columns of a row that is as expected, and return it; without any, only select it."""
    return _change(kind, _shape(expect), tuple(names))


@cache
def _matching(kind: Any, shape: Shape, order_by: tuple[str, ...] | None, limited: bool) -> Select[Any]:
    table = schema.table_of(kind)
    if order_by is None:
        return select(func.count()).select_from(table).where(*_matches(kind, table, shape))
    query = select(table).where(*_matches(kind, table, shape)).order_by(*_order(kind, table, order_by))
    return query.limit(bindparam(LIMIT, type_=Integer)) if limited else query


@cache
def _change(kind: Any, shape: Shape, names: tuple[str, ...]) -> Update | Select[Any]:
    table = schema.table_of(kind)
    where = and_(table.c.id == bindparam(ID), *_matches(kind, table, shape))
    if not names:
        return select(table).where(where)
    changes = {name: bindparam(becoming(name), type_=table.c[name].type) for name in names}
    return update(table).where(where).values(changes).returning(*table.c)


def _matches(kind: type[Any], table: Table, shape: Shape) -> list[ColumnElement[bool]]:
    return [_match(kind, table, name, way) for name, way in shape]


def _match(kind: type[Any], table: Table, name: str, way: str) -> ColumnElement[bool]:
    field_of(kind, name)  # an unknown name is a defect
    column = table.c[name]
    if way == "nothing":
        return column.is_(None)
    if way == "one":
        return column == bindparam(_wanted(name), type_=column.type)
    some = column.in_(bindparam(_wanted(name), type_=column.type, expanding=True))
    return or_(some, column.is_(None)) if way == "some or nothing" else some


def _order(kind: type[Any], table: Table, order_by: Sequence[str]) -> list[ColumnElement[Any]]:
    terms: list[ColumnElement[Any]] = []
    for term in order_by:
        name = term.removeprefix("-")
        field = field_of(kind, name)
        if field.storage == "json":
            raise TypeError(f"{kind.__name__}.{name} has no order")
        column = table.c[name]
        ordered = column.desc() if term.startswith("-") else column.asc()
        if field.nullable:
            # The databases disagree on where NULL goes; here it is the smallest value.
            ordered = ordered.nulls_last() if term.startswith("-") else ordered.nulls_first()
        terms.append(ordered)
    return [*terms, table.c.id.asc()]


# --- events ----------------------------------------------------------------------------------------

TAKE_NUMBERS: Final[Update] = (
    update(schema.counters)
    .where(schema.counters.c.id == "events")
    .values(n=schema.counters.c.n + bindparam(COUNT, type_=schema.INTEGER))
    .returning(schema.counters.c.n)
)
LAST_NUMBER: Final[Select[Any]] = select(schema.counters.c.n).where(schema.counters.c.id == "events")
HEADS: Final[Select[Any]] = select(schema.chains).where(
    schema.chains.c.id.in_(bindparam(_wanted("id"), expanding=True))
)
HEADS_WANTED: Final = _wanted("id")
MOVE_HEAD: Final[Update] = (
    update(schema.chains).where(schema.chains.c.id == bindparam(ID)).values(hash=bindparam(becoming("hash")))
)
FIRST_HEAD: Final[Insert] = insert(schema.chains).values(id=bindparam(ID), hash=bindparam(becoming("hash")))
RECORD: Final[Insert] = insert(schema.events)
