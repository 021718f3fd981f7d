"""Convert values to plain documents for `--json`, the state files and the API."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Any

_LEAVES = frozenset({str, int, float, bool, type(None)})


def document(value: Any) -> dict[str, Any]:
    """Return a dataclass as a mapping of JSON values, under the same names as its fields."""
    kind: Any = type(value)
    # Most values need no conversion, and this runs for each of them.
    return {
        name: one if type(one := getattr(value, name)) in _LEAVES else plain(one) for name in _names(kind)
    }


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def plain(value: Any) -> Any:
    """Return a value as JSON data; times are ISO 8601 in UTC."""
    kind: Any = type(value)
    return value if kind in _LEAVES else _way(kind)(value)


@cache
def _way(kind: Any) -> Callable[[Any], Any]:
    """Return the function that converts values of a type."""
    if is_dataclass(kind):
        return document
    if issubclass(kind, Enum):
        return attrgetter("value")
    if issubclass(kind, datetime):
        return _moment
    if issubclass(kind, Mapping):
        return _mapping
    return _items if issubclass(kind, list | tuple | set | frozenset) else _same


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat()


def _mapping(values: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): plain(one) for key, one in values.items()}


def _items(values: Iterable[Any]) -> list[Any]:
    return [one if type(one) in _LEAVES else plain(one) for one in values]


def _same(value: Any) -> Any:
    return value


def readable(document: Mapping[str, Any]) -> str:
    """Return a document as JSON with a line per field, and per item of a list.

    Deeper levels use the C encoder, because the one that indents takes ten times as long.
    """

    def value(one: Any) -> str:
        if isinstance(one, list) and one:
            return "[\n" + ",\n".join(f"    {_compact(item)}" for item in one) + "\n  ]"
        return _compact(one)

    facts = (f"  {_compact(name)}: {value(document[name])}" for name in sorted(document))
    return "{\n" + ",\n".join(facts) + "\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
