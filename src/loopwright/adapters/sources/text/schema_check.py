"""Checking located JSON against a JSON Schema: the published schema is what decides, and each problem has its line.

Only the words of JSON Schema that our own schemas use are known; another one is our defect and raises.
"""

import math
import re
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any, Final

from loopwright.adapters.sources.text.located import Located
from loopwright.adapters.sources.text.problems import Problems
from loopwright.config.nearest import did_you_mean, quoted

Schema = Mapping[str, Any]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_TYPES: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = MappingProxyType(
    {
        "object": ("an object", lambda value: isinstance(value, dict)),
        "array": ("a list", lambda value: isinstance(value, list)),
        "string": ("a text", lambda value: isinstance(value, str)),
        "boolean": ("true or false", lambda value: isinstance(value, bool)),
        "null": ("null", lambda value: value is None),
        "number": ("a number", _is_number),
        "integer": ("a whole number", lambda value: _is_number(value) and float(value).is_integer()),
    }
)
_KNOWN: Final = frozenset(
    [
        "$schema",
        "title",
        "description",
        "default",
        "type",
        "enum",
        "pattern",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "required",
        "properties",
        "additionalProperties",
        "items",
        "minItems",
    ]
)


def check_schema(found: Located, schema: Schema, problems: Problems, place: str = "") -> None:
    """Note everything about a value that its schema does not allow."""
    assert schema.keys() <= _KNOWN, f"unknown words in a schema: {schema.keys() - _KNOWN}"
    value = found.value
    if "type" in schema and not _has_type(value, schema["type"]):
        problems.note(found.line, place, f"expected {_types(schema['type'])}, got {_shown(found)}")
        return
    if "enum" in schema and value not in schema["enum"]:
        known = [each for each in schema["enum"] if isinstance(each, str)]
        words = ", ".join("null" if each is None else str(each) for each in schema["enum"])
        guess = did_you_mean(value, known) if isinstance(value, str) and not problems.crowded else ""
        problems.note(found.line, place, f"expected one of: {words}; got {_shown(found)}{guess}")
    elif isinstance(value, str):
        _check_text(found, value, schema, problems, place)
    elif isinstance(value, dict):
        _check_table(found, value, schema, problems, place)
    elif isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            problems.note(found.line, place, "empty: at least one entry is needed")
        for index, inner in enumerate(value) if "items" in schema else ():
            check_schema(inner, schema["items"], problems, f"{place}[{index}]")
    elif _is_number(value):
        least, most = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
        if not least <= value <= most:
            bounds = f"{least} to {most}" if most != math.inf else f"{least} or more"
            problems.note(found.line, place, f"expected {bounds}, got {_shown(found)}")


def check_types(found: Located, schema: Schema, problems: Problems, place: str = "") -> None:
    """Note what has another type than its schema says; a word that the schema does not list is only odd.

    For a file that others write, too: what is missing or null, and the entries of lists, may be as they are.
    """
    value = found.value
    if value is None:
        return
    if "enum" in schema:
        known = [each for each in schema["enum"] if isinstance(each, str)]
        if not isinstance(value, str):
            problems.note(found.line, place, f"expected one of: {', '.join(known)}; got {_shown(found)}")
        elif value and value not in known:
            guess = did_you_mean(value, known)
            problems.warn(found.line, place, f"{quoted(value)} is none of: {', '.join(known)}{guess}")
    elif not _has_type(value, schema["type"]):
        problems.note(found.line, place, f"expected {_types(schema['type'])}, got {_shown(found)}")
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key in schema.get("properties", {}):
                check_types(inner, schema["properties"][key], problems, f"{place}.{key}" if place else key)


def _check_text(found: Located, value: str, schema: Schema, problems: Problems, place: str) -> None:
    least, most = schema.get("minLength", 0), schema.get("maxLength", math.inf)
    if not least <= len(value) <= most:
        bounds = f"{least} to {most}" if most != math.inf else f"{least} or more"
        problems.note(found.line, place, f"expected a text of {bounds} characters")
    elif "pattern" in schema and re.search(_whole(schema["pattern"]), value) is None:
        problems.note(found.line, place, f"expected a text like {schema['pattern']}, got {_shown(found)}")


def _whole(pattern: str) -> str:
    # Here `$` lets a newline at the end through; in JSON Schema it does not.
    return f"{pattern[:-1]}\\Z" if pattern.endswith("$") else pattern


def _check_table(
    found: Located, table: dict[str, Located], schema: Schema, problems: Problems, place: str
) -> None:
    properties: Schema = schema.get("properties", {})
    prefix = f"{place}." if place else ""
    for key in schema.get("required", ()):
        if key not in table:
            problems.note(found.line, f"{prefix}{key}", "missing")
    for key, inner in table.items():
        if key in properties:
            check_schema(inner, properties[key], problems, f"{prefix}{key}")
            continue
        name = f"{prefix}{quoted(key)[1:-1]}"
        if schema.get("additionalProperties", True) is False:
            problems.note(inner.line, name, f"unknown key{_guess(key, properties, problems)}")
        elif isinstance(schema.get("additionalProperties"), Mapping):
            check_schema(inner, schema["additionalProperties"], problems, name)


def _guess(key: str, properties: Collection[str], problems: Problems) -> str:
    return "" if problems.crowded else did_you_mean(key, properties)


def _has_type(value: Any, wanted: str | list[str]) -> bool:
    return any(_TYPES[each][1](value) for each in ([wanted] if isinstance(wanted, str) else wanted))


def _types(wanted: str | list[str]) -> str:
    return " or ".join(_TYPES[each][0] for each in ([wanted] if isinstance(wanted, str) else wanted))


def _shown(found: Located) -> str:
    if isinstance(found.value, dict):
        return "an object"
    if isinstance(found.value, list):
        return "a list"
    return quoted(found.value) if isinstance(found.value, str) else found.text[:60]
