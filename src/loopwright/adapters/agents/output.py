"""Read what a program printed, however odd it is: bounded, storable text and JSON that cannot hurt."""

import json
from collections.abc import Mapping
from typing import Any, Final

Object = Mapping[str, Any]
"""A JSON object that some program wrote."""

LONGEST_LINE: Final = 16 * 1024 * 1024
"""A longer line is not parsed: it would hold up everything else for seconds."""


def json_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object on this line, or None when the line is anything else."""
    if len(text) > LONGEST_LINE or not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def object_in(value: object) -> Object:
    """Return the value if it is an object, else an empty one: so a part of a part can be asked for."""
    return value if isinstance(value, dict) else {}


def readable(value: object, limit: int = 4_000) -> str:
    """Return text that every database can store: cut to `limit`, without NULs and lone surrogates."""
    if not isinstance(value, str):
        return ""
    text = value if len(value) <= limit else value[:limit] + "…"
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def whole_number(value: object) -> int | None:
    """Return a non-negative count, or None for anything else: a wrong number is worse than none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 <= value < 2**63:
        return None
    return int(value)


def micros(dollars: object) -> int | None:
    """Return an amount of dollars in whole millionths, or None if it is not an amount."""
    if isinstance(dollars, bool) or not isinstance(dollars, int | float):
        return None
    if not 0 <= dollars < 1_000_000_000:
        return None
    return round(dollars * 1_000_000)


def remembered(tail: tuple[str, ...], line: str, *, lines: int = 20, width: int = 500) -> tuple[str, ...]:
    """Return the tail of an output with one more line, keeping it short."""
    text = readable(line, width).strip()
    return (*tail, text)[-lines:] if text else tail
