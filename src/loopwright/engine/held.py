"""Why a task waits that its own source calls blocked: our words around those of the source."""

from typing import Final

_BEFORE: Final = "it is marked as blocked: "
_UNSAID: Final = "no reason is given"


def held_because(reason: str) -> str:
    """Return why such a task waits, as people are told."""
    return f"{_BEFORE}{reason or _UNSAID}"


def is_held(words: str) -> bool:
    """Say whether these are our words for a task that its source calls blocked."""
    return words.startswith(_BEFORE)


def source_reason(words: str) -> str:
    """Return why a task waits, as its source is told: its own words come back to it as they were."""
    if not words.startswith(_BEFORE):
        return words
    said = words.removeprefix(_BEFORE)
    return "" if said == _UNSAID else said
