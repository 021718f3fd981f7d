"""Red, green: which tasks have to show that their checks fail without them, as data."""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from loopwright.core.findings import VerdictStatus
from loopwright.core.gates import Commands
from loopwright.core.model import Plan, Task
from loopwright.core.rounds import ROUND


class RedProof(StrEnum):
    """Of which tasks it is asked."""

    FIXES = "fixes"
    """Those that mend something: what passed before cannot have been broken."""
    LOGIC = "logic"
    """These, and all others with acceptance of their own but those that have nothing to show, see `why_skipped`."""
    OFF = "off"


FIX_ORIGIN: Final = "fix"
"""The origin of a task that the machine added to mend what the complete gate found."""
FIX_TYPES: Final = frozenset({"fix", "bug", "bugfix", "regression"})
FIX_WORDS: Final = frozenset({*FIX_TYPES, "fixes", "fixing", "bugs", "bugfixes", "regressions"})
"""Words in the title of a task whose source does not say what type it is."""
NOTHING_SHOWS: Final = "it has no acceptance and brought no tests"
NO_ACCEPTANCE: Final = "it has no acceptance of its own"
GOES_ON: Final = "it is a further round of a prompt, whose acceptance an earlier one has met"
FOUND_UNSEEN: Final = "what it mends was found by checks that were held out, which failed without it"

LOOKS: Final = "it is about how things look"
STATIC: Final = "it is static content"
WRAPS: Final = "it wraps what others wrote and test"
TESTS: Final = "it writes tests itself"
KEEPS: Final = "it leaves what the code does as it is"
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
    "test": TESTS,
    "tests": TESTS,
    "refactor": KEEPS,
    "refactoring": KEEPS,
    "chore": "it is upkeep",
}
"""Types of tasks that need not show it, each with the reason; all others are logic."""
SKIPPED_WORDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("css", "stylesheet", "styling", "colours", "colors", "fonts"), LOOKS),
    **dict.fromkeys(("readme", "documentation", "docs", "wording", "typo", "typos", "copyright"), STATIC),
    **dict.fromkeys(("wrapper", "bindings"), WRAPS),
    **dict.fromkeys(("refactor", "refactoring"), KEEPS),
}
"""Words in the title of a task whose source does not say what type it is."""
SKIPPED_FILES: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("md", "markdown", "rst", "adoc", "pdf", "png", "jpg", "jpeg", "gif", "webp", "ico"), STATIC
    ),
    **dict.fromkeys(("css", "scss", "sass", "less", "svg", "woff", "woff2", "ttf"), LOOKS),
}
"""Endings of files: a task that may write nothing else is no logic."""
_TEST_FOLDERS: Final = frozenset({"test", "tests", "spec", "__tests__"})
_TESTING: Final = re.compile(r"\btests? (for|of)\b|\btest coverage\b")
_WORD: Final = re.compile(r"[a-z]+")
_CANNOT_RUN: Final = 127


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
    return mode != RedProof.OFF and (mends(task) or (mode == RedProof.LOGIC and bool(task.acceptance)))


def red_commands(plan: Plan, task: Task, *, with_gates: bool) -> Commands:
    """Return what has to fail without a task: its acceptance, or the gates where they can show it."""
    return task.acceptance or (plan.gates if with_gates else ())


def is_red(status: str, exit_codes: Iterable[int | None]) -> bool | None:
    """Say whether checks that pass with the work failed without it; None when that is not known.

    A program that is not found is no verdict on a tree; but this one was found with the work.
    """
    if status == VerdictStatus.INCONCLUSIVE:
        return True if _CANNOT_RUN in exit_codes else None
    return {VerdictStatus.FAILED.value: True, VerdictStatus.PASSED.value: False}.get(status)


def why_skipped(task: Task) -> str:
    """Say why a task need not show that its checks fail without it; empty for logic."""
    if task.origin == FIX_ORIGIN and task.held_out:
        return FOUND_UNSEEN
    if task.origin == ROUND:
        return GOES_ON
    if task.type:
        return SKIPPED_TYPES.get(task.type.lower(), "")
    words = _WORD.findall(task.title.lower())
    said = next((SKIPPED_WORDS[word] for word in words if word in SKIPPED_WORDS), "")
    return said or (TESTS if _TESTING.search(task.title.lower()) else "") or _scoped(task)


def _scoped(task: Task) -> str:
    """Say why a task is no logic whose author lets it write only what is none."""
    kinds = [SKIPPED_FILES.get(path.rpartition(".")[2].lower(), "") for path in task.scope]
    if kinds and all(kinds):
        return kinds[0]
    return TESTS if task.scope and all(path.split("/")[0] in _TEST_FOLDERS for path in task.scope) else ""
