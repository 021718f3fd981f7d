"""Reading what an agent answers in a form that it was asked for: a structured result, or a fenced block of JSON."""

import json
import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """Why an answer cannot be used."""

    problem: str


def object_in(text: str, fence: str) -> dict[str, Any] | None:
    """Return the object in the last block of this language that has one, or the text itself if it is one."""
    blocks = re.findall(rf"^```(?:{fence}|json)[ \t]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    for block in (*reversed(blocks), text):
        try:
            value = json.loads(block)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    return None


def missing(fence: str) -> Unreadable:
    """Say that there is no answer at all."""
    return Unreadable(problem=f"there is no block ```{fence} with a JSON object in your last message")


def clean(value: object, limit: int) -> str:
    """Return a text that can be stored everywhere; empty when it is none."""
    if not isinstance(value, str):
        return ""
    return value.replace("\0", "").encode("utf-8", "replace").decode("utf-8").strip()[:limit]
