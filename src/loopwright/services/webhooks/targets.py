"""Send events to targets that only this process knows: they have rows like webhooks, but no page and no command.

While the process works in a home, each event is sent once, in order, with retries. What it did not send, the next
process with the same target sends.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

from loopwright.core.integrations.webhooks import Patience
from loopwright.core.rows.webhook_rows import Webhook
from loopwright.core.values.errors import StoreUnavailable
from loopwright.ports import Tx
from loopwright.services.homes.session import Session
from loopwright.services.webhooks.sending import Sender, is_due

log = logging.getLogger(__name__)

PATIENCE: Final = Patience(longest_s=3600.0, away=1_000_000)
"""A target that is away is tried for as long as there is something to send."""
SEND_S: Final = 25.0
"""How long one event may take."""
_CLAIM_S: Final = 60.0
_LAST_S: Final = 10.0
"""How long the end of a process waits for its last events."""


class TargetSender(Sender):
    """Sends to the targets that this process knows."""

    def __init__(
        self,
        at: Session,
        names: Mapping[str, str],
        *,
        types: tuple[str, ...],
        loop: str | None = None,
        patience: Patience = PATIENCE,
    ) -> None:
        """Take targets: their rows, each with a name that hides its secrets."""
        super().__init__(at, lambda _: {}, patience=patience, claim_s=_CLAIM_S)
        self._names = names
        self._types = types
        self._loop = loop

    async def register(self) -> None:
        """Ensure a row for each target; a new target gets the events from now on."""

        def insert(tx: Tx) -> None:
            for row, name in self._names.items():
                known = tx.get(Webhook, row)
                if known is None:
                    tx.insert(self._row(tx, row, name))
                elif known.types != self._types:
                    tx.update(Webhook, row, types=self._types)

        await self._at.home.store.transact("webhook.targets", insert)

    def _row(self, tx: Tx, row: str, name: str) -> Webhook:
        return Webhook(
            id=row,
            target=name,
            url="",
            secret="",
            loop=self._loop,
            types=self._types,
            cursor=tx.last_event(),
            created_by="loopwright",
            created_at=tx.now(),
        )

    def known(self, tx: Tx) -> set[str]:
        """Return the rows of the targets."""
        return {one.id for one in tx.find(Webhook, id=list(self._names))}

    async def finish(self) -> None:
        """Wait a moment until everything is sent that can be sent now; then let other processes send."""
        until = time.monotonic() + _LAST_S
        while await self._at.home.store.read(self._is_due) and time.monotonic() < until:
            await self._at.home.store.changed(0.5)
        for one in await self._at.home.store.read(lambda tx: tx.find(Webhook, id=list(self._names))):
            if one.failures:
                log.warning("%s took nothing: %s; it is tried again later", one.target, one.error)

    def _is_due(self, tx: Tx) -> bool:
        return any(is_due(tx, one, self._me) for one in self._names)

    async def let_go(self) -> None:
        """Let other processes send at once."""

        def free(tx: Tx) -> None:
            for one in tx.find(Webhook, id=list(self._names), sender=self._me):
                tx.update(Webhook, one.id, sender="", sender_until=None)

        await self._at.home.store.transact("webhook.sent", free)


@asynccontextmanager
async def sending(sender: TargetSender) -> AsyncIterator[None]:
    """Send during a block, and then send what is left."""
    try:
        await sender.register()
    except StoreUnavailable as away:
        log.warning("nothing is sent to targets: %s", away)
        yield
        return
    task = asyncio.create_task(sender.run(), name="targets")
    try:
        yield
    finally:
        with suppress(StoreUnavailable):  # what is left is sent by the next process
            await sender.finish()
        task.cancel()
        await asyncio.wait({task})
        with suppress(StoreUnavailable):  # then the claims lapse by themselves
            await sender.let_go()
