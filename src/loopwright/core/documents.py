"""Rows as plain documents: what `--json`, the state files and the API show of them."""

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
