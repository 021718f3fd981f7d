"""The words that people write for the status of an item, and what each means.

An unknown word never starts an agent: the item waits for the user, with the word as the reason.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from loopwright.config.nearest import quoted
from loopwright.ports import Mark

_KNOWN: Final[Mapping[str, Mark]] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "", "pending", "open", "todo", "to do", "not started", "notstarted", "unstarted", "planned", "ready",
                "ready for dev", "ready for development", "ready for implementation", "backlog", "new", "queued",
                "failing", "failed", "fail", "incomplete", "next", "reopened", "spec ready",
                "scheduled", "available", "unresolved", "not done", "false", "no",
            ),
            Mark.OPEN,
        ),
        **dict.fromkeys(
            (
                "in progress", "inprogress", "wip", "doing", "started", "running", "active", "current", "partial",
                "partially done", "partially complete", "implementing", "ongoing", "working", "development",
                "in development",
            ),
            Mark.RUNNING,
        ),
        **dict.fromkeys(
            (
                "done", "complete", "completed", "finished", "passed", "pass", "passes", "passing", "verified",
                "closed",
                "shipped", "merged", "released", "resolved", "success", "successful", "succeeded",
                "implemented", "deployed", "delivered", "fixed", "green", "ok", "true", "yes",
            ),
            Mark.DONE,
        ),
        **dict.fromkeys(
            (
                "blocked", "on hold", "onhold", "hold", "paused", "waiting", "deferred", "postponed", "parked", "stuck",
                "review", "in review", "needs review", "ready for review", "awaiting review", "code review",
                "ready for qa", "ready for testing", "ready for test", "needs testing",
                "draft", "qa", "testing", "in testing", "needs clarification", "manual",
            ),
            Mark.BLOCKED,
        ),
        **dict.fromkeys(
            (
                "cancelled", "canceled", "skipped", "skip", "wontfix", "wont fix", "wont do", "dropped", "obsolete",
                "superseded", "rejected", "removed", "archived", "deprecated", "duplicate", "not planned", "invalid",
                "abandoned", "not applicable", "na",
            ),
            Mark.SKIPPED,
        ),
    }
)  # fmt: skip
_USUAL: Final[Mapping[Mark, str]] = MappingProxyType(
    {
        Mark.OPEN: "pending",
        Mark.RUNNING: "in progress",
        Mark.DONE: "done",
        Mark.BLOCKED: "blocked",
        Mark.SKIPPED: "cancelled",
    }
)
_SEPARATORS: Final = re.compile(r"[\s_\-/.]+")
_SIGNS: Final = re.compile(r"[^\w\s\-/.]")
_HUMPS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def mark_of(word: str) -> Mark | None:
    """Return what a status means, however it is spelled; None for an unknown word."""
    if len(word) > 100:
        return None
    spaced = _SEPARATORS.sub(" ", _SIGNS.sub("", _HUMPS.sub(" ", word)))
    return _KNOWN.get(spaced.strip().casefold())


def waiting_reason(word: str) -> str:
    """Return why an item with this status waits for the user."""
    if mark_of(word) is None:
        return f"Loopwright does not know the status {quoted(word)}"
    return f"its status is {quoted(word)}"


class StatusWords:
    """The status words of one file: a new status is written as the file already spells it."""

    def __init__(self, used: Iterable[str], offered: Iterable[str] = ()) -> None:
        """Take the words that items have, and those that a legend of the file lists."""
        found = [word for word in used if word]
        self._of: dict[Mark, str] = {}
        legend = [word for word in offered if word]
        for word in (*(word for word, _ in Counter(found).most_common()), *legend):
            mark = mark_of(word)
            if mark is not None and (mark is not Mark.BLOCKED or "block" in word.casefold()):
                self._of.setdefault(mark, word)
        self._samples = [*found, *legend]

    def word(self, mark: Mark) -> str:
        """Return the file's word for a mark."""
        return self._of.get(mark) or self._styled(_USUAL[mark])

    def _styled(self, usual: str) -> str:
        letters = [word for word in self._samples if any(char.isalpha() for char in word)]
        separator = next((sign for sign in "-_ " if any(sign in word.strip() for word in letters)), "_")
        spelled = usual.replace(" ", separator)
        if letters and all(word.isupper() for word in letters):
            return spelled.upper()
        return spelled.capitalize() if letters and all(word[:1].isupper() for word in letters) else spelled
