"""Read an agent's structured answer: a structured result, or a fenced block."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from loopwright.core.values.policy import Answering

LONGEST: Final = 1_000_000
"""The most characters of an answer that are kept as a file."""
_OTHERS: Final = "yaml|yml|json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """Why an answer cannot be used."""

    problem: str


def answer_in(answering: Answering, structured: Mapping[str, Any] | None, said: str) -> str:
    """Return the answer as the text of its file: the structured result, else the last block, else the whole message."""
    if structured is not None:
        return json.dumps(structured, indent=2, ensure_ascii=False)[:LONGEST] + "\n"
    for fence in (re.escape(answering.fence), _OTHERS):
        if blocks := _blocks(said, fence):
            return blocks[-1][:LONGEST]
    return said.strip()[:LONGEST] + "\n"


def object_in(text: str, fence: str) -> dict[str, Any] | None:
    """Return the object in the last block of this language that has one, or the text itself if it is one."""
    for block in (*reversed(_blocks(text, f"{fence}|json")), text):
        try:
            value = json.loads(block)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    return None


def _blocks(text: str, languages: str) -> list[str]:
    return re.findall(rf"^```(?:{languages})[ \t]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def findings_schema(place: Mapping[str, Any], severities: Iterable[str]) -> Mapping[str, Any]:
    """Return the schema of an answer with findings: a summary, and for each finding its place, severity and text."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["summary", "findings"],
        "properties": {
            "summary": {
                "type": "string",
                "description": "What you looked at and came to, in one or two sentences.",
            },
            "findings": {
                "type": "array",
                "items": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": [*place, "severity", "text"],
                    "properties": {
                        **place,
                        "severity": {"type": "string", "enum": list(severities)},
                        "text": {"type": "string", "description": "What is wrong, and what would be right."},
                    },
                },
            },
        },
    }


def missing(fence: str) -> Unreadable:
    """Return the problem of a missing answer."""
    return Unreadable(problem=f"your last message has no block ```{fence} with a JSON object")


def clean(value: object, limit: int) -> str:
    """Return a text that can be stored everywhere; empty if it is not a text."""
    if not isinstance(value, str):
        return ""
    return value.replace("\0", "").encode("utf-8", "replace").decode("utf-8").strip()[:limit]
