"""The shapes of a test-state.json and of the config.json beside it: what is checked, and what is filled in."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from loopwright.config.publish import SCHEMA_DIALECT

_ID: Final[dict[str, Any]] = {"type": "string", "minLength": 1, "maxLength": 128, "pattern": r"^[^\r\n]*$"}
_NAME: Final[dict[str, Any]] = {"type": "string", "minLength": 1, "maxLength": 200}
_PATH: Final[dict[str, Any]] = {"type": "string", "minLength": 1, "maxLength": 1000}
_TIME: Final[dict[str, Any]] = {"type": ["string", "null"], "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}"}
_COUNT: Final[dict[str, Any]] = {"type": "integer", "minimum": 0}
COUNTS: Final = ("total", "passed", "failed", "blocked", "pending")
NOT_AUTOMATABLE: Final = "it cannot be automated: a person has to do it (automatable is false)"
STATUSES: Final = ("pending", "passed", "failed", "blocked")
USUAL_PRIORITY: Final = 5

HEALTH: Final[dict[str, Any]] = {
    "$schema": SCHEMA_DIALECT,
    "title": "Loopwright: the health file of a test-state.json",
    "type": "object",
    "additionalProperties": False,
    "required": ["loop_name", "status", "current_test", "progress", "last_heartbeat", "pid"],
    "properties": {
        "loop_name": _NAME,
        "status": {"enum": ["starting", "running", "stopped", "error"]},
        "current_test": {"type": ["string", "null"]},
        "progress": {
            "type": "object",
            "additionalProperties": False,
            "required": ["passed", "total"],
            "properties": {"passed": _COUNT, "total": _COUNT},
        },
        "last_heartbeat": {"type": "string", "format": "date-time"},
        "pid": {"type": ["integer", "null"]},
    },
}
CONFIG: Final[dict[str, Any]] = {
    "$schema": SCHEMA_DIALECT,
    "title": "Loopwright: the config.json of a test-state.json",
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "specs_dir", "test_state_file"],
    "properties": {
        "name": _NAME,
        "specs_dir": _PATH,
        "test_state_file": _PATH,
        "project_dir": {"type": "string"},
        "model": {"type": "string", "minLength": 1, "maxLength": 200},
        "max_attempts": {"type": "integer", "minimum": 1, "maximum": 10, "default": 3},
        "auto_continue_delay": {"type": "number", "minimum": 0, "maximum": 60, "default": 3},
        "priority": {"type": "integer", "minimum": 1, "maximum": 10, "default": USUAL_PRIORITY},
        "auto_heal": {"type": "boolean", "default": False},
        "health_check": {
            "type": "object",
            "additionalProperties": False,
            "default": {},
            "properties": {
                "enabled": {"type": "boolean", "default": False},
                "interval_seconds": {"type": "number", "minimum": 5, "default": 30},
                "file": {**_PATH, "default": "health.json"},
            },
        },
        "logging": {
            "type": "object",
            "additionalProperties": False,
            "default": {},
            "properties": {
                "transcript_tail_lines": {"type": "integer", "minimum": 10, "default": 100},
                "max_transcript_chars": {"type": "integer", "minimum": 5000, "default": 50000},
            },
        },
        "metadata": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "created_at": _TIME,
                "created_by": {"type": "string"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "description": {"type": "string"},
            },
        },
    },
}

TEST_STATE: Final[dict[str, Any]] = {
    "$schema": SCHEMA_DIALECT,
    "title": "Loopwright: a test-state.json",
    "type": "object",
    "required": ["tests"],
    "properties": {
        "loopName": {"type": ["string", "null"], "maxLength": 200},
        "lastUpdated": {"type": ["string", "null"]},
        "summary": {"type": ["object", "null"]},
        "specFiles": {"description": "The specification of all tests whose id begins alike."},
        "tests": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["id"],
                "properties": {
                    "id": _ID,
                    "name": {"type": ["string", "null"]},
                    "category": {"type": ["string", "null"], "maxLength": 200},
                    "status": {
                        "type": ["string", "null"],
                        "description": f"{', '.join(STATUSES)}; another word waits for you.",
                    },
                    "attempts": {"type": ["integer", "null"], "minimum": 0, "default": 0},
                    "lastResult": {"type": ["string", "null"]},
                    "dependsOn": {"type": ["string", "array", "null"], "items": {"type": "string"}},
                    "automatable": {"type": ["boolean", "null"], "default": True},
                    "notes": {"type": ["string", "null"], "maxLength": 200_000},
                    "passCriteria": {
                        "type": ["array", "string", "null"],
                        "items": {"type": "string", "maxLength": 5000},
                    },
                    "lastAttemptAt": {"type": ["string", "null"]},
                    "passedAt": {"type": ["string", "null"]},
                },
            },
        },
    },
}

_WHOLE: Final = "transcripts are kept whole: see `loopwright logs`"
UNUSED: Final[Mapping[str, str]] = {
    "project_dir": "the project is the repository in which this file is",
    "auto_continue_delay": "the next test begins as soon as there is room",
    "logging.transcript_tail_lines": _WHOLE,
    "logging.max_transcript_chars": _WHOLE,
}
"""Keys of a configuration that change nothing here, and what is done instead."""
AS_ASKED: Final[Mapping[str, Any]] = {"auto_continue_delay": 0}
"""What such a key may say besides its default that is so anyway."""

RENAMED: Final[Mapping[str, str]] = {"name": "loopName"}
"""Keys of the older shape, and what they are called now."""
RETIRED: Final = frozenset({"version"})
"""Keys of the older shape that say nothing any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopConfig:
    """A config.json with everything that was left out filled in."""

    name: str
    specs_dir: str
    test_state_file: str
    project_dir: str | None = None
    model: str | None = None
    max_attempts: int
    auto_continue_delay: float
    priority: int
    auto_heal: bool
    health_check: Mapping[str, Any]
    logging: Mapping[str, Any]
    metadata: Mapping[str, Any] | None = None


def loop_config(plain: Mapping[str, Any]) -> LoopConfig:
    """Return a configuration that its schema allows, with the schema's defaults."""
    return LoopConfig(**filled(CONFIG, plain))


def filled(schema: Mapping[str, Any], plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with the defaults of its schema where it says nothing."""
    found = dict(plain)
    for key, inner in schema.get("properties", {}).items():
        if key not in found and "default" in inner:
            found[key] = inner["default"]
        if isinstance(found.get(key), Mapping) and inner.get("type") == "object":
            found[key] = filled(inner, found[key])
    return found
