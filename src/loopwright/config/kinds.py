"""The kinds of value that a setting can have: how each is read, shown and described in a schema.

A kind is in the annotation of a field in `settings`. Reading accepts what TOML, YAML and JSON give
and the plain text of environment variables and flags alike.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path, PurePosixPath
from typing import Any, Final

from loopwright.config.nearest import did_you_mean, quoted

MAX_TEXT: Final = 20_000
_UNITS: Final[Mapping[str, float]] = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d)\s*)+")
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_LONGEST: Final = 366 * 86400.0
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(b|kb|mb|gb|kib|mib|gib)?")
_SIZES: Final[Mapping[str, int]] = {"b": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
_TRUE: Final = frozenset({"true", "yes", "on", "1"})
_FALSE: Final = frozenset({"false", "no", "off", "0"})


class WrongValue(ValueError):
    """A value that its kind cannot read; the text says what is expected."""

    def __init__(self, expected: str, value: object) -> None:
        super().__init__(f"expected {expected}, got {quoted(value)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How one kind of value is read, shown and described."""

    name: str
    """In the documentation's tables."""
    expected: str
    """Completes "expected …" in a message."""
    read: Callable[[Any], Any]
    show: Callable[[Any], Any]
    """Return the value as it would be written in a file."""
    schema: Mapping[str, Any]


