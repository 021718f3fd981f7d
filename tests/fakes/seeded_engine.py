"""An engine for simulations: several workers share one set of legs, and starts go wrong as a seed has it.

It has no time of its own. On a `VirtualLoop` the same seed and the same calls give the same run; there a worker is
the `Process` that launched it, and takes nothing while it is frozen or dead. Its legs stay its own until somebody
recovers them, so that a worker that wakes up late goes on with legs that others have taken over.
"""

import asyncio
import random
from collections.abc import Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field

from tests.fakes.virtual_loop import Process

from loopwright.adapters.dispatch.legs import Endings, OnError, checked_slots, run_leg
from loopwright.core.rows.model import Leg
from loopwright.ports import Execute


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """How likely it is that a start goes wrong, each from 0 to 1."""

    lose: float = 0.0
    """It is forgotten, as if the caller had died before it; starting again works."""
    delay: float = 0.0
    """It is noticed only after up to `delay_s` seconds."""
    duplicate: float = 0.0
    """The leg is run twice, perhaps at once and on two workers."""
    delay_s: float = 20.0


@dataclass(slots=True, kw_only=True, eq=False)
class _Worker:
    """A process that takes legs."""

    id: str
    host_id: str | None
    execute: Execute
    slots: int
    context: Context
    process: Process | None
    tasks: dict[asyncio.Task[None], Leg] = field(default_factory=dict)

    def takes(self, leg: Leg) -> bool:
        """Say whether the leg may run here, now."""
        if self.process is not None and not self.process.running:
            return False
        here = leg.host_id is None or self.host_id is None or leg.host_id == self.host_id
        return here and len(self.tasks) < self.slots


@dataclass(slots=True, kw_only=True, eq=False)
class _Record:
    """What the cluster knows about a leg: it outlives every worker."""

    leg: Leg
    owner: str | None = None
    task: asyncio.Task[None] | None = None
    """The execution whose end is the leg's end; any other that still moves is a zombie."""
    ended: bool = False

    def end(self) -> None:
        self.ended, self.owner, self.task = True, None, None


class _Cluster:
    """What all workers share."""

    def __init__(self, seed: int, faults: Faults, on_error: OnError) -> None:
        self.chance = random.Random(seed)
        self.faults = faults
        self.on_error = on_error
        self.records: dict[str, _Record] = {}
        self.queue: list[Leg] = []
        self.late: dict[str, asyncio.TimerHandle] = {}
        self.workers: list[_Worker] = []
        self.endings = Endings()

    def enqueue(self, leg: Leg) -> None:
        self.late.pop(leg.id, None)
        self.records[leg.id] = _Record(leg=leg)
        self.queue.append(leg)
        if self.chance.random() < self.faults.duplicate:
            self.queue.append(leg)
        self.hand_out()

    def hand_out(self) -> None:
        """Give what waits to whoever has room, in the order in which it came."""
        for leg in tuple(self.queue):
            takers = [worker for worker in self.workers if worker.takes(leg)]
            if takers:
                self.queue.remove(leg)
                self._run(self.chance.choice(takers), leg)

    def _run(self, worker: _Worker, leg: Leg) -> None:
        loop = asyncio.get_running_loop()
        context = worker.context.copy()
        task = loop.create_task(run_leg(worker.execute, leg), name=f"leg {leg.id}", context=context)
        worker.tasks[task] = leg
        record = self.records[leg.id]
        if not record.ended:
            record.owner, record.task = worker.id, task
        # Noticed by the worker itself: one that is dead notices nothing.
        task.add_done_callback(lambda ended: self._settle(worker, ended), context=context)

    def _settle(self, worker: _Worker, task: asyncio.Task[None]) -> None:
        leg = worker.tasks.pop(task)
        if task.cancelled() and not self.endings.asked(task):
            return  # the event loop is being closed: what started now would never be waited for
        if not task.cancelled():
            record = self.records[leg.id]
            if record.task is task:
                record.end()
            if (error := task.exception()) is not None:
                self.on_error(leg, error)
        self.hand_out()


class SeededEngine:
    """One worker of a simulated cluster; see the module's text."""

    def __init__(
        self, seed: int, *, on_error: OnError, faults: Faults | None = None, host_id: str | None = None
    ) -> None:
        self._cluster = _Cluster(seed, faults or Faults(), on_error)
        self._host_id = host_id
        self._worker: _Worker | None = None

    def peer(self, host_id: str | None = None) -> "SeededEngine":
        """Return another worker that shares this one's legs, faults and chance."""
        other = SeededEngine(0, on_error=self._cluster.on_error, host_id=host_id)
        other._cluster = self._cluster
        return other

    def calm(self) -> None:
        """Let no start go wrong any more."""
        self._cluster.faults = Faults()

    async def launch(self, execute: Execute, *, worker_id: str, slots: int) -> None:
        """Join the cluster; after `close` it may be launched again under a new worker id."""
        if self._worker is not None:
            raise RuntimeError(f"the engine is already launched for {self._worker.id}")
        self._worker = _Worker(
            id=worker_id,
            host_id=self._host_id,
            execute=execute,
            slots=checked_slots(slots),
            context=copy_context(),
            process=Process.current(),
        )
        self._cluster.workers.append(self._worker)
        self._cluster.hand_out()

    async def start(self, leg: Leg) -> None:
        """Queue the leg, unless its id is known or chance has it otherwise."""
        self._launched()
        cluster, faults = self._cluster, self._cluster.faults
        if leg.id in cluster.records or leg.id in cluster.late:
            return
        if cluster.chance.random() < faults.lose:
            return
        if cluster.chance.random() < faults.delay:
            delay_s = cluster.chance.uniform(0, faults.delay_s)
            # It is on its way already: nobody's death keeps it from arriving.
            cluster.late[leg.id] = asyncio.get_running_loop().call_later(
                delay_s, cluster.enqueue, leg, context=Context()
            )
            return
        cluster.enqueue(leg)

    async def cancel(self, leg: Leg) -> None:
        """End the leg for good, and return when it has cleaned up after itself; a frozen worker hears nothing."""
        self._launched()
        cluster = self._cluster
        if leg.id in cluster.late:
            cluster.late.pop(leg.id).cancel()
        cluster.queue = [queued for queued in cluster.queue if queued.id != leg.id]
        if leg.id in cluster.records:
            cluster.records[leg.id].end()
            hearing = [one for one in cluster.workers if one.process is None or one.process.running]
            tasks = [task for worker in hearing for task, its in worker.tasks.items() if its.id == leg.id]
            await cluster.endings.end(tasks)

    async def in_flight(self, owners: Sequence[str] | None = None) -> list[str]:
        """Return the ids of all legs that wait or run, or of those running on these workers."""
        self._launched()
        self._cluster.hand_out()  # whoever looks also notices a worker that was thawed
        records = [record for record in self._cluster.records.values() if not record.ended]
        if owners is None:
            return [record.leg.id for record in records] + list(self._cluster.late)
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
            record.owner = record.task = None
            self._cluster.queue.append(record.leg)
        self._cluster.hand_out()
        return [record.leg.id for record in lost]

    async def close(self) -> None:
        """Leave the cluster and drop the legs running here; they stay recorded as this worker's."""
        worker, self._worker = self._worker, None
        if worker is not None:
            self._cluster.workers.remove(worker)
            await self._cluster.endings.end(worker.tasks)

    def _launched(self) -> _Worker:
        if self._worker is None:
            raise RuntimeError("launch the engine first")
        return self._worker
