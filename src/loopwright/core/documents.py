"""Rows as plain documents: what `--json`, the state files and the API show of them."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from typing import Any

_LEAVES = frozenset({str, int, float, bool, type(None)})


def document(value: Any) -> dict[str, Any]:
    """Return a row as a mapping of JSON values, under the same names as its fields."""
    kind: Any = type(value)
    return {name: plain(getattr(value, name)) for name in _names(kind)}


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def plain(value: Any) -> Any:
    """Return a value as JSON knows it; times are ISO 8601 in UTC."""
    if type(value) in _LEAVES:  # most values by far, and this is done for each of them
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return document(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one) for one in value]
    return value


def readable(document: Mapping[str, Any]) -> str:
    """Return a document as JSON with a line per fact, and per item of a list.

    Deeper than that it is left to the encoder that is written in C: the one that indents takes ten times as long.
    """

    def value(one: Any) -> str:
        if isinstance(one, list) and one:
            return "[\n" + ",\n".join(f"    {_compact(item)}" for item in one) + "\n  ]"
        return _compact(one)

    facts = (f"  {_compact(name)}: {value(document[name])}" for name in sorted(document))
    return "{\n" + ",\n".join(facts) + "\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
