"""Scenarios from JSON files: the fields of the data, by their names.

    {"turns": [TURN, ...], "by_prompt": {TEXT: [TURN, ...]}, "aside": REPLY}

A TURN is a reply {"text": ..., "tools": [{"name": ..., "input": ...}], ...}, a {"trouble": KIND}, an exact rejection
{"status": ..., "kind": ..., "message": ...}, or {"fails": TURN, "times": N, "then": REPLY}.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar, get_args

from loopwright.core.rows.model import Usage
from loopwright.core.values.errors import BadConfig
from loopwright.testing.model_server.scenario import (
    Flaky,
    Rejection,
    Reply,
    Scenario,
    ToolCall,
    Trouble,
    TroubleKind,
    Turn,
)

T = TypeVar("T")


def load(path: Path) -> Scenario:
    """Read a scenario; an error names the place in the file."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise BadConfig(f"{path} cannot be read as a scenario: {problem}", code="bad_scenario") from problem
    return parse(value, str(path))


def parse(value: Any, source: str) -> Scenario:
    """Read a scenario from its JSON form."""
    known = _mapping(value, source)
    by_prompt = _mapping(known.get("by_prompt", {}), f"{source}: by_prompt")
    given: dict[str, Any] = {
        **known,
        "turns": _turns(known.get("turns"), f"{source}: turns"),
        "by_prompt": {
            text: _turns(turns, f"{source}: by_prompt[{text!r}]") for text, turns in by_prompt.items()
        },
    }
    if "aside" in known:
        given["aside"] = _reply(known["aside"], f"{source}: aside")
    return _made(Scenario, given, source)


def _turns(value: Any, where: str) -> tuple[Turn, ...]:
    turns = tuple(_turn(one, f"{where}[{n}]") for n, one in enumerate(_list(value, where)))
    if not turns:
        raise BadConfig(f"{where}: at least one turn is needed", code="bad_scenario")
    return turns


def _turn(value: Any, where: str) -> Turn:
    given = _mapping(value, where)
    if "fails" not in given:
        return _refusal(given, where) or _reply(given, where)
    fails = _refusal(_mapping(given["fails"], where), f"{where}.fails")
    if fails is None:
        raise BadConfig(f"{where}.fails: it must be a trouble or a rejection", code="bad_scenario")
    then = _reply(given.get("then"), f"{where}.then")
    times = given.get("times")
    if isinstance(times, bool) or not isinstance(times, int) or times < 1:
        raise BadConfig(f"{where}.times: it must be a whole number of at least 1", code="bad_scenario")
    return _made(Flaky, {**given, "fails": fails, "then": then}, where)


def _refusal(given: Mapping[str, Any], where: str) -> Rejection | Trouble | None:
    if "trouble" in given:
        kind = given["trouble"]
        if kind not in get_args(TroubleKind):
            known = ", ".join(get_args(TroubleKind))
            raise BadConfig(
                f"{where}: there is no trouble {kind!r}", code="bad_scenario", hint=f"known are: {known}"
            )
        return _made(Trouble, {**_without(given, "trouble"), "kind": kind}, where)
    return _made(Rejection, given, where) if "status" in given else None


def _reply(value: Any, where: str) -> Reply:
    given = dict(_mapping(value, where))
    for name, read in _PARTS.items():
        if name in given:
            given[name] = read(given[name], f"{where}.{name}")
    return _made(Reply, given, where)


def _tools(value: Any, where: str) -> tuple[ToolCall, ...]:
    return tuple(
        _made(ToolCall, _mapping(one, f"{where}[{n}]"), f"{where}[{n}]")
        for n, one in enumerate(_list(value, where))
    )


def _usage(value: Any, where: str) -> Usage:
    return _made(Usage, _mapping(value, where), where)


_PARTS: Mapping[str, Callable[[Any, str], Any]] = {"tools": _tools, "usage": _usage}


def _made(kind: type[T], given: Mapping[str, Any], where: str) -> T:
    """Make a value of the fields that were given, and refuse those that would do nothing."""
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise BadConfig(
            f"{where}: unknown {', '.join(unknown)}",
            code="bad_scenario",
            hint=f"known are: {', '.join(known)}",
        )
    required = {n for n, one in known.items() if one.default is MISSING and one.default_factory is MISSING}
    if missing := sorted(required - set(given)):
        raise BadConfig(f"{where}: {', '.join(missing)} is missing", code="bad_scenario")
    return kind(**given)


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise BadConfig(f"{where}: it must be an object", code="bad_scenario")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise BadConfig(f"{where}: it must be a list", code="bad_scenario")
    return value


def _without(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key != name}
