"""What examples in docstrings expect: where a command runs them they are tests that stand in the work itself."""

import doctest
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from loopwright.core.known_answers import LARGEST

_PROMPT: Final = ">>>"


def lost_examples(path: str, before: str, after: str, commands: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the examples of a file that ask for something else now, or are gone, with the line of the old version."""
    if not path.endswith(".py") or _PROMPT not in before or len(before) + len(after) > 2 * LARGEST:
        return
    if not any("doctest" in command for command in commands):
        return
    left = Counter((one.source, one.want) for one in _examples(after))
    for one in _examples(before):
        if left[one.source, one.want]:
            left[one.source, one.want] -= 1
        else:
            yield one.lineno + 1, f"no longer has the example {one.source.strip()!r} with what it gave"


def _examples(text: str) -> list[doctest.Example]:
    try:
        return doctest.DocTestParser().get_examples(text)
    except ValueError:
        return []  # no runner can read them either
