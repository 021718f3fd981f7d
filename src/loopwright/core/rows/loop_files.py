"""The shape of the files about loops that other programs read: the registry, health files, configurations."""

from collections.abc import Mapping
from typing import Any, Final

from loopwright.core.values.shapes import published
from loopwright.core.values.states import LoopState, PlanState

_TEXT: Final = {"type": "string"}
_NAME: Final = {"type": ["string", "null"]}
_COUNT: Final = {"type": "integer", "minimum": 0}
_COUNT_OR_NONE: Final = {"type": ["integer", "null"], "minimum": 0}
_MOMENT: Final = {"type": "string", "format": "date-time"}
_MOMENT_OR_NONE: Final = {"type": ["string", "null"], "format": "date-time"}
WORDS: Final = ("starting", *(one.value.lower() for one in LoopState))
"""The states of a loop in these files, in one word each."""


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": dict(properties),
    }


_LOOP: Final = _object(
    {
        "name": _TEXT,
        "project_id": _TEXT,
        "source": _TEXT,
        "status": {"enum": list(WORDS)},
        "pid": _COUNT_OR_NONE,
        "started_at": _MOMENT_OR_NONE,
        "last_heartbeat": _MOMENT_OR_NONE,
        "current_test": _NAME,
        "progress": _object({"passed": _COUNT, "total": _COUNT}),
        "priority": {"type": "integer"},
        "resources": _object({"agent": _NAME, "model": _NAME, "max_concurrent": _COUNT_OR_NONE}),
        "budget": _object({"max_cost": _COUNT_OR_NONE, "spent": _COUNT}),
    }
)

LOOP_REGISTRY: Final = published(
    "Loopwright: loop_registry.json",
    _object(
        {
            "updated_at": _MOMENT,
            "next_update_before": {
                **_MOMENT_OR_NONE,
                "description": "After this moment no worker is alive, and every pid is stale; null once it has ended.",
            },
            "loops": {"type": "object", "additionalProperties": _LOOP},
        }
    ),
)
"""All loops by their ids."""

LOOP_HEALTH: Final = published(
    "Loopwright: the health file of a loop",
    _object(
        {
            "loop": _TEXT,
            "loop_id": _TEXT,
            "status": {"enum": [one.value for one in LoopState]},
            "plan_id": _TEXT,
            "plan_status": {"enum": [one.value for one in PlanState]},
            "current_test": _NAME,
            "progress": _object(dict.fromkeys(("passed", "settled", "failed", "total"), _COUNT)),
            "last_heartbeat": _MOMENT,
            "next_heartbeat_before": _MOMENT_OR_NONE,
            "pid": _COUNT_OR_NONE,
            "hostname": _NAME,
        }
    ),
)

_CONFIG: Final[Mapping[str, Any]] = {
    "name": {"type": "string", "minLength": 1, "maxLength": 200},
    "specs_dir": {"type": "string", "minLength": 1, "maxLength": 1000},
    "test_state_file": {"type": "string", "minLength": 1, "maxLength": 1000},
    "model": {
        "type": "string",
        "minLength": 1,
        "maxLength": 200,
        "default": "claude-opus-4-5-20251101",
        "description": "The default is published for other programs. Without a model, Loopwright takes the project's.",
    },
    "max_attempts": {"type": "integer", "minimum": 1, "maximum": 10, "default": 3},
    "priority": {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
    "auto_heal": {"type": "boolean", "default": False},
}

LOOP_CONFIG: Final[Mapping[str, Any]] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Loopwright: loop_config.json",
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "specs_dir", "test_state_file"],
    "properties": _CONFIG,
}
"""The configuration of a loop over a test-state.json."""

LOOP_FILES: Final[Mapping[str, Mapping[str, Any]]] = {
    "loop_config": LOOP_CONFIG,
    "loop_registry": LOOP_REGISTRY,
    "loop_health": LOOP_HEALTH,
}
