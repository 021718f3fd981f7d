"""What a run is told of its account's quota while it goes on."""

from collections.abc import Sequence
from typing import Final

from loopwright.core.policy.quotas import envelope_id, noticeable
from loopwright.core.rows.model import Run
from loopwright.core.rows.waiting_rows import Envelope, QuotaWindow
from loopwright.core.values.accounts import ACCOUNT
from loopwright.engine.money import quotas
from loopwright.engine.rows.world import World
from loopwright.ports import Tx

_MOST_WRITES: Final = 500
"""So often for one run: an agent that tells something else with each line must not keep the whole home busy."""


class QuotaWatch:
    """Writes down what a run is told of its quota while it goes on: people see it, and others choose by it."""

    def __init__(self, world: World, run: Run) -> None:
        self._world = world
        self._run = run
        self._known: Sequence[QuotaWindow] | None = None
        """As it was last written."""
        self._writes = 0

    async def hear(self, windows: Sequence[QuotaWindow]) -> None:
        """Take in all that is known by now; it is written where it has changed so much that it matters."""
        if self._known is None:
            self._known = await self._world.store.read(self._written)
        if self._writes < _MOST_WRITES and noticeable(self._known, windows):
            self._known, self._writes = windows, self._writes + 1
            await self._world.store.transact("quota.learn", lambda tx: quotas.learn(tx, self._run, windows))

    def _written(self, tx: Tx) -> Sequence[QuotaWindow]:
        envelope = tx.get(Envelope, envelope_id(self._run.agent or "", self._run.account or ACCOUNT))
        return envelope.windows if envelope is not None else ()
