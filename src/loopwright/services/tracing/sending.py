"""Send a span for everything that ends in a plan, while a process works in a home."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from loopwright.adapters.traces.otlp import name_of, send
from loopwright.core.integrations.traces import OF_USE, PLAN_ENDS, TYPES, Span, Subject, span_of
from loopwright.core.integrations.webhooks import Delivery, Patience, Reply
from loopwright.core.rows.events import RecordedEvent
from loopwright.core.rows.model import Attempt, Plan, Run, Task
from loopwright.core.values.errors import LoopwrightError
from loopwright.ports import Tx
from loopwright.services.homes.session import Session
from loopwright.services.webhooks.sending import Item
from loopwright.services.webhooks.targets import PATIENCE, SEND_S, TargetSender, sending

_ROW: Final = "otlp_"


@asynccontextmanager
async def tracing(at: Session, endpoint: str, *, patience: Patience = PATIENCE) -> AsyncIterator[None]:
    """Send spans for the length of a block."""
    async with sending(SpanSender(at, endpoint, patience=patience)):
        yield


class SpanSender(TargetSender):
    """Sends a span for each event that ends one."""

    def __init__(self, at: Session, endpoint: str, *, patience: Patience) -> None:
        row = _ROW + hashlib.sha256(endpoint.encode()).hexdigest()[:24]
        super().__init__(at, {row: name_of(endpoint)}, types=TYPES, patience=patience)
        self._endpoint = endpoint

    async def deliver(self, item: Item) -> Delivery:
        """Send the span that an event ends, unless it is of no use any more."""
        span = await self._at.home.store.read(partial(_span, event=item.event))
        if span is None:
            return Delivery(reply=Reply.TAKEN)
        try:
            async with asyncio.timeout(SEND_S):
                return await asyncio.to_thread(self._sent, span)
        except TimeoutError:
            return Delivery(reply=Reply.AWAY, detail=f"no answer within {SEND_S:g} s")

    def _sent(self, span: Span) -> Delivery:
        try:
            return send(self._endpoint, [span])
        except LoopwrightError as wrong:
            return Delivery(reply=Reply.AWAY, detail=str(wrong))


def _span(tx: Tx, *, event: RecordedEvent) -> Span | None:
    plan = tx.get(Plan, event.plan) if event.plan else None
    if plan is None or tx.now() - event.at > OF_USE:
        return None
    earlier: list[RecordedEvent] = []
    if event.type in PLAN_ENDS:
        earlier = tx.events(plan=plan.id, types=PLAN_ENDS, upto=event.n - 1, limit=1, newest=True)
    return span_of(
        event,
        Subject(
            plan=plan,
            task=tx.get(Task, event.task) if event.task else None,
            attempt=tx.get(Attempt, event.attempt) if event.attempt else None,
            run=tx.get(Run, event.run) if event.run else None,
            earlier_end=earlier[0] if earlier else None,
        ),
    )
