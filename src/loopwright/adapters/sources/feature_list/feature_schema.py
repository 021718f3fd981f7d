"""The shape of a feature list."""

from typing import Any, Final

from loopwright.adapters.sources.spec.plan_format import MAX_DESCRIPTION, MAX_ID, MAX_TITLE
from loopwright.config.publish import SCHEMA_DIALECT

_TEXTS: Final[dict[str, Any]] = {"type": "array", "items": {"type": "string"}}
_IDS: Final[dict[str, Any]] = {
    "type": "array",
    "items": {"type": ["string", "integer"], "maxLength": MAX_ID},
}
COMPLEXITIES: Final = ("high", "medium", "low")

FEATURE_LIST: Final[dict[str, Any]] = {
    "$schema": SCHEMA_DIALECT,
    "title": "Loopwright: a feature list (feature_list.json)",
    "type": "object",
    "required": ["features"],
    "properties": {
        "features": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["id", "name", "description"],
                "properties": {
                    "id": {"type": ["string", "integer"], "minLength": 1, "maxLength": MAX_ID},
                    "name": {"type": "string", "minLength": 1, "maxLength": MAX_TITLE},
                    "description": {"type": "string", "maxLength": MAX_DESCRIPTION},
                    "priority": {"description": "A number, lower first; 99 when left out or no number."},
                    "category": {"type": ["string", "null"], "maxLength": MAX_TITLE},
                    "passes": {"type": ["boolean", "null"], "description": "Whether it is done."},
                    "blocked": {"type": ["boolean", "null"]},
                    "blocked_reason": {"type": ["string", "null"]},
                    "blocked_by": {**_IDS, "type": ["array", "null"]},
                    "blocked_at": {"type": ["string", "null"]},
                    "suggested_fix": {"type": ["string", "null"]},
                    "needs_review": {"type": ["boolean", "null"]},
                    "dependencies": {**_IDS, "type": ["array", "null"]},
                    "tests": {**_TEXTS, "type": ["array", "null"]},
                    "complexity": {"description": "high, medium or low; ignored when it is none of them."},
                    "qa_origin": {"type": ["string", "null"]},
                    "severity": {"type": ["string", "null"]},
                },
            },
        }
    },
}
