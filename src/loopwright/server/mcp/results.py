"""Make documents short enough for the context of an agent."""

import json
from collections.abc import Mapping
from typing import Any, Final

LIMIT: Final = 4096
"""How many bytes a result may have."""
_STEPS: Final = ((600, 40), (250, 16), (120, 8), (80, 4), (60, 2))
"""The longest text and the most items of a list, from the first try to the last."""


def fits(text: str) -> bool:
    """Return whether a result is short enough."""
    return len(text.encode()) <= LIMIT


def written(document: Any) -> str:
    """Return a document as compact JSON without what is empty."""
    return json.dumps(_without_empty(document), ensure_ascii=False, separators=(",", ":"))


def fitted(document: Mapping[str, Any], more: str) -> str:
    """Return a document as JSON of at most `LIMIT` bytes; `more` names where to read what was cut."""
    for longest, most in _STEPS:
        short = _cut(document, longest, most)
        text = written(short if short == document else {**short, "more": more})
        if fits(text):
            return text
    return written({"more": more})


def first(text: str, longest: int = 200) -> str:
    """Return the beginning of a text."""
    return text if len(text) <= longest else text[:longest] + "…"


def _cut(value: Any, longest: int, most: int) -> Any:
    if isinstance(value, str):
        return first(value, longest)
    if isinstance(value, Mapping):
        return {key: _cut(one, longest, most) for key, one in value.items()}
    if isinstance(value, list | tuple):
        kept = [_cut(one, longest, most) for one in value[:most]]
        return kept if len(value) <= most else [*kept, f"and {len(value) - most} more"]
    return value


def _without_empty(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key: _without_empty(one)
            for key, one in value.items()
            if one is not None and one not in ("", [], {})
        }
    return [_without_empty(one) for one in value] if isinstance(value, list | tuple) else value
