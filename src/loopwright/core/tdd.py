"""Red, green: which tasks have to show that their checks fail without them, as data."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from loopwright.core.gates import Commands
from loopwright.core.model import Plan, Task
from loopwright.core.rounds import ROUND


class RedProof(StrEnum):
    """Of which tasks it is asked."""

    FIXES = "fixes"
    """Those that mend something: what passed before cannot have been broken."""
    LOGIC = "logic"
    """All but those that have nothing to show, see `why_skipped`."""
    OFF = "off"


FIX_ORIGIN: Final = "fix"
"""The origin of a task that the machine added to mend what the complete gate found."""
FIX_TYPES: Final = frozenset({"fix", "bug", "bugfix", "regression"})
FIX_WORDS: Final = frozenset({*FIX_TYPES, "fixes", "fixing", "bugs", "bugfixes", "regressions"})
"""Words in the title of a task whose source does not say what type it is."""
NOTHING_SHOWS: Final = "it has no acceptance and brought no tests"
GOES_ON: Final = "it is a further round of a prompt, whose acceptance an earlier one has met"
FOUND_UNSEEN: Final = "what it mends was found by checks that were held out, which failed without it"

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


def mends(task: Task) -> bool:
    """Say whether a task is there to mend something."""
    if task.origin == FIX_ORIGIN:
        return True
    if task.type:
        return task.type.lower() in FIX_TYPES
    return not FIX_WORDS.isdisjoint(_WORD.findall(task.title.lower()))


def is_asked(plan: Plan, task: Task) -> bool:
    """Say whether a task has to show that its checks fail without it, or why it need not."""
    mode = plan.policy.red_proof
    return mode == RedProof.LOGIC or (mode == RedProof.FIXES and mends(task))


def red_commands(plan: Plan, task: Task, *, brings_tests: bool) -> Commands:
    """Return what has to fail without a task: its acceptance, or the gates that run the tests which it brings."""
    return task.acceptance or (plan.gates if brings_tests else ())


def why_skipped(task: Task) -> str:
    """Say why a task need not show that its checks fail without it; empty for logic."""
    if task.origin == FIX_ORIGIN and task.held_out:
        return FOUND_UNSEEN
    if task.origin == ROUND:
        return GOES_ON
    if task.type:
        return SKIPPED_TYPES.get(task.type.lower(), "")
    words = _WORD.findall(task.title.lower())
    return next((SKIPPED_WORDS[word] for word in words if word in SKIPPED_WORDS), "")
