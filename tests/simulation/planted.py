"""What a planted bug is, and the list of them all."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from tests.simulation.scenario import Scenario

Patches = tuple[tuple[Any, str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """One planted bug: what is replaced, and by what."""

    name: str
    what: str
    needs: frozenset[str]
    """Faults without which the wrong place is not come by: a run that lacks one of them need not be played."""
    patches: Callable[[], Patches]

    def fits(self, scenario: Scenario) -> bool:
        """Say whether such a run has what the bug needs to show."""
        return self.needs <= scenario.faults

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


def bug(what: str, *needs: str) -> Callable[[Callable[[], Patches]], Callable[[], Patches]]:
    """Register a bug under its function's name, with the faults that it needs to show."""

    def register(patches: Callable[[], Patches]) -> Callable[[], Patches]:
        PLANTED.append(Bug(name=patches.__name__, what=what, needs=frozenset(needs), patches=patches))
        return patches

    return register
