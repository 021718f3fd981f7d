"""Rows to columns and back, driven by the types of the dataclasses.

Plain values become columns of their own kind, and everything nested becomes JSON text. This is written out instead
of left to a library such as pydantic because `status` must answer at once: building its validators alone costs more
than reading a home does.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache, lru_cache
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from loopwright.adapters.store.chain import moment_text
from loopwright.core.rows.events import RecordedEvent
from loopwright.core.values.errors import DamagedRow

R = TypeVar("R")
Convert = Callable[[Any], Any]
Storage = Literal["text", "integer", "number", "boolean", "moment", "json"]

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ROWS: Final = 500
"""How many rows are kept decoded: a plan, its loop and its tasks at work are read some hundred times per task."""

_TEXTS: Final = 50
"""How many texts of each nested column are kept as what they stand for."""

_PLAIN: Final[Mapping[Any, Storage]] = {int: "integer", float: "number", bool: "boolean"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """How one field of a row is stored."""

    name: str
    storage: Storage
    nullable: bool
    encode: Convert
    decode: Convert


def storable(text: str) -> str:
    """Return the text without what no database can hold: NUL and half surrogates become the replacement sign."""
    return text if text.isascii() and "\x00" not in text else _UNSTORABLE.sub("\ufffd", text)


def to_utc(at: datetime) -> datetime:
    """Return the moment in UTC; one without a time zone is a defect."""
    if at.tzinfo is None:
        raise TypeError(f"{at!r} has no time zone: every moment in a home is aware")
    return at.astimezone(UTC)


def _moment(stored: datetime | str) -> datetime:
    return to_utc(datetime.fromisoformat(stored) if isinstance(stored, str) else stored)


def dump(value: Any) -> str:
    """Return a JSON value as text that every database can hold."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


@cache
def _fields(kind: Any) -> Mapping[str, Field]:
    hints = get_type_hints(kind)
    return {field.name: _field(field.name, hints[field.name]) for field in fields(kind)}


def fields_of(kind: Any) -> Iterable[Field]:
    """Return how each field of a row type is stored."""
    return _fields(kind).values()


def field_of(kind: Any, name: str) -> Field:
    """Return how one field is stored; an unknown name is a defect."""
    field = _fields(kind).get(name)
    if field is None:
        raise TypeError(f"{kind.__name__} has no column {name!r}")
    return field


def encode(row: Any) -> dict[str, Any]:
    """Return a row as column values."""
    kind: Any = type(row)
    return {
        name: None if (value := getattr(row, name)) is None else convert(value)
        for name, convert in _encoding(kind)
    }


@cache
def _encoding(kind: Any) -> tuple[tuple[str, Convert], ...]:
    return tuple((one.name, one.encode) for one in fields_of(kind))


