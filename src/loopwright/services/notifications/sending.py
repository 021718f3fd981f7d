"""Send notices to the targets of `notify` while a process works in a home."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from loopwright.adapters.notify.apprise_target import send
from loopwright.core.integrations.notices import TOPICS, Notice, notice_of
from loopwright.core.integrations.webhooks import Delivery, Patience, Reply
from loopwright.core.rows.events import RecordedEvent
from loopwright.core.rows.model import Plan
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.errors import LoopwrightError
from loopwright.ports import Tx
from loopwright.services.homes.session import Session
from loopwright.services.notifications.targets import full_url, name_of, row_of
from loopwright.services.webhooks.sending import Item
from loopwright.services.webhooks.targets import PATIENCE, SEND_S, TargetSender, sending


@asynccontextmanager
async def notifying(
    at: Session, loop_id: str | None = None, *, patience: Patience = PATIENCE
) -> AsyncIterator[None]:
    """Send notices during a block; a target from a flag gets those of one loop only."""
    loop = loop_id if at.settings.origin("notify").startswith("flag ") else None
    async with sending(NoticeSender(at, loop=loop, patience=patience)):
        yield


class NoticeSender(TargetSender):
    """Sends a notice for each event that makes one."""

    def __init__(self, at: Session, *, loop: str | None, patience: Patience) -> None:
        urls = at.settings.values.notify
        names = {row_of(url, loop): name_of(url) for url in urls}
        super().__init__(at, names, types=tuple(TOPICS), loop=loop, patience=patience)
        self._urls = {row_of(url, loop): url for url in urls}

    async def deliver(self, item: Item) -> Delivery:
        """Send the notice of an event, unless it is too old."""
        notice = await self._at.home.store.read(partial(_notice, event=item.event))
        if notice is None:
            return Delivery(reply=Reply.TAKEN)
        try:
            async with asyncio.timeout(SEND_S):
                return await asyncio.to_thread(self._sent, self._urls[item.hook.id], notice)
        except TimeoutError:
            return Delivery(reply=Reply.AWAY, detail=f"no answer within {SEND_S:g} s")

    def _sent(self, url: str, notice: Notice) -> Delivery:
        at = self._at
        try:
            return send(full_url(url, at.settings, at.env), name_of(url), notice)
        except LoopwrightError as wrong:
            return Delivery(reply=Reply.AWAY, detail=str(wrong))


def _notice(tx: Tx, *, event: RecordedEvent) -> Notice | None:
    plan = tx.get(Plan, event.plan) if event.plan else None
    asked: Any = event.payload.get("question")
    question = tx.get(Question, asked) if asked else None
    return notice_of(event, plan, question, now=tx.now())
