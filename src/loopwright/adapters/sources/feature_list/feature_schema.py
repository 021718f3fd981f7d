"""The shape of a feature list, as far as Loopwright reads it."""

from typing import Any, Final

from loopwright.config.publish import SCHEMA_DIALECT

_FLAG: Final[dict[str, Any]] = {"type": ["boolean", "string", "null"]}
_LISTED: Final[dict[str, Any]] = {"type": ["array", "string", "null"]}
_WORD: Final[dict[str, Any]] = {"type": ["string", "null"]}
COMPLEXITIES: Final = ("high", "medium", "low")

ITEM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "id": {"type": ["string", "number", "null"], "description": "Without one, the title names the task."},
        "title": _WORD,
        "name": _WORD,
        "description": {"type": ["string", "array", "null"]},
        "priority": {"description": "A number, lower first, or a word such as high; 99 when left out."},
        "category": _WORD,
        "passes": {**_FLAG, "description": "Whether it is done."},
        "status": {**_FLAG, "description": "A word such as pending, in_progress, done or blocked."},
        "blocked": {"type": ["boolean", "null"]},
        "blocked_reason": _WORD,
        "blocked_by": _LISTED,
        "blocked_at": _WORD,
        "suggested_fix": _WORD,
        "needs_review": {"type": ["boolean", "null"]},
        "dependencies": _LISTED,
        "depends_on": _LISTED,
        "tests": _LISTED,
        "steps": _LISTED,
        "acceptance": _LISTED,
        "acceptance_criteria": _LISTED,
        "verification": _LISTED,
        "complexity": {"description": "high, medium or low; ignored when it is none of them."},
        "qa_origin": _WORD,
        "severity": _WORD,
    },
}
FEATURE_LIST: Final[dict[str, Any]] = {
    "$schema": SCHEMA_DIALECT,
    "title": "Loopwright: a feature list (feature_list.json)",
    "type": ["object", "array"],
    "items": ITEM,
    "properties": {"features": {"type": ["array", "object"], "items": ITEM}},
}
