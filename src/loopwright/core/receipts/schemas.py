"""The JSON Schemas of receipts, packets and agents' answers, by their published names."""

from typing import Any, Final

from loopwright.core.plans import plan_evaluators
from loopwright.core.plans.inspection_packets import (
    LONGEST_LINE,
    LONGEST_TEXT,
    MOST_ENTRIES,
    MOST_EVENTS,
    MOST_LINES,
    MOST_QUESTIONS,
    VERSION,
)
from loopwright.core.receipts.model import Receipt
from loopwright.core.replies import qa, reviews
from loopwright.core.values.shapes import json_schema, published

_CUT: Final = len("\n[cut]")
_TEXT: Final = {"type": "string", "maxLength": LONGEST_TEXT + _CUT}
_ID: Final = {"type": ["string", "null"]}
_MOMENT: Final = {"type": ["string", "null"], "format": "date-time"}


def _object(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
        **more,
    }


def _several(of: dict[str, Any], most: int | None = None) -> dict[str, Any]:
    return {"type": "array", "items": of, **({"maxItems": most} if most else {})}


_TASK: Final = _object(
    {
        "task_id": _ID,
        **dict.fromkeys(("key", "title", "prompt", "state"), _TEXT),
        **dict.fromkeys(("started_at", "ended_at"), _MOMENT),
        **dict.fromkeys(("result", "error"), _TEXT),
    }
)
_PROJECT: Final = _object(
    {
        "name": _TEXT,
        "languages": _several(_TEXT),
        "setup": _TEXT,
        "gates": _several(_object(dict.fromkeys(("name", "command", "why", "missing"), _TEXT))),
        "layout": _several(_TEXT, MOST_ENTRIES),
        "texts": {"type": "object", "additionalProperties": _TEXT},
        "history": _several(_TEXT),
        "base": _TEXT,
    }
)
_LINE: Final = {
    "stream": _TEXT,
    "line": {"type": "string", "maxLength": LONGEST_LINE + _CUT},
    "timestamp": _TEXT,
}
PACKET: Final = _object(
    {
        "packet_id": {"type": "string", "pattern": "^pkt_"},
        "type": {"type": "string", "enum": ["task", "project"]},
        "generated_at": {"type": "string", "format": "date-time"},
        "generated_by": _TEXT,
        "goal": _TEXT,
        **dict.fromkeys(("run_id", "plan_id", "project_id"), _ID),
        "task": {"anyOf": [_TASK, {"type": "null"}]},
        "project": {"anyOf": [_PROJECT, {"type": "null"}]},
        "events": _several({"type": "object"}, MOST_EVENTS),
        "logs": _several(_object(_LINE), MOST_LINES),
        "errors": _several(_TEXT),
        "clarifications": _several(_object(dict.fromkeys(("question", "answer"), _TEXT)), MOST_QUESTIONS),
        "open_questions": _several(_TEXT),
        "cut": _several(_TEXT),
        "version": {"const": VERSION},
    }
)


def document_schemas() -> dict[str, dict[str, Any]]:
    """Return the schema of each of these documents."""
    titled = {
        "evaluation": ("What an evaluator answers about a plan", plan_evaluators.SCHEMA),
        "review": ("What a reviewer answers about a change", reviews.SCHEMA),
        "qa_full": ("What a full QA review reports", qa.schema("full")),
        "qa_lite": ("What a lite QA review reports", qa.schema("lite")),
        "packet": ("An inspection packet", PACKET),
        "receipt": ("Loopwright: a receipt", json_schema(Receipt)),
    }
    return {name: published(title, schema) for name, (title, schema) in titled.items()}
