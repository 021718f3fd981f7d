"""An engine for simulations: everything that happens, happens in an order drawn from a seed.

Legs advance only in `step`: each call moves one leg to its next await, or gives a waiting leg to a worker.
Several workers share one set of legs (`peer`), may crash or freeze, and starts may get lost, late or doubled.
The same seed and the same calls give the same run, as long as legs wait for nothing outside the simulation.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from loopwright.adapters.dispatch.legs import Endings, OnError, checked_slots, run_leg
from loopwright.core.model import Leg
from loopwright.ports import Execute
from loopwright.testing.pacing import Paced

SETTLING_PASSES: Final = 20
"""Turns of the event loop after which nothing more is expected of tasks that legs started on the side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """How likely it is that a start goes wrong, each from 0 to 1."""

    lose: float = 0.0
    """It is forgotten, as if the caller had died before it; starting again works."""
    delay: float = 0.0
    """It is noticed only after up to `delay_steps` further steps."""
    duplicate: float = 0.0
    """The leg is run twice, perhaps at once and on two workers."""
    delay_steps: int = 20


@dataclass(slots=True, kw_only=True, eq=False)
class _Run:
    """One execution of a leg on one worker."""

    leg: Leg
    paced: Paced
    task: asyncio.Task[None]


@dataclass(slots=True, kw_only=True, eq=False)
class _Worker:
    """A process that takes legs."""

    id: str
    execute: Execute
    slots: int
    runs: list[_Run] = field(default_factory=list)
    frozen: bool = False


@dataclass(slots=True, kw_only=True, eq=False)
class _Record:
    """What the cluster knows about a leg: it outlives every worker."""

    leg: Leg
    owner: str | None = None
    run: _Run | None = None
    """The execution whose end is the leg's end; any other that still moves is a zombie."""
    ended: bool = False

    def end(self) -> None:
        self.ended, self.owner, self.run = True, None, None


class _Cluster:
    """What all workers share."""

    def __init__(self, seed: int, faults: Faults, on_error: OnError) -> None:
        self.chance = random.Random(seed)
        self.faults = faults
        self.on_error = on_error
        self.records: dict[str, _Record] = {}
        self.queue: list[Leg] = []
        self.late: list[tuple[int, Leg]] = []
        self.workers: list[_Worker] = []
        self.steps = 0
        self._endings = Endings()

    def enqueue(self, leg: Leg) -> None:
        self.records[leg.id] = _Record(leg=leg)
        self.queue.append(leg)
        if self.chance.random() < self.faults.duplicate:
            self.queue.append(leg)

    async def step(self) -> bool:
        self.steps += 1
        for due in [entry for entry in self.late if entry[0] <= self.steps]:
            self.late.remove(due)
            self.enqueue(due[1])
        for _ in range(SETTLING_PASSES):
            # Other tasks may be about to bring about what a leg waits for.
            await asyncio.sleep(0)
            if choices := self._choices():
                worker, run = self.chance.choice(choices)
                if run is None:
                    self._take(worker, self.queue.pop(0))
                else:
                    await run.paced.advance()
                return True
        return bool(self.late)

    async def end(self, runs: Sequence[_Run]) -> None:
        for run in runs:
            run.paced.let_go()
        await self._endings.end([run.task for run in runs])

    def _choices(self) -> list[tuple[_Worker, _Run | None]]:
        awake = [worker for worker in self.workers if not worker.frozen]
        choices: list[tuple[_Worker, _Run | None]] = [
            (worker, run) for worker in awake for run in worker.runs if run.paced.is_ready
        ]
        if self.queue:
            choices += [(worker, None) for worker in awake if len(worker.runs) < worker.slots]
        return choices

    def _take(self, worker: _Worker, leg: Leg) -> None:
        paced = Paced(partial(run_leg, worker.execute, leg))
        task = asyncio.create_task(_awaited(paced), name=f"leg {leg.id} on {worker.id}")
        run = _Run(leg=leg, paced=paced, task=task)
        worker.runs.append(run)
        record = self.records[leg.id]
        if not record.ended:
            record.owner, record.run = worker.id, run
        task.add_done_callback(lambda _: self._settle(worker, run))

    def _settle(self, worker: _Worker, run: _Run) -> None:
        worker.runs.remove(run)
        run.paced.rest()
        if run.task.cancelled():
            return
        record = self.records[run.leg.id]
        if record.run is run:
            record.end()
        if (error := run.task.exception()) is not None:
            self.on_error(run.leg, error)


