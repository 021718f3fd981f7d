"""What a planted bug is, and the list of them all."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

Patches = tuple[tuple[Any, str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """One planted bug: what is replaced, and by what."""

    name: str
    what: str
    patches: Callable[[], Patches]

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Have the bug as long as this lasts."""
        undo = []
        try:
            for place, name, wrong in self.patches():
                planted = patch.object(place, name, wrong)
                planted.start()
                undo.append(planted)
            yield
        finally:
            for planted in reversed(undo):
                planted.stop()


PLANTED: list[Bug] = []


def bug(what: str) -> Callable[[Callable[[], Patches]], Callable[[], Patches]]:
    """Register a bug under its function's name."""

    def register(patches: Callable[[], Patches]) -> Callable[[], Patches]:
        PLANTED.append(Bug(name=patches.__name__, what=what, patches=patches))
        return patches

    return register
