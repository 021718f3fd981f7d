"""Makes a failing run smaller, as long as it breaks the same promise."""

from collections.abc import Iterator
from dataclasses import replace

from tests.simulation.promises.invariants import Violation
from tests.simulation.scenario import Scenario, without
from tests.simulation.universe import play

SHOWN = 60
"""How many lines of a history are printed: what leads to a broken promise is mostly near its end."""


def find(scenario: Scenario) -> Violation | None:
    """Play a scenario and return the promise that it breaks, if any."""
    try:
        play(scenario)
    except Violation as broken:
        return broken
    return None


def shrink(broken: Violation, *, tries: int = 60) -> Violation:
    """Return the smallest run found that breaks the same promise."""
    smallest, left = broken, tries
    again = True
    while again and left > 0:
        again = False
        for smaller in _smaller(smallest.scenario):
            left -= 1
            found = find(smaller)
            if found is not None and found.promise == broken.promise:
                smallest, again = found, True
                break
            if left <= 0:
                break
    return smallest


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Yield smaller scenarios, the boldest first."""
    if len(scenario.faults) > 3:
        names = sorted(scenario.faults)
        yield without(scenario, *names[::2])
        yield without(scenario, *names[1::2])
    for tasks in dict.fromkeys((1, 2, scenario.tasks // 2, scenario.tasks - 1)):
        if 0 < tasks < scenario.tasks:
            yield replace(scenario, tasks=tasks, loops=min(tasks, scenario.loops))
    if scenario.workers > 1:
        yield replace(scenario, workers=scenario.workers - 1, hosts=min(scenario.hosts, scenario.workers - 1))
    for name in sorted(scenario.faults):
        yield without(scenario, name)
    for most in (0, 1, 2, 4, 8, 16) if scenario.most is None else range(scenario.most):
        yield replace(scenario, most=most)


def report(broken: Violation, smallest: Violation) -> str:
    """Return what a person needs: what broke, how to see it again, and what led there."""
    kept = [line for line in smallest.history if "!! slow" not in line]
    cut = len(kept) - SHOWN
    first = [f"  ... {cut} lines before"] if cut > 0 else []
    return "\n".join(
        [
            f"BROKEN  {broken}",
            f"  whole run:    {broken.scenario.replay}",
            f"  smallest run: {smallest.scenario.replay}",
            f"  there:        {smallest}",
            *first,
            *(f"  {line}" for line in kept[-SHOWN:]),
        ]
    )