def _number(value: object, expected: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise WrongValue(expected, value)
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise WrongValue(expected, value) from None
    if not math.isfinite(number):
        raise WrongValue(expected, value)
    return number


def read_duration(value: object, expected: str = 'a duration such as "90s" or "30m"') -> float:
    """Return seconds for `"1h30m"`, `"90s"` or a plain number of seconds."""
    text = value.strip().lower() if isinstance(value, str) else ""
    if _DURATION.fullmatch(text):
        seconds = sum(float(amount) * _UNITS[unit] for amount, unit in _PART.findall(text))
    else:
        seconds = _number(value, expected)
    if not 0 <= seconds <= _LONGEST:
        raise WrongValue(f"{expected}, at most a year", value)
    return seconds


def show_duration(seconds: float | None) -> str:
    """Return seconds as people write them, exactly."""
    if seconds is None:
        return "off"
    left = round(seconds * 1000)
    parts = []
    for unit in ("d", "h", "m", "s", "ms"):
        amount, left = divmod(left, round(_UNITS[unit] * 1000))
        if amount:
            parts.append(f"{amount}{unit}")
    return "".join(parts) or "0s"


def duration(*, off: bool = False, zero: bool = False) -> Kind:
    """Describe a duration, perhaps one that can be switched off, perhaps one that may be zero."""
    expected = 'a duration such as "90s", "30m" or "1h30m"' + (' or "off"' if off else "")

    def read(value: object) -> float | None:
        if off and (value is False or (isinstance(value, str) and value.strip().lower() == "off")):
            return None
        seconds = read_duration(value, expected)
        if seconds == 0 and not zero:
            raise WrongValue(f"{expected}, more than zero", value)
        return seconds

    return Kind(
        name="duration or off" if off else "duration",
        expected=expected,
        read=read,
        show=show_duration,
        schema={
            "anyOf": [
                {"type": "string", "pattern": r"^([0-9]+(\.[0-9]+)?(ms|s|m|h|d)\s*)+$" + ("|^off$" * off)},
                {"type": "number", ("minimum" if zero else "exclusiveMinimum"): 0},
                *([{"const": False}] if off else []),
            ]
        },
    )


def _read_size(value: object) -> int:
    expected = 'a size such as "512KB", "64MB" or "1GB", at least 1KB'
    match = _SIZE.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    number = float(match[1]) * _SIZES[(match[2] or "b")[0]] if match else _number(value, expected)
    if not 1024 <= number <= 2**50:
        raise WrongValue(expected, value)
    return int(number)


def _show_size(size: int) -> str:
    for unit in ("g", "m", "k"):
        if size % _SIZES[unit] == 0:
            return f"{size // _SIZES[unit]}{unit.upper()}B"
    return str(size)


SIZE: Final = Kind(
    name="size",
    expected='a size such as "512KB", "64MB" or "1GB"',
    read=_read_size,
    show=_show_size,
    schema={
        "anyOf": [
            {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?\s*([KkMmGg]i?)?[Bb]?$"},
            {"type": "integer", "minimum": 1024},
        ]
    },
)


SIZE_OR_OFF: Final = Kind(
    name="size or off",
    expected='a size such as "512MB" or "1GB", or "off"',
    read=lambda value: None if value is False or str(value).strip().lower() == "off" else _read_size(value),
    show=lambda size: "off" if size is None else _show_size(size),
    schema={
        "anyOf": [
            {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?\s*([KkMmGg]i?)?[Bb]?$|^off$"},
            {"type": "integer", "minimum": 1024},
            {"const": False},
        ]
    },
)


def _read_dollars(value: object) -> int | None:
    expected = 'an amount in dollars such as 12.50 (more than zero, whole millionths) or "off"'
    if value is False or (isinstance(value, str) and value.strip().lower() == "off"):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise WrongValue(expected, value)
    try:
        # Through text: 0.1 from a file means a tenth, not the binary fraction beside it.
        micros = Decimal(str(value).strip().removeprefix("$")) * 1_000_000
    except InvalidOperation:
        raise WrongValue(expected, value) from None
    if not micros.is_finite() or not 0 < micros <= 10**15 or micros != micros.to_integral_value():
        raise WrongValue(expected, value)
    return int(micros)


def _show_dollars(micros: int | None) -> str | float:
    return "off" if micros is None else float(Decimal(micros) / 1_000_000)


DOLLARS: Final = Kind(
    name="dollars or off",
    expected='an amount in dollars such as 12.50, or "off"',
    read=_read_dollars,
    show=_show_dollars,
    schema={
        "anyOf": [
            {"type": "number", "exclusiveMinimum": 0},
            {"type": "string", "pattern": r"^\$?[0-9]+(\.[0-9]{1,6})?$|^off$"},
            {"const": False},
        ]
    },
)


def count(low: int, high: int) -> Kind:
    """Describe a whole number between two bounds."""
    expected = f"a whole number from {low} to {high}"

    def read(value: object) -> int:
        number = _number(value, expected)
        if number != int(number) or not low <= number <= high:
            raise WrongValue(expected, value)
        return int(number)

    return Kind(
        name="number",
        expected=expected,
        read=read,
        show=int,
        schema={"type": "integer", "minimum": low, "maximum": high},
    )


def choice(*values: str, switch: tuple[str, str] | None = None) -> Kind:
    """Describe one of a few words; with a `switch` true and false are two of them."""
    expected = "one of " + ", ".join(f'"{value}"' for value in values)

    def read(value: object) -> str:
        if isinstance(value, str) and value in values:
            return value
        if switch is not None and (isinstance(value, bool) or str(value).strip().lower() in _TRUE | _FALSE):
            return switch[0] if _read_switch(value) else switch[1]
        guess = did_you_mean(value, values) if isinstance(value, str) else ""
        raise WrongValue(expected + guess, value)

    name = ", ".join(f"`{value}`" for value in values)
    allowed = [*values, *((True, False) if switch is not None else ())]
    return Kind(name=name, expected=expected, read=read, show=str, schema={"enum": allowed})


def _read_switch(value: object) -> bool:
    if isinstance(value, bool):
        return value
    text = value.strip().lower() if isinstance(value, str) else ""
    if text in _TRUE | _FALSE:
        return text in _TRUE
    raise WrongValue("true or false", value)


SWITCH: Final = Kind(
    name="true or false", expected="true or false", read=_read_switch, show=bool, schema={"type": "boolean"}
)


def text(*, what: str, pattern: str | None = None, optional: bool = False, limit: int = 200) -> Kind:
    """Describe a text of one shape; an optional one may be empty, which is None."""

    def read(value: object) -> str | None:
        if optional and isinstance(value, str) and not value.strip():
            return None
        if not isinstance(value, str) or not value.strip() or len(value) > limit or "\0" in value:
            raise WrongValue(what, value)
        if pattern is not None and not re.fullmatch(pattern, value):
            raise WrongValue(what, value)
        return value

    schema: dict[str, Any] = {"type": "string", "maxLength": limit}
    if pattern is not None:
        schema["pattern"] = f"^$|^({pattern})$" if optional else f"^({pattern})$"
    return Kind(name="text", expected=what, read=read, show=lambda value: value or "", schema=schema)


def items(*, what: str, each: Callable[[str], bool], schema: Mapping[str, Any]) -> Kind:
    """Describe a list of texts, which may be written as one text with commas."""

    def read(value: object) -> tuple[str, ...]:
        listed = value
        if isinstance(value, str):
            listed = json_list(value)
            if listed is None:
                listed = [part.strip() for part in value.split(",") if part.strip()]
        if not isinstance(listed, list | tuple):
            raise WrongValue(what, value)
        for item in listed:
            if not isinstance(item, str) or not each(item):
                raise WrongValue(what, item)
        return tuple(dict.fromkeys(listed))

    return Kind(
        name="list of texts",
        expected=what,
        read=read,
        show=list,
        schema={"type": "array", "items": {"type": "string", **schema}},
    )


def json_list(value: str) -> list[Any] | None:
    """Return the list that a text spells in JSON, or None when it does not."""
    if not value.lstrip().startswith("["):
        return None
    try:
        listed = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return listed if isinstance(listed, list) else None


def is_inside(path: str) -> bool:
    """Return whether a path, as written, stays within the folder that it is relative to."""
    pure = PurePosixPath(path)
    return bool(path.strip()) and not (
        pure.is_absolute() or path.startswith("~") or ".." in pure.parts or "\0" in path or len(path) > 1000
    )


def read_home(value: object) -> Path | None:
    """Read the path of a home; an empty text means the usual one."""
    expected = "an absolute path, or one that starts with ~/"
    if value == "":
        return None
    if isinstance(value, Path):
        value = str(value)
    if not isinstance(value, str) or not value.startswith(("/", "~/")) or "\0" in value:
        raise WrongValue(expected, value)
    return Path(value)


# What an option of an agent may be: adapters read their options themselves.


def _read_option(value: object) -> str | int | float | bool | list[str]:
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return list(value)
    if isinstance(value, str) and "\0" not in value:
        return value
    if isinstance(value, int | float) and math.isfinite(value):
        return value
    raise WrongValue("a text, a number, true or false, or a list of texts", value)


OPTION: Final = Kind(
    name="text, number, switch or list",
    expected="a text, a number, true or false, or a list of texts",
    read=_read_option,
    show=lambda value: value,
    schema={
        "anyOf": [
            {"type": ["string", "number", "boolean"]},
            {"type": "array", "items": {"type": "string"}},
        ]
    },
)
