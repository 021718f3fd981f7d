"""Work that agents came upon, in a feature list: a feature that needs a review, and is no task before it had one."""

import hashlib
from typing import Final

from loopwright.adapters.sources.feature_list.qa_fixes import category_of
from loopwright.adapters.sources.text.json_edits import JsonEdits, storable
from loopwright.adapters.sources.text.located import Located, inner, plain, tables, words
from loopwright.core.replies.discoveries import same_work
from loopwright.ports import Discovered, Mark, Progress

CATEGORY: Final = "discovered"
_BEGINS: Final = "found-"
_LONG: Final = 8
_UNWANTED: Final = "nobody wants it"
_WAYS: Final = {"current": "add it to this list", "new": "a plan of its own"}


def is_found(feature: Located) -> bool:
    """Say whether a feature is work that we wrote down and nobody has taken into the list.

    Who sets `needs_review` to false has: then it is a feature like all others.
    """
    ours = category_of(feature) == CATEGORY and words(feature, "id").startswith(_BEGINS)
    return ours and plain(feature, "needs_review") is True


def add_found(edits: JsonEdits, progress: Progress) -> None:
    """Add a feature for all such work that the file does not have, and say of the others what became of them."""
    features = inner(edits.document, "features")
    if features is None or not progress.discovered:
        return
    present = {words(one, "id"): one for one in tables(features)}
    named = {same_work(words(one, "name")) for one in present.values()}
    # The same work may have been come upon in several tasks; it is decided once.
    first: dict[str, Discovered] = {}
    for one in progress.discovered:
        first.setdefault(same_work(one.title), one)
    for one in first.values():
        known = present.get(_id(one))
        if known is not None and is_found(known):
            _tell(edits, known, one)
        elif known is None and same_work(one.title) not in named and one.mark is Mark.OPEN and not one.task:
            edits.append(features, _feature(one))


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
    # That it needs a review stays, whatever became of it: without that it would be a task of its own.
    edits.put(feature, "passes", one.mark is Mark.DONE)
    if one.mark is Mark.SKIPPED:
        edits.put(feature, "blocked", True)
        edits.put(feature, "blocked_reason", _UNWANTED)
    elif plain(feature, "blocked") is True and plain(feature, "blocked_reason") == _UNWANTED:
        edits.put(feature, "blocked", False)
        edits.drop(feature, "blocked_reason")
