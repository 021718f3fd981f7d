"""Work that agents found, in a feature list: a feature that is not a task until the user has reviewed it."""

import hashlib
from typing import Final

from loopwright.adapters.sources.feature_list.qa_fixes import category_of
from loopwright.adapters.sources.lists.work_items import Item, WorkList
from loopwright.adapters.sources.text.json_edits import JsonEdits, storable
from loopwright.adapters.sources.text.located import Located, plain
from loopwright.core.replies.discoveries import same_work
from loopwright.ports import Discovered, Mark, Progress

CATEGORY: Final = "discovered"
_BEGINS: Final = "found-"
_LONG: Final = 8
_UNWANTED: Final = "you dropped it"
_WAYS: Final = {"current": "add it to this list", "new": "a separate plan"}


def is_found(item: Item) -> bool:
    """Return whether Loopwright wrote a feature down and the user has not taken it into the list.

    A feature whose `needs_review` the user sets to false is a feature like all others.
    """
    ours = category_of(item) == CATEGORY and item.key.startswith(_BEGINS)
    return ours and plain(item.found, "needs_review") is True


def add_found(edits: JsonEdits, found: WorkList, progress: Progress) -> None:
    """Add a feature for each discovery that the file does not have, and write what became of the others."""
    if not found.lists or not isinstance(found.lists[-1].value, list) or not progress.discovered:
        return
    present = {one.key: one for one in found.items}
    named = {same_work(one.title) for one in found.items}
    # Several tasks may have found the same work; the user decides about it once.
    first: dict[str, Discovered] = {}
    for one in progress.discovered:
        first.setdefault(same_work(one.title), one)
    for one in first.values():
        known = present.get(_id(one))
        if known is not None and is_found(known):
            _tell(edits, known.found, one)
        elif known is None and same_work(one.title) not in named and one.mark is Mark.OPEN and not one.task:
            edits.append(found.lists[-1], _feature(one))


def _id(one: Discovered) -> str:
    return _BEGINS + hashlib.sha256(same_work(one.title).encode()).hexdigest()[:_LONG]


def _feature(one: Discovered) -> dict[str, object]:
    where = f"found in {one.by}" if one.by else "found on the way"
    way = _WAYS.get(one.recommendation, _WAYS["new"])
    return {
        "id": _id(one),
        "name": storable(" ".join(one.title.split())),
        "description": storable(f"{one.reason} ({where}; recommended: {way})".strip()),
        "category": CATEGORY,
        "needs_review": True,
        "passes": False,
    }


def _tell(edits: JsonEdits, feature: Located, one: Discovered) -> None:
    # It still needs a review, whatever became of it: without that it would be a separate task.
    edits.put(feature, "passes", one.mark is Mark.DONE)
    if one.mark is Mark.SKIPPED:
        edits.put(feature, "blocked", True)
        edits.put(feature, "blocked_reason", _UNWANTED)
    elif plain(feature, "blocked") is True and plain(feature, "blocked_reason") == _UNWANTED:
        edits.put(feature, "blocked", False)
        edits.drop(feature, "blocked_reason")
