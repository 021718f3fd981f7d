"""What a planner answers: the part of the plan format that is its to decide, in the shape that every service takes.

Services that hold a model to a schema want each key named as required and no choice between types, so a key that says
nothing is empty in the answer and left out of the plan. Settings, agents and permissions are a person's to decide.
"""

import io
import json
from collections.abc import Mapping
from typing import Any, Final

from loopwright.adapters.sources.spec.plan_format import MAX_PRIORITY, PLAN_KEYS, TASK_KEYS
from loopwright.core.policy.complexity import LEVELS

_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_USUAL_PRIORITY: Final = 50

TASK_SHAPES: Final[Mapping[str, Mapping[str, Any]]] = {
    "id": _TEXT,
    "title": _TEXT,
    "description": _TEXT,
    "depends_on": _TEXTS,
    "acceptance": _TEXTS,
    "held_out": _TEXTS,
    "criteria": _TEXTS,
    "scope": _TEXTS,
    "priority": {"type": "integer", "minimum": 0, "maximum": MAX_PRIORITY},
    "complexity": {"type": "string", "enum": list(LEVELS)},
}


def planner_schema(*, gates: bool = True) -> dict[str, Any]:
    """Return the JSON Schema of a planner's answer; `gates` says whether the project leaves its checks to the plan.

    It names no dialect: Claude Code takes a schema that names this one for invalid.
    """
    shapes: dict[str, Mapping[str, Any]] = {
        "title": _TEXT,
        **({"gates": _TEXTS} if gates else {}),
        "tasks": {"type": "array", "items": _object({name: _of(TASK_KEYS, name) for name in TASK_SHAPES})},
    }
    described = {name: {"description": PLAN_KEYS[name].description, **one} for name, one in shapes.items()}
    return {"title": "Loopwright: a planner's answer", **_object(described)}


def _of(keys: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {"description": keys[name].description, **TASK_SHAPES[name]}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": dict(properties),
    }


def as_written(text: str) -> str:
    """Return a planner's answer as a person would write it; an answer that is not JSON is such a text already."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    if not isinstance(found, dict):
        return text
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = 110
    out = io.StringIO()
    yaml.dump(_readable(found), out)
    return out.getvalue()


def _readable(value: Any) -> Any:
    from ruamel.yaml.scalarstring import LiteralScalarString

    if isinstance(value, dict):
        told = {key: one for key, one in value.items() if one not in ("", [], {}, None)}
        if told.get("priority") == _USUAL_PRIORITY:
            del told["priority"]
        return {key: _readable(one) for key, one in told.items()}
    if isinstance(value, list):
        return [_readable(one) for one in value]
    if isinstance(value, str) and "\n" in value.strip():
        # A block as it is; a line ending other than a line feed would not survive it.
        lines = [line.rstrip() for line in value.strip().splitlines()]
        return LiteralScalarString("\n".join(lines) + "\n")
    return value
