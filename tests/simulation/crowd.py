"""Plays many seeds in several processes."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from multiprocessing import get_context
from multiprocessing.pool import Pool

from tests.simulation.bugs import BUGS
from tests.simulation.promises.invariants import Violation
from tests.simulation.scenario import draw
from tests.simulation.shrink import find
from tests.simulation.universe import play

CHUNK = 10


def pool_of(jobs: int) -> Pool:
    """Return processes that are replaced now and then: a long run must not grow.

    Not those of `concurrent.futures`: Python 3.11 and 3.12 may wait for ever when one of theirs is replaced.
    """
    return get_context("spawn").Pool(jobs, maxtasksperchild=50)


def play_some(seeds: range) -> tuple[list[tuple[int, str]], Counter[str], float]:
    """Play some seeds; return what broke, what went wrong on purpose, and how much time was simulated."""
    broken: list[tuple[int, str]] = []
    struck: Counter[str] = Counter()
    seconds = 0.0
    for seed in seeds:
        try:
            universe = play(draw(seed))
        except Violation as found:
            broken.append((seed, str(found)))
        else:
            struck += universe.trouble.struck
            seconds += universe.loop.time()
    return broken, struck, seconds


def chunks(seeds: range, size: int = CHUNK) -> list[range]:
    return [seeds[n : n + size] for n in range(0, len(seeds), size)]


def breaks(name: str, seeds: range) -> tuple[int, str] | None:
    """Return the first of these seeds that finds a bug, with the promise that is broken by it alone."""
    for scenario in map(draw, seeds):
        if not BUGS[name].fits(scenario):
            continue
        with BUGS[name].planted():
            found = find(scenario)
        if found is not None and find(scenario) is None:
            return scenario.seed, found.promise
    return None


def still_found(pool: Pool, known: dict[str, int], seeds: range) -> dict[str, tuple[int, str] | None]:
    """Return which bugs are found by the one of these seeds that is known to have found them before."""
    tried = [(name, seed) for name, seed in known.items() if seed in seeds]
    found = pool.starmap(breaks, [(name, range(seed, seed + 1)) for name, seed in tried], chunksize=1)
    return dict(zip((name for name, _ in tried), found, strict=True))


def first_to_find(pool: Pool, name: str, seeds: range, jobs: int) -> tuple[int, str] | None:
    left: Iterator[range] = iter(chunks(seeds))
    while some := list(islice(left, jobs)):
        answers = pool.starmap(breaks, [(name, seeds) for seeds in some], chunksize=1)
        found = [one for one in answers if one is not None]
        if found:
            return min(found)
    return None
