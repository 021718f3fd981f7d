"""An investigator's answer about a task that failed for good: the cause, advice, and smaller parts of the task."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from loopwright.core.replies.answers import Unreadable, clean, missing, object_in
from loopwright.core.values.healing import Cause

FENCE: Final = "loopwright-investigation"
"""The language of the fenced block with the answer of an agent that does not accept a schema."""
FEWEST_PARTS: Final = 2
MOST_PARTS: Final = 8
_TITLE: Final = 200
_TEXT: Final = 4_000

SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["cause", "why", "advice", "parts"],
    "properties": {
        "cause": {"type": "string", "enum": [one.value for one in Cause]},
        "why": {"type": "string", "description": "What kept the task from being done, and where you saw it."},
        "advice": {"type": "string", "description": "What the next agent should do differently."},
        "parts": {
            "type": "array",
            "maxItems": MOST_PARTS,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["title", "description"],
                "properties": {"title": {"type": "string"}, "description": {"type": "string"}},
            },
        },
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One smaller task."""

    title: str
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Investigation:
    """What an investigator claims."""

    cause: Cause
    why: str
    advice: str = ""
    parts: tuple[Part, ...] = ()
    """Smaller tasks in their order, if they were requested."""


def read_investigation(
    structured: Mapping[str, Any] | None, said: str, *, parts: bool
) -> Investigation | Unreadable:
    """Return an investigator's answer; it needs usable parts if `parts` were requested."""
    answer = structured if structured is not None else object_in(said, FENCE)
    if answer is None:
        return missing(FENCE)
    named = answer.get("cause")
    if named not in list(Cause):
        return Unreadable(problem=f"`cause` is none of {', '.join(Cause)}")
    listed = answer.get("parts")
    found = tuple(part for one in (listed if isinstance(listed, list) else ()) if (part := _part(one)))
    if parts and not FEWEST_PARTS <= len(found) <= MOST_PARTS:
        return Unreadable(
            problem=f"`parts` has {len(found)} tasks, and should have {FEWEST_PARTS} to {MOST_PARTS}"
        )
    return Investigation(
        cause=Cause(named),
        why=clean(answer.get("why"), _TEXT),
        advice=clean(answer.get("advice"), _TEXT),
        parts=found[:MOST_PARTS],
    )


def _part(value: object) -> Part | None:
    if not isinstance(value, Mapping):
        return None
    title = " ".join(clean(value.get("title"), _TITLE).split())
    return (
        Part(title=title, description=clean(value.get("description"), _TEXT)) if title.strip(". …") else None
    )
