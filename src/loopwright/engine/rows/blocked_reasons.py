"""Why a task waits that its own source calls blocked: our words around those of the source."""

import re
from typing import Final

from loopwright.core.values.failures import POINTERS

_BEFORE: Final = "it is marked as blocked: "
_UNSAID: Final = "no reason is given"
UNDO: Final = "To undo it, once you have looked at it:"
"""Begins the commands that undo what an agent did to a checkout: they are of use on this machine alone."""
_PATH: Final = re.compile(
    r"(?<![\w./~-])/(?:Users|Volumes|home|media|mnt|nix|opt|private|root|srv|tmp|usr|var|workspaces?)"
    r"(?:/[^\s/'\"`,;:()\[\]<>]+)*/(?P<name>[^\s/'\"`,;:()\[\]<>]*)"
)
"""A path below one of the places where machines keep files; `/api/users` is none."""


def held_because(reason: str) -> str:
    """Return why such a task waits, as people are told."""
    return f"{_BEFORE}{reason or _UNSAID}"


def is_held(words: str) -> bool:
    """Say whether these are our words for a task that its source calls blocked."""
    return words.startswith(_BEFORE)


def source_reason(words: str) -> str:
    """Return why a task waits, as its source is told: its own words come back to it as they were."""
    if words.startswith(_BEFORE):
        said = words.removeprefix(_BEFORE)
        return "" if said == _UNSAID else said
    for pointer in POINTERS:
        words = words.replace(pointer, "")
    return portable(words.partition(f"\n{UNDO}")[0])


def portable(words: str) -> str:
    """Return words as a file may have them that is committed and read elsewhere: without paths of this machine."""
    return _PATH.sub(lambda found: f"…/{found['name']}" if found["name"] else "…", words)
