"""Rows as plain documents: what `--json`, the state files and the API show of them."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any


def document(value: Any) -> dict[str, Any]:
    """Return a row as a mapping of JSON values, under the same names as its fields."""
    return {field.name: plain(getattr(value, field.name)) for field in fields(value)}


def plain(value: Any) -> Any:
    """Return a value as JSON knows it; times are ISO 8601 in UTC."""
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
