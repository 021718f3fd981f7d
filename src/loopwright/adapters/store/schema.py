"""The tables of a home, once for both databases, made from the row types of `core.rows.model` and from `tables`."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    ForeignKeyConstraint,
    Index,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
)
from sqlalchemy.types import TypeEngine

from loopwright.adapters.store.chain import moment_text
from loopwright.adapters.store.codec import Field, field_of, fields_of
from loopwright.adapters.store.tables import EVENT_COLUMNS, EVENTS, OWNERS, STORED, Stored, name_of
from loopwright.core.rows.events import RecordedEvent

metadata: Final = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class Moment(TypeDecorator[datetime]):
    """An aware UTC moment: `timestamptz` in PostgreSQL, text of fixed width in SQLite."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Choose the column type."""
        return dialect.type_descriptor(String(27) if dialect.name == "sqlite" else DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        """Turn a moment into what the driver takes."""
        return moment_text(value) if value is not None and dialect.name == "sqlite" else value

    def process_result_value(self, value: Any, _dialect: Dialect) -> datetime | None:
        """Turn what the driver gives into an aware UTC moment."""
        if value is None:
            return None
        return datetime.fromisoformat(value) if isinstance(value, str) else value.astimezone(UTC)


# Byte order everywhere: a PostgreSQL database with a language's collation would sort ids and keys differently.
TEXT: Final = Text().with_variant(Text(collation="C"), "postgresql")
INTEGER: Final = BigInteger()
BOOLEAN: Final = Boolean()
JSON: Final = Text()
MOMENT: Final = Moment()


_TYPES: Final[Mapping[str, TypeEngine[Any]]] = {
    "text": TEXT,
    "integer": INTEGER,
    "boolean": BOOLEAN,
    "json": JSON,
    "moment": MOMENT,
}


def _column(field: Field, key: str = "id") -> Column[Any]:
    return Column(
        field.name,
        _TYPES[field.storage],
        nullable=field.nullable,
        primary_key=field.name == key,
        autoincrement=False,
    )


def _owner(column: str) -> ForeignKeyConstraint:
    # Checked at commit, so that rows of one transaction may come in any order.
    target = f"{name_of(OWNERS[column])}.id"
    return ForeignKeyConstraint([column], [target], deferrable=True, initially="DEFERRED")


def _table(kind: type[Any], how: Stored) -> Table:
    return Table(
        how.table,
        metadata,
        *map(_column, fields_of(kind)),
        *map(_owner, how.owners),
        *([Index(None, *how.unique, unique=True)] if how.unique else []),
        *(Index(None, *columns) for columns in how.indexes),
    )


for _kind, _how in STORED.items():
    _table(_kind, _how)

events: Final = Table(
    EVENTS,
    metadata,
    *(_column(field_of(RecordedEvent, name), key="n") for name in EVENT_COLUMNS),
    Index(None, "plan", "n"),
    Index(None, "task", "n"),
    Index(None, "run", "n"),
)

counters: Final = Table(
    "counters", metadata, Column("id", TEXT, primary_key=True), Column("n", INTEGER, nullable=False)
)
"""One row, `events`: the number of the last event. A writer holds it, so numbers commit in order."""

chains: Final = Table(
    "chains", metadata, Column("id", TEXT, primary_key=True), Column("hash", TEXT, nullable=False)
)
"""The last hash of each plan's chain of events."""
