"""Stochastic agents: what a task is like without anyone knowing, and how an attempt at it turns out."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from bench.worth.assumptions import Values
from loopwright.core.values.healing import Cause

PITFALLS: Final = 5
"""So many mistakes come again and again in one project."""
_GRID: Final = tuple(n / 20 for n in range(-80, 81))
_WEIGHTS: Final = tuple(math.exp(-z * z / 2) for z in _GRID)
_CAUSES: Final = (Cause.UNCLEAR, Cause.TOO_LARGE, Cause.ENVIRONMENT, Cause.DEPENDENCY, Cause.MODEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nature:
    """What a task is like. No decision may look at it."""

    seed: int
    n: int
    difficulty: float
    cause: Cause
    """What would keep it from being done."""
    is_divisible: bool
    pitfall: int

    def chance(self, *about: object) -> random.Random:
        """Return random numbers for one event: the same in every way of working, so that ways are comparable."""
        return random.Random("/".join(map(str, (self.seed, self.n, *about))))


def nature(seed: int, n: int, a: Values) -> Nature:
    """Draw a task."""
    chance = random.Random(f"{seed}/{n}")
    return Nature(
        seed=seed,
        n=n,
        difficulty=chance.gauss(0, 1),
        cause=chance.choice(_CAUSES),
        is_divisible=chance.random() < a["divisible"],
        pitfall=chance.randrange(PITFALLS),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """How an attempt turned out."""

    is_right: bool
    passes: bool
    """The checks that its agent can see pass."""
    is_found_held_out: bool
    """Held-out checks would refuse it."""
    is_claimed: bool
    """Its agent calls it done."""
    is_refused: bool
    """The model refused the task."""
    tells: bool
    """Its failure shows what kind of thing is wrong."""


def work(task: Nature, a: Values, *, n: int, agent: str, lifts_pp: Sequence[float]) -> Work:
    """Let an agent work on a task; `lifts_pp` are the percentage points of everything that differs."""
    chance = task.chance("attempt", n)
    affinity = task.chance("agent", agent).gauss(0, 1)
    alike = a["same_agent"]
    hard = math.sqrt(alike) * task.difficulty + math.sqrt(1 - alike) * affinity
    rate = min(0.995, max(0.005, a["rate"] + sum(lifts_pp) / 100))
    is_right = chance.random() < _logistic(intercept(rate, a["spread"]) - a["spread"] * hard)
    misses, flakes, claims, held = (chance.random() for _ in range(4))
    tells = chance.random() < a["tells"]
    passes = flakes >= a["flakes"] if is_right else misses < a["misses"]
    return Work(
        is_right=is_right,
        passes=passes,
        is_found_held_out=not is_right and held < a["held_out"],
        # An agent can run the checks that it sees, so what passes them it calls done.
        is_claimed=is_right or passes or claims < a["claims"],
        is_refused=task.chance("refuses", agent).random() < a["breaks"],
        tells=tells,
    )


@cache
def intercept(rate: float, spread: float) -> float:
    """Return the intercept at which tasks of this spread are done at this rate on average."""
    low, high = -30.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _mean(middle, spread) < rate else (low, middle)
    return (low + high) / 2


def _mean(at: float, spread: float) -> float:
    found = sum(w * _logistic(at - spread * z) for w, z in zip(_WEIGHTS, _GRID, strict=True))
    return found / sum(_WEIGHTS)


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0
