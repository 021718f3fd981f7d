"""Match items of a source with tasks: keys may be renumbered, so the title decides as well."""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

_ALIKE: Final = 0.8
_EDGES: Final = re.compile(r"^\W+|\W+$")


@dataclass(frozen=True, slots=True)
class Identity:
    """The current place of a plan's tasks in its source."""

    moved: Mapping[str, str]
    """The new key of each task whose item was renumbered, by its old key."""
    displaced: tuple[str, ...]
    """Keys of tasks whose key now belongs to another item, while their own item is gone."""


def normalised(title: str) -> tuple[str, ...]:
    """Return the words of a title without case and surrounding punctuation."""
    words = (_EDGES.sub("", word) for word in title.casefold().split())
    return tuple(word for word in words if word)


def is_same_item(before: str, now: str) -> bool:
    """Return whether two titles name the same work: equal, or different only by a typing error or a small word.

    `a.txt` and `b.txt` are different work, and so are `login` and `logout`.
    """
    old, new = normalised(before), normalised(now)
    if old == new:
        return True
    if _ratio(" ".join(old), " ".join(new)) < _ALIKE:
        return False
    changes = SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes()
    return all(
        all(_is_same_word(*pair) for pair in zip(old[a:b], new[c:d], strict=False))
        for tag, a, b, c, d in changes
        if tag == "replace"
    )


def identify(titles: Mapping[str, str], items: Mapping[str, str], begun: Set[str]) -> Identity:
    """Compare the titles of a plan's tasks with those of its source's items, both by key.

    `begun` are the tasks that the user worked on or settled. Only such a task is displaced by another title
    under its key. Other tasks take the new title.
    """
    known = {key: normalised(title) for key, title in titles.items()}
    now = {key: normalised(title) for key, title in items.items()}
    stays = {key for key, words in known.items() if now.get(key) == words}
    free: dict[tuple[str, ...], list[str]] = {}
    for key, words in now.items():
        if key not in stays:
            free.setdefault(words, []).append(key)
    moved: dict[str, str] = {}
    for key, words in known.items():
        if key not in stays and free.get(words):
            moved[key] = free[words].pop(0)
    taken = set(moved.values())
    left = [key for key in known if key not in stays and key not in moved and key in items]
    displaced = [
        key for key in left if key in taken or (key in begun and not is_same_item(titles[key], items[key]))
    ]
    return Identity(moved, tuple(displaced))


def unused_key(key: str, used: Set[str]) -> str:
    """Return a new key for a task that lost its key to another item."""
    names: Sequence[str] = [f"{key}-before", *(f"{key}-before-{n}" for n in range(2, len(used) + 3))]
    return next(name for name in names if name not in used)


def _is_same_word(old: str, new: str) -> bool:
    return old.isalpha() and new.isalpha() and _ratio(old, new) >= _ALIKE


def _ratio(old: str, new: str) -> float:
    return SequenceMatcher(a=old, b=new, autojunk=False).ratio()
