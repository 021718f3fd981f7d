"""Dataclasses as the shape of JSON: read a value strictly, and publish the equivalent JSON Schema.

A field is a text, number, flag, moment, enum, literal, dataclass, tuple or mapping of those, anything
(`Any`), or None beside one of them. `Annotated[str, Rule(...)]` adds a rule for the value.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from loopwright.core.values import ids

T = TypeVar("T")
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_SHA: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PLAIN: Final[Mapping[Any, tuple[str, Callable[[Any], bool]]]] = {
    str: ("string", lambda value: isinstance(value, str)),
    bool: ("boolean", lambda value: isinstance(value, bool)),
    int: ("integer", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    float: ("number", lambda value: isinstance(value, int | float) and not isinstance(value, bool)),
}


class Misshapen(ValueError):
    """A value does not have the shape of its type; `problems` names each place."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A further rule for a value, as a test and as JSON Schema."""

    holds: Callable[[Any], bool]
    schema: Mapping[str, Any]


def one_of(words: Iterable[str]) -> Rule:
    """Return the rule for one of these words."""
    known = sorted(str(word) for word in words)
    return Rule(known.__contains__, {"enum": known})


def id_of(kind: ids.Kind) -> Rule:
    """Return the rule for an id of this kind."""
    return Rule(lambda value: ids.is_id(value, kind), {"pattern": f"^{kind.value}_[0-9a-f-]{{36}}$"})


def _stays_inside(path: str) -> bool:
    return bool(path.strip()) and not (path.startswith("/") or ".." in path.split("/") or "\0" in path)


Sha = Annotated[
    str, Rule(lambda value: _SHA.fullmatch(value) is not None, {"pattern": f"^({_SHA.pattern})$"})
]
"""A SHA-1 or SHA-256 hash in hexadecimal."""
Count = Annotated[int, Rule(lambda value: value >= 0, {"minimum": 0})]
RelativePath = Annotated[str, Rule(_stays_inside, {"minLength": 1})]
"""A path that stays below the folder that it is relative to."""
PlanId = Annotated[str, id_of(ids.Kind.PLAN)]
TaskId = Annotated[str, id_of(ids.Kind.TASK)]
AttemptId = Annotated[str, id_of(ids.Kind.ATTEMPT)]
RunId = Annotated[str, id_of(ids.Kind.RUN)]
VerdictId = Annotated[str, id_of(ids.Kind.VERDICT)]
ReviewId = Annotated[str, id_of(ids.Kind.REVIEW)]
FinishId = Annotated[str, id_of(ids.Kind.FINISH)]


def decode(kind: type[T], value: Any, place: str) -> T:
    """Return a JSON value as a dataclass; raise `Misshapen` for any field that is missing, unknown or wrong."""
    problems: list[str] = []
    decoded: T = _read(kind, value, place, problems)
    if problems:
        raise Misshapen(problems)
    return decoded


def _read(hint: Any, value: Any, place: str, problems: list[str]) -> Any:
    """Return the value as its type requires; a result beside a problem is never used."""
    kind, parts = get_origin(hint), get_args(hint)
    if kind in (Union, UnionType):
        (other,) = (part for part in parts if part is not NoneType)
        return None if value is None else _read(other, value, place, problems)
    if kind is tuple:
        if not isinstance(value, list):
            problems.append(f"{place}: not a list")
            return ()
        return tuple(_read(parts[0], item, f"{place}[{n}]", problems) for n, item in enumerate(value))
    if kind is Mapping:
        if not isinstance(value, dict):
            problems.append(f"{place}: not an object")
            return {}
        return {name: _read(parts[1], item, f"{place}.{name}", problems) for name, item in value.items()}
    if is_dataclass(hint):
        return _read_fields(hint, value, place, problems)
    if hint is Any:
        return value
    if hint is datetime:
        return _read_moment(value, place, problems)
    if kind is Annotated:
        found = len(problems)
        read = _read(parts[0], value, place, problems)
        if len(problems) == found and not all(rule.holds(value) for rule in parts[1:]):
            problems.append(_wrong(place, value))
        return read
    if kind is Literal:
        good = isinstance(value, str) and value in parts
    elif isinstance(hint, type) and issubclass(hint, StrEnum):
        good = isinstance(value, str) and value in {one.value for one in hint}
        if good:
            return hint(value)
    else:
        good = _PLAIN[hint][1](value)
    if not good:
        problems.append(_wrong(place, value))
    return value


def _read_moment(value: Any, place: str, problems: list[str]) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        moment = None
    if moment is None or moment.tzinfo is None:
        problems.append(_wrong(place, value))
    return moment


def _read_fields(kind: Any, value: Any, place: str, problems: list[str]) -> Any:
    if not isinstance(value, dict):
        problems.append(f"{place}: not an object")
        return None
    found, hints = len(problems), _hints(kind)
    problems += [f"{place}.{name}: missing" for name in hints if name not in value]
    problems += [f"{place}.{name}: not a known field" for name in value if name not in hints]
    read = {
        name: _read(hint, value[name], f"{place}.{name}", problems)
        for name, hint in hints.items()
        if name in value
    }
    return kind(**read) if len(problems) == found else None


def _wrong(place: str, value: Any) -> str:
    return f"{place}: {value!r:.80} is not allowed here"


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in fields(kind)}


def published(title: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema as it is published: with its dialect and a title."""
    return {"$schema": _DIALECT, "title": title, **schema}


def json_schema(hint: Any) -> dict[str, Any]:
    """Return the JSON Schema of a type; it accepts exactly what `decode` accepts."""
    kind, parts = get_origin(hint), get_args(hint)
    if kind in (Union, UnionType):
        (other,) = (part for part in parts if part is not NoneType)
        return {"anyOf": [json_schema(other), {"type": "null"}]}
    if kind is tuple:
        return {"type": "array", "items": json_schema(parts[0])}
    if kind is Mapping:
        return {"type": "object", "additionalProperties": json_schema(parts[1])}
    if is_dataclass(hint):
        kind_of: Any = hint
        named = {name: json_schema(part) for name, part in _hints(kind_of).items()}
        return {
            "type": "object",
            "additionalProperties": False,
            "required": list(named),
            "properties": named,
        }
    if kind is Annotated:
        rules = {key: value for rule in parts[1:] for key, value in rule.schema.items()}
        return rules if "enum" in rules else json_schema(parts[0]) | rules
    if kind is Literal:
        return {"enum": list(parts)}
    if hint is Any:
        return {}
    if hint is datetime:
        return {"type": "string", "format": "date-time"}
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return {"enum": sorted(one.value for one in hint)}
    return {"type": _PLAIN[hint][0]}
