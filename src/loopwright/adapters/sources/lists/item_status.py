"""The status of items in a JSON list: a flag such as `passes`, a word in `status`, or both, written in the same way."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from loopwright.adapters.sources.lists.status_words import StatusWords, mark_of, waiting_reason
from loopwright.adapters.sources.lists.work_items import Item
from loopwright.adapters.sources.text.json_edits import JsonEdits, stamp, storable
from loopwright.adapters.sources.text.located import Located, inner, plain, words
from loopwright.adapters.sources.text.reasons import UNKNOWN
from loopwright.config.nearest import quoted
from loopwright.ports import ItemProgress, Mark

FLAGS: Final = (
    "passes",
    "passed",
    "complete",
    "completed",
    "done",
    "finished",
    "implemented",
    "isComplete",
    "isDone",
)
STARTED: Final = ("started", "in_progress", "inProgress")
STATUS: Final = ("status", "state")
REASONS: Final = ("blocked_reason", "blockedReason", "block_reason", "blocker")
KEYS: Final = (
    *FLAGS,
    *STARTED,
    *STATUS,
    *REASONS,
    "blocked",
    "blocked_at",
    "blocked_by",
    "suggested_fix",
    "needs_review",
)
NEEDS_REVIEW: Final = "it needs a review by a person first (needs_review)"
NO_REASON: Final = "no reason was given"


def standing(found: Located) -> tuple[Mark, str]:
    """Return the mark of an item, and why it waits for the user if it does.

    An item that one key calls done and another one open is neither run again nor skipped: the user decides.
    """
    flags = [(key, mark) for key in FLAGS if (mark := _flag(found, key)) is not None]
    if any(mark is Mark.DONE for _, mark in flags):
        return Mark.DONE, ""
    status = _status_key(found)
    word = words(found, status) if status is not None else ""
    mark = mark_of(word) if status is not None else Mark.OPEN
    if mark is Mark.DONE and flags:
        return Mark.BLOCKED, f"{flags[0][0]} is false and {status} is {quoted(word)}: correct one of them"
    if mark in (Mark.DONE, Mark.SKIPPED):
        return mark, ""
    if plain(found, "blocked") is True:
        return Mark.BLOCKED, _reason(found)
    if plain(found, "needs_review") is True:
        return Mark.BLOCKED, NEEDS_REVIEW
    if mark is None or mark is Mark.BLOCKED:
        said = _said_reason(found)
        is_blocked = mark is Mark.BLOCKED and "block" in word.casefold()
        return Mark.BLOCKED, said or (UNKNOWN if is_blocked else waiting_reason(word))
    started = any(plain(found, key) is True for key in STARTED)
    return Mark.RUNNING if started else mark, ""


def _flag(found: Located, key: str) -> Mark | None:
    """Return what a flag says; None where it is not there, or says nothing."""
    value = plain(found, key)
    if isinstance(value, bool):
        return Mark.DONE if value else Mark.OPEN
    if isinstance(value, str) and mark_of(value) in (Mark.DONE, Mark.OPEN):
        return mark_of(value)
    return None


def _status_key(found: Located) -> str | None:
    return next((key for key in STATUS if isinstance(plain(found, key), str | bool)), None)


def _said_reason(found: Located) -> str:
    return next((said for key in REASONS if (said := str(plain(found, key, "")).strip())), "")


def _reason(found: Located) -> str:
    reason = _said_reason(found) or UNKNOWN
    by = plain(found, "blocked_by", [])
    if isinstance(by, list) and by:
        reason += f" (blocked by: {', '.join(str(each) for each in by)})"
    fix = str(plain(found, "suggested_fix", "")).strip()
    return f"{reason} (suggested fix: {fix})" if fix else reason


class StatusStyle:
    """How one list writes status, learned from its items and its legend."""

    def __init__(
        self, items: Sequence[Item], document: Located, *, usual: str, known: Iterable[str] = ()
    ) -> None:
        """Take the key for a list that shows no status, `passes` or `status`, and the words of its tool."""
        found = [item.found for item in items]
        used = [words(one, key) for one in found if (key := _status_key(one)) is not None]
        self._words = StatusWords(used, (*_legend(document), *known))
        keys = (key for one in found for key in (*FLAGS, *STATUS) if inner(one, key) is not None)
        self._usual = next(keys, usual)
        self._camel = any(_has_any(one, ("acceptanceCriteria", "testStrategy", "dependsOn")) for one in found)
        self._keeps_empty = any(
            inner(one, key) is not None and not plain(one, key, "") for one in found for key in REASONS
        )
        """Whether items that are not blocked have the key for the reason as well."""

    def tell(self, edits: JsonEdits, found: Located, item: ItemProgress, at: datetime) -> None:
        """Write the progress of one item; nothing changes when the item says so already."""
        mark, present = standing(found)
        reason = storable(item.reason).strip() or NO_REASON
        has_word = self._status_of(found) is not None
        wanted = item.mark
        if wanted is Mark.SKIPPED and not has_word:
            # A list of flags has no word for a dropped item: it waits for the user, too.
            wanted, reason = Mark.BLOCKED, f"skipped: {reason}"
        if wanted is Mark.RUNNING and not has_word and not _has_any(found, STARTED):
            wanted = Mark.OPEN
        if wanted is Mark.BLOCKED:
            if (mark, present) != (wanted, reason):
                self._put(edits, found, wanted)
                self._block(edits, found, reason, item.ended_at or at, has_word=has_word)
            return
        if mark is wanted and mark in (Mark.DONE, Mark.SKIPPED):
            return
        if mark is not wanted:
            self._put(edits, found, wanted)
        self._unblock(edits, found)
        if wanted is not Mark.DONE and plain(found, "needs_review") is True:
            edits.put(found, "needs_review", False)

    def _status_of(self, found: Located) -> str | None:
        """Return the key for the status word of an item, if this list writes such words."""
        key = _status_key(found)
        if key is None and self._usual in STATUS and not _has_any(found, FLAGS):
            return self._usual
        return key

    def _put(self, edits: JsonEdits, found: Located, mark: Mark) -> None:
        status = self._status_of(found)
        flags = [key for key in FLAGS if _flag(found, key) is not None]
        if status is not None and (mark_of(words(found, status)) is not mark or inner(found, status) is None):
            edits.put(found, status, self._words.word(mark))
        if status is None and not flags and mark is Mark.DONE:
            flags = [self._usual]
        for key in flags:
            edits.put(found, key, mark is Mark.DONE)
        for key in STARTED:
            if inner(found, key) is not None and mark in (Mark.OPEN, Mark.RUNNING):
                edits.put(found, key, mark is Mark.RUNNING)

    def _block(self, edits: JsonEdits, found: Located, reason: str, at: datetime, *, has_word: bool) -> None:
        usual = "blockedReason" if self._camel else "blocked_reason"
        key = next((one for one in REASONS if inner(found, one) is not None), usual)
        is_new = _said_reason(found) != reason or standing(found)[0] is not Mark.BLOCKED
        if not has_word or plain(found, "blocked") is not None:
            edits.put(found, "blocked", True)
        edits.put(found, key, reason)
        if is_new and (not has_word or inner(found, "blocked_at") is not None):
            edits.put(found, "blocked_at", stamp(at))

    def _unblock(self, edits: JsonEdits, found: Located) -> None:
        if plain(found, "blocked") is True:
            edits.put(found, "blocked", False)
            edits.drop(found, "blocked_at")
        elif standing(found)[0] is not Mark.BLOCKED or not _said_reason(found):
            return
        for key in REASONS:
            if self._keeps_empty and inner(found, key) is not None:
                edits.put(found, key, "")
            else:
                edits.drop(found, key)


def _has_any(found: Located, keys: Iterable[str]) -> bool:
    return any(inner(found, key) is not None for key in keys)


def _legend(document: Located) -> Iterator[str]:
    """Return the status words that the document itself lists."""
    places = [document, *(one for key in ("rules", "metadata") if (one := inner(document, key)) is not None)]
    for place in places:
        for key, held in place.value.items() if isinstance(place.value, dict) else ():
            if "status" in key.casefold() or "state" in key.casefold():
                yield from _listed(held)


def _listed(held: Located) -> Iterable[str]:
    if isinstance(held.value, dict):
        return tuple(held.value)
    if isinstance(held.value, list):
        return tuple(one.value for one in held.value if isinstance(one.value, str))
    return ()
