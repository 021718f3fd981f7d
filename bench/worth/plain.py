"""The baselines: one plain agent, and a Ralph loop that starts the agent again in what it left."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bench.worth.agents import Nature, Work, work
from bench.worth.assumptions import Values

ROUNDS: Final = 10
"""So many rounds a Ralph loop has at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What became of one task."""

    is_done: bool
    """It is called done."""
    is_right: bool
    dollars: float
    minutes: float

    @property
    def is_false(self) -> bool:
        """Whether it is called done and is not."""
        return self.is_done and not self.is_right


def minutes(a: Values, dollars: float, gates: int = 0) -> float:
    """Return how long work of this cost takes, with so many runs of the checks."""
    return dollars * a["minutes_per_dollar"] + gates * a["gate_minutes"]


def plain(task: Nature, a: Values) -> Ended:
    """Let one agent work once, and believe it."""
    found = work(task, a, n=1, agent="first", lifts_pp=())
    cost = a["cost"]
    is_done = found.is_claimed and not found.is_refused
    return Ended(is_done=is_done, is_right=is_done and found.is_right, dollars=cost, minutes=minutes(a, cost))


def ralph(task: Nature, a: Values) -> Ended:
    """Start the agent again until it says that it is done."""
    return _ralph(task, a, lambda found: found.is_claimed, gates=0)


def ralph_until_green(task: Nature, a: Values) -> Ended:
    """Start the agent again until it says that it is done and the checks pass."""
    return _ralph(task, a, lambda found: found.is_claimed and found.passes, gates=1)


def _ralph(task: Nature, a: Values, ends: Callable[[Work], bool], *, gates: int) -> Ended:
    for n in range(1, ROUNDS + 1):
        found = work(task, a, n=n, agent="first", lifts_pp=(a["dirty_pp"],) if n > 1 else ())
        if is_done := ends(found) and not found.is_refused:
            break
    dollars = n * a["cost"]
    return Ended(
        is_done=is_done,
        is_right=is_done and found.is_right,
        dollars=dollars,
        minutes=minutes(a, dollars, gates * n),
    )
