"""Chance, told apart by purpose, and the record of what was done with it."""

import asyncio
import random
from collections import Counter

from tests.fakes.virtual_loop import Process, VirtualLoop
from tests.simulation.scenario import Scenario

_KEPT = 60_000


class History:
    """What happened, in order: the part of a run that a person reads."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        """Write down one thing, with its time and who did it."""
        if len(self.lines) < _KEPT:
            loop = asyncio.get_running_loop()
            process = Process.current()
            self.lines.append(f"{loop.time():10.3f}  {process.name if process else '-':12}  {text}")


class Trouble:
    """Says when something goes wrong. Each purpose has its own chance, so taking one away leaves the others alone."""

    def __init__(self, scenario: Scenario, history: History, loop: VirtualLoop) -> None:
        self.scenario = scenario
        self.loop = loop
        self.history = history
        self.struck: Counter[str] = Counter()
        self.last_struck: dict[str, float] = {}
        self.calm = False
        self.over = False
        self._streams: dict[str, random.Random] = {}
        self._delays: dict[str, random.Random] = {}
        self.rarely = min(0.03, 0.12 / scenario.tasks)
        """How likely something is that should happen a few times in a run, asked at each of its many calls."""

    def chance(self, purpose: str) -> random.Random:
        """Return the chance of one purpose."""
        if purpose not in self._streams:
            self._streams[purpose] = random.Random(f"{self.scenario.seed}/{purpose}")
        return self._streams[purpose]

    def has(self, fault: str) -> bool:
        """Say whether this fault is part of the run at all."""
        return fault in self.scenario.faults

    def strikes(self, fault: str, likely: float, about: str = "") -> bool:
        """Say whether the fault happens now."""
        if self.calm or not self.has(fault):
            return False
        if self.chance(f"fault/{fault}").random() >= likely * self.scenario.often[fault]:
            return False
        if self.scenario.most is not None and self.struck.total() >= self.scenario.most:
            return False
        self.struck[fault] += 1
        self.last_struck[fault] = asyncio.get_running_loop().time()
        self.history.note(f"!! {fault} {about}")
        return True

    async def delay(self, purpose: str) -> None:
        """Take as long as a call takes: mostly a few milliseconds, sometimes much longer."""
        chance = self._delays.get(purpose)
        if chance is None:
            chance = self._delays[purpose] = self.chance(f"delay/{purpose}")
        seconds = chance.uniform(0.0005, 0.02)
        if self.strikes("slow", 0.01):
            seconds = chance.uniform(0.5, 20.0)
        await self.loop.sleep(seconds)


async def effect(trouble: Trouble, name: str, *, times: float = 1.0) -> None:
    """Be the moment right before or right after something changes outside: the process may end here."""
    process = Process.current()
    if process is None or not trouble.strikes("crash", times * trouble.rarely, name):
        return
    process.kill()
    await asyncio.get_running_loop().create_future()
