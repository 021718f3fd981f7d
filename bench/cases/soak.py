"""Whether the daemon's memory stays as it is while it answers requests for a long time."""

import asyncio
from collections.abc import Iterator

import psutil

from bench.cases.api import ServedHome, load, served_home
from bench.measure import Measurement, Setting, Target

CASE = "soak"
GROWTH = 1.05


def case(setting: Setting) -> Iterator[Measurement]:
    """Ask the daemon of a large home as `api` does, and look at its memory."""
    seconds = setting.pick(600, 20)
    with served_home(setting) as served:
        first, last = asyncio.run(_soaked(served, seconds))
    yield Measurement(
        case=CASE,
        name=f"memory of the daemon after {seconds} s of requests",
        unit="MB",
        values=(last / 1e6,),
        against="in the second fifth of that time",
        baseline=(first / 1e6,),
        target=Target(limit=GROWTH, of="ratio"),
    )


async def _soaked(served: ServedHome, seconds: float) -> tuple[float, float]:
    """Return the daemon's memory in the second and in the last fifth of a long time of requests."""
    process = psutil.Process(served.pid)
    seen: list[int] = []

    async def watch() -> None:
        while True:
            seen.append(process.memory_info().rss)
            await asyncio.sleep(0.5)

    watching = asyncio.create_task(watch())
    await load(served, seconds, lambda _name, _ms: None)
    watching.cancel()
    fifth = len(seen) // 5
    return max(seen[fifth : 2 * fifth]), max(seen[-fifth:])
