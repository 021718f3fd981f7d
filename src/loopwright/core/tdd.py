"""Red, green: which tasks have to show that their acceptance fails without them, as data."""

import re
from collections.abc import Mapping
from typing import Final

LOOKS: Final = "it is about how things look"
STATIC: Final = "it is static content"
WRAPS: Final = "it wraps what others wrote and test"
SKIPPED_TYPES: Final[Mapping[str, str]] = {
    "style": LOOKS,
    "styling": LOOKS,
    "css": LOOKS,
    "static": STATIC,
    "content": STATIC,
    "docs": STATIC,
    "documentation": STATIC,
    "config": "it is configuration",
    "wrapper": WRAPS,
    "test": "it writes tests itself",
}
"""Types of tasks that need not show it, each with the reason; all others are logic."""
SKIPPED_WORDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("css", "stylesheet", "styling", "colours", "colors", "fonts"), LOOKS),
    **dict.fromkeys(("readme", "documentation", "docs", "wording", "typo", "typos", "copyright"), STATIC),
    **dict.fromkeys(("wrapper", "bindings"), WRAPS),
}
"""Words in the title of a task whose source does not say what type it is."""
_WORD: Final = re.compile(r"[a-z]+")


def why_skipped(type: str, title: str) -> str:
    """Say why a task need not show that its acceptance fails without it; empty for logic."""
    if type:
        return SKIPPED_TYPES.get(type.lower(), "")
    words = _WORD.findall(title.lower())
    return next((SKIPPED_WORDS[word] for word in words if word in SKIPPED_WORDS), "")