class SeededEngine:
    """One worker of a simulated cluster; see the module's text."""

    def __init__(self, seed: int, *, on_error: OnError, faults: Faults | None = None) -> None:
        self._cluster = _Cluster(seed, faults or Faults(), on_error)
        self._worker: _Worker | None = None

    def peer(self) -> "SeededEngine":
        """Return another worker that shares this one's legs, faults and chance."""
        other = SeededEngine(0, on_error=self._cluster.on_error)
        other._cluster = self._cluster
        return other

    # --- the port ---------------------------------------------------------------------------------

    async def launch(self, execute: Execute, *, worker_id: str, slots: int) -> None:
        """Join the cluster; after `close` it may be launched again under a new worker id."""
        if self._worker is not None:
            raise RuntimeError(f"the engine is already launched for {self._worker.id}")
        self._worker = _Worker(id=worker_id, execute=execute, slots=checked_slots(slots))
        self._cluster.workers.append(self._worker)

    async def start(self, leg: Leg) -> None:
        """Queue the leg, unless its id is known or chance has it otherwise."""
        self._launched()
        cluster, faults = self._cluster, self._cluster.faults
        if leg.id in cluster.records or any(late.id == leg.id for _, late in cluster.late):
            return
        if cluster.chance.random() < faults.lose:
            return
        if cluster.chance.random() < faults.delay:
            cluster.late.append((cluster.steps + cluster.chance.randint(1, faults.delay_steps), leg))
            return
        cluster.enqueue(leg)

    async def cancel(self, leg: Leg) -> None:
        """End the leg for good, and return when it has cleaned up after itself; a frozen worker hears nothing."""
        self._launched()
        cluster = self._cluster
        cluster.late = [(at, late) for at, late in cluster.late if late.id != leg.id]
        cluster.queue = [queued for queued in cluster.queue if queued.id != leg.id]
        if leg.id in cluster.records:
            cluster.records[leg.id].end()
            awake = [worker for worker in cluster.workers if not worker.frozen]
            await cluster.end([run for worker in awake for run in worker.runs if run.leg.id == leg.id])

    async def in_flight(self, owners: Sequence[str] | None = None) -> list[str]:
        """Return the ids of all legs that wait or run, or of those running on these workers."""
        self._launched()
        records = [record for record in self._cluster.records.values() if not record.ended]
        if owners is None:
            return [record.leg.id for record in records] + [late.id for _, late in self._cluster.late]
        return [record.leg.id for record in records if record.owner in owners]

    async def owners(self) -> list[str]:
        """Return the workers that have legs."""
        self._launched()
        return sorted({record.owner for record in self._cluster.records.values() if record.owner is not None})

    async def recover(self, owners: Sequence[str]) -> list[str]:
        """Queue the legs of dead workers again and return their ids; its own id is passed over."""
        dead = [owner for owner in owners if owner != self._launched().id]
        lost = [record for record in self._cluster.records.values() if record.owner in dead]
        for record in lost:
            record.owner = record.run = None
            self._cluster.queue.append(record.leg)
        return [record.leg.id for record in lost]

    async def close(self) -> None:
        """Leave the cluster and drop the legs running here; they stay recorded as this worker's."""
        worker, self._worker = self._worker, None
        if worker is not None:
            self._cluster.workers.remove(worker)
            await self._cluster.end(worker.runs)

    # --- the simulation ---------------------------------------------------------------------------

    async def step(self) -> bool:
        """Do one thing that chance picks among those possible in the whole cluster; say whether there was any."""
        return await self._cluster.step()

    async def run_until_idle(self, limit: int = 100_000) -> int:
        """Step until nothing can happen by itself; return how many steps it took."""
        for count in range(limit):
            if not await self.step():
                return count
        raise AssertionError(f"still busy after {limit} steps: {await self.in_flight()}")

    def freeze(self) -> None:
        """Stop this worker between two steps, as SIGSTOP or a closed lid does; its legs can be recovered."""
        self._launched().frozen = True

    def thaw(self) -> None:
        """Let a frozen worker go on as if nothing had happened: what was recovered meanwhile, it runs too."""
        self._launched().frozen = False

    def crash(self) -> None:
        """Stop this worker for good, as kill -9 does.

        No line of its legs runs again until `close` throws them away, so close it only when the simulation's
        world is no longer looked at.
        """
        self.freeze()

    def _launched(self) -> _Worker:
        if self._worker is None:
            raise RuntimeError("launch the engine first")
        return self._worker


async def _awaited(paced: Paced) -> None:
    await paced
