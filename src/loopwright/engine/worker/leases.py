"""A worker's lease, by the database's clock.

A worker that cannot renew it in time stops acting before others take over.
"""

from dataclasses import replace
from datetime import timedelta

from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Cursor, Worker
from loopwright.core.values.errors import LeaseLost, StaleVersion
from loopwright.core.values.ids import Kind
from loopwright.engine.rows.moves import MACHINE
from loopwright.ports import Clock, Ids, Membership, Store, Tx

_CONTROLLER = "controller"
_SAFETY = 0.8
"""Share of the lease after which a worker that could not renew it stops acting, ahead of the others' clocks."""


class Lease:
    """One start of a worker. A lapsed lease is never renewed: the worker comes back as a new one."""

    def __init__(
        self, store: Store, clock: Clock, ids: Ids, membership: Membership, *, me: Worker, seconds: float
    ) -> None:
        self._store = store
        self._clock = clock
        self._membership = membership
        self._seconds = seconds
        self._ids = ids
        self.worker = me
        self._good_until = 0.0

    def valid(self) -> bool:
        """Return whether this worker may still act, by the monotonic clock."""
        return self._membership.exclusive or self._clock.monotonic() < self._good_until

    async def join(self) -> Worker:
        """Register a new incarnation."""
        began = self._clock.monotonic()

        def join(tx: Tx) -> Worker:
            now = tx.now()
            worker = replace(
                self.worker,
                id=self._ids(Kind.WORKER),
                started_at=now,
                lease_until=now + timedelta(seconds=self._seconds),
                controls=False,
            )
            if self._membership.exclusive:
                for old in tx.find(Worker):
                    tx.delete(
                        Worker, old.id
                    )  # we hold the lock, so the process that wrote these rows is gone
            tx.insert(worker)
            tx.append(
                happened("worker_joined", MACHINE, worker=worker.id, hostname=worker.hostname, pid=worker.pid)
            )
            return worker

        self.worker = await self._store.transact("worker.joined", join)
        self._good_until = began + self._seconds * _SAFETY
        return self.worker

    async def renew(self) -> None:
        """Extend the lease; raise `LeaseLost` if it had lapsed."""
        began = self._clock.monotonic()

        def renew(tx: Tx) -> None:
            row = tx.get(Worker, self.worker.id)
            if row is None or row.lease_until <= tx.now() or row.slots == 0:
                raise LeaseLost(f"the lease of {self.worker.id} lapsed")
            tx.update(Worker, row.id, lease_until=tx.now() + timedelta(seconds=self._seconds))

        await self._store.transact("worker.renew", renew)
        self._good_until = began + self._seconds * _SAFETY

    def holder(self, tx: Tx) -> Worker | None:
        """Return the live worker that applies policy; None if there is none, or if this worker is alone in a home."""
        return None if self._membership.exclusive else _controller(tx)

    async def controls(self, holder: Worker | None) -> bool:
        """Be, or become, the one worker that applies policy; False if another live one does."""
        if self._membership.exclusive:
            return True
        if holder is None:
            return await self._store.transact("worker.controls", self._claim)
        return holder.id == self.worker.id

    def _claim(self, tx: Tx) -> bool:
        holder = _controller(tx)
        if holder is not None:
            return holder.id == self.worker.id
        mine = tx.get(Worker, self.worker.id)
        if mine is None or mine.lease_until <= tx.now() or mine.slots == 0:
            return False  # it lapsed while we slept: others may take over at any moment
        turn = tx.get(Cursor, _CONTROLLER)
        if turn is None:
            turn = Cursor(id=_CONTROLLER, n=0)
            tx.insert(turn)
        try:
            # Two claims at once meet on this row, and only one of them wins.
            tx.update(Cursor, _CONTROLLER, expect={"n": turn.n}, n=turn.n + 1)
            tx.update(Worker, self.worker.id, expect={"controls": False}, controls=True)
        except StaleVersion:
            return False
        return True

    async def leave(self) -> None:
        """Release the lease, so that no worker has to wait for it to lapse."""

        def leave(tx: Tx) -> None:
            if tx.delete(Worker, self.worker.id):
                tx.append(happened("worker_left", MACHINE, worker=self.worker.id))

        await self._store.transact("worker.left", leave)


def _controller(tx: Tx) -> Worker | None:
    now = tx.now()
    return next((one for one in tx.find(Worker, controls=True) if one.lease_until > now), None)