def encode_some(kind: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return some columns' values."""
    return {
        name: None if value is None else field_of(kind, name).encode(value) for name, value in values.items()
    }


def decode_again(kind: type[R], stored: Sequence[Any]) -> R:
    """Do the same as `decode_row` for a row that is likely to be read again as it is; it is the same object then."""
    row_type: Any = kind
    row: R = _decoded(row_type, tuple(stored))
    return row


@lru_cache(_ROWS)
def _decoded(kind: Any, stored: tuple[Any, ...]) -> Any:
    return decode_row(kind, stored)


def decode_row(kind: type[R], stored: Sequence[Any]) -> R:
    """Return the row that these column values, in the order of its fields, stand for."""
    row_type: Any = kind
    return decode(kind, dict(zip(_decoding(row_type)[0], stored, strict=True)))


def decode_columns(kind: Any, names: Sequence[str], stored: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Return rows of which only these columns were read."""
    found = list(zip(*stored, strict=True))
    try:
        for n, name in enumerate(names if found else ()):
            convert = field_of(kind, name).decode
            if convert is not _same:
                found[n] = tuple(None if one is None else convert(one) for one in found[n])
        return list(zip(*found, strict=True))
    except (ValueError, KeyError, TypeError, AttributeError) as wrong:
        told = f"{', '.join(names)} of {kind.__name__}"
        raise DamagedRow(f"the database has something else than Loopwright wrote there ({told})") from wrong


def decode(kind: type[R], columns: Mapping[str, Any]) -> R:
    """Return the row that these column values, and no others, stand for."""
    row_type: Any = kind
    _, converted = _decoding(row_type)
    values = dict(columns)
    name = ""
    try:
        for name, convert in converted:
            if values[name] is not None:
                values[name] = convert(values[name])
        return kind(**values)
    except (ValueError, KeyError, TypeError, AttributeError) as wrong:
        told = f"{values.get('id', 'a row')} of {kind.__name__}: {name}"
        raise DamagedRow(f"the database has something else than Loopwright wrote there ({told})") from wrong


def from_document(kind: type[R], document: Mapping[str, Any]) -> R:
    """Return the row of a document; a field that was added since has its default."""
    row_type: Any = kind
    try:
        row: R = _nested(row_type)[1](document)
        return decode(kind, encode(row))
    except (ValueError, KeyError, TypeError, AttributeError) as wrong:
        raise DamagedRow(f"a document that should be a {kind.__name__} is none ({wrong})") from wrong


@cache
def _decoding(kind: Any) -> tuple[tuple[str, ...], tuple[tuple[str, Convert], ...]]:
    """Return a row's fields, and those of them that are stored in another form."""
    made = _fields(kind).values()
    return tuple(one.name for one in made), tuple(
        (one.name, one.decode) for one in made if one.decode is not _same
    )


def _maybe(convert: Convert, value: Any) -> Any:
    return None if value is None else convert(value)


def _same(value: Any) -> Any:
    return value


def _field(name: str, hint: Any) -> Field:
    kind, nullable = _without_none(hint)
    storage, encode_, decode_ = _column(kind)
    return Field(name=name, storage=storage, nullable=nullable, encode=encode_, decode=decode_)


def _column(kind: Any) -> tuple[Storage, Convert, Convert]:
    if kind is str:
        return "text", storable, _same
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return "text", str, kind
    if kind is datetime:
        return "moment", to_utc, _moment
    if kind in _PLAIN:
        return _PLAIN[kind], kind, kind
    pack, unpack = _nested(kind)

    def read(text: str) -> Any:
        return unpack(json.loads(text))

    # A row is read again whenever any of its columns changed, and most others have what they had: a plan's policy, or
    # nothing. What cannot be changed is the same object then; a mapping could be.
    kept = read if _is_mapping(kind) else lru_cache(_TEXTS)(read)
    return "json", lambda value: dump(pack(value)), kept


def _is_mapping(kind: Any) -> bool:
    return kind is Any or (isinstance(get_origin(kind), type) and issubclass(get_origin(kind), Mapping))


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) not in (Union, UnionType):
        return hint, False
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    if len(kinds) != 1 or len(kinds) == len(get_args(hint)):
        raise TypeError(f"{hint} cannot be stored: only a union with None has one meaning")
    return kinds[0], True


@cache
def _nested(hint: Any) -> tuple[Convert, Convert]:
    """Return how a value inside JSON is written and read."""
    kind, nullable = _without_none(hint)
    if nullable:
        pack, unpack = _nested(kind)
        return (lambda value: _maybe(pack, value)), (lambda value: _maybe(unpack, value))
    if kind is Any or kind in (str, int, bool):
        return _same, _same
    if kind is float:
        return float, float
    if kind is datetime:
        return moment_text, datetime.fromisoformat
    if get_origin(kind) is tuple and get_args(kind)[1:] == (...,):
        pack_item, unpack_item = _nested(get_args(kind)[0])
        return (lambda items: [pack_item(item) for item in items]), (
            lambda items: tuple(unpack_item(item) for item in items)
        )
    if get_origin(kind) is not None and issubclass(get_origin(kind), Mapping):
        pack_item, unpack_item = _nested(get_args(kind)[1])
        return (lambda items: {key: pack_item(item) for key, item in items.items()}), (
            lambda items: {key: unpack_item(item) for key, item in items.items()}
        )
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return str, kind
    if isinstance(kind, type) and is_dataclass(kind):
        return _value(kind)
    raise TypeError(f"{hint} cannot be stored")


def _value(kind: type[Any]) -> tuple[Convert, Convert]:
    hints = get_type_hints(kind)
    parts = {field.name: _nested(hints[field.name]) for field in fields(kind)}
    required = {
        field.name for field in fields(kind) if field.default is MISSING and field.default_factory is MISSING
    }

    def pack(value: Any) -> dict[str, Any]:
        return {name: pack_part(getattr(value, name)) for name, (pack_part, _) in parts.items()}

    def unpack(stored: Mapping[str, Any]) -> Any:
        # Values outlive program versions: a part that was added since has its default, one that is gone is left out.
        return kind(
            **{
                name: unpack_part(stored[name])
                for name, (_, unpack_part) in parts.items()
                if name in stored or name in required
            }
        )

    return pack, unpack


# Old events, read by a newer program: each upcaster lifts one type of event by one version.

Upcaster = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Takes the payload of version n and returns the payload of version n + 1."""

UPCASTERS: Final[Mapping[tuple[str, int], Upcaster]] = MappingProxyType({})
"""By event type and the version that is lifted. Empty while every event is at version 1."""


def upcast(event: RecordedEvent, upcasters: Mapping[tuple[str, int], Upcaster] = UPCASTERS) -> RecordedEvent:
    """Return the event at the newest version that is known for its type."""
    while (lift := upcasters.get((event.type, event.version))) is not None:
        event = replace(event, version=event.version + 1, payload=lift(event.payload))
    return event
