"""Send events to the receivers of webhooks: each in the order of the log, one at a time, until it is delivered.

A message that arrived just before a kill is sent again with the same `webhook-id`, so that a receiver can
recognise it.
"""

import asyncio
import json
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final
from uuid import uuid4

from loopwright.adapters.webhooks.posting import post
from loopwright.core.integrations.webhooks import (
    Dead,
    Delivery,
    Later,
    Off,
    Patience,
    Taken,
    after_delivery,
    signature,
)
from loopwright.core.rows.events import RecordedEvent
from loopwright.core.rows.webhook_rows import DeadLetter, Webhook
from loopwright.core.values.errors import StoreUnavailable
from loopwright.ports import NOT_NULL, Tx
from loopwright.services.homes.session import Session

log = logging.getLogger(__name__)

LARGEST: Final = 64 << 10
"""How many bytes a message may have; a larger one is sent without its details."""
_TICK_S: Final = 5.0
_AGAIN_S: Final = 1.0
_SPAN: Final = 10_000
"""How much of the log one pass covers, and how far a receiver may be ahead of its row."""
_OWN: Final = frozenset({"webhook.claim", "webhook.sent", "webhook.passed"})

Post = Callable[[Webhook, bytes, Mapping[str, str]], Awaitable[Delivery]]
Render = Callable[[RecordedEvent], Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """The next event to send."""

    hook: Webhook
    event: RecordedEvent
    letter: DeadLetter | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rest:
    """How long nothing can be sent, unless something happens."""

    seconds: float
    hook: Webhook | None = None
    upto: int = 0
    """No event up to this number is wanted."""


class Sender:
    """Sends to every receiver at its own pace; the next daemon continues what a killed one left."""

    def __init__(
        self,
        at: Session,
        render: Render,
        *,
        send: Post | None = None,
        chance: Callable[[], float] = random.random,
        patience: Patience | None = None,
        claim_s: float = 20.0,
    ) -> None:
        self._at = at
        self._render = render
        self._send = send or self._post
        self._chance = chance
        self._patience = patience or Patience()
        self._claim = timedelta(seconds=claim_s)
        self._me = str(uuid4())
        self._going: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Send until this task is cancelled."""
        try:
            while True:
                try:
                    await self._look()
                    await self._at.home.store.changed(_TICK_S, ignoring=_OWN)
                except StoreUnavailable as away:
                    log.warning("webhooks wait for the database: %s", away)
                    await asyncio.sleep(_AGAIN_S)
        finally:
            for task in self._going.values():
                task.cancel()
            await asyncio.gather(*self._going.values(), return_exceptions=True)

    async def _look(self) -> None:
        known = await self._at.home.store.read(self.known)
        for one in self._going.keys() - known:
            self._going.pop(one).cancel()
        for one in known:
            # A receiver that was off has a task that ended, if it is on again before this looks.
            if one not in self._going or self._going[one].done():
                self._going[one] = asyncio.create_task(self._serve(one), name=f"webhook {one}")

    def known(self, tx: Tx) -> set[str]:
        """Return the rows of the receivers to send to."""
        return {one.id for one in tx.find(Webhook, off_at=None, target=None)}

    async def _serve(self, hook_id: str) -> None:
        """Send to one receiver until it is off or removed."""
        while True:
            try:
                step = await self._next(hook_id)
                if step is None:
                    return
                if isinstance(step, Item):
                    delivery = await self.deliver(step)
                    record = partial(self._note, item=step, delivery=delivery, chance=self._chance())
                    await self._at.home.store.transact("webhook.sent", record)
                else:
                    await self._at.home.store.changed(step.seconds, ignoring=_OWN)
            except StoreUnavailable as away:
                log.warning("webhook waits for the database: %s", away, extra={"webhook": hook_id})
                await asyncio.sleep(_AGAIN_S)
            except Exception:  # the boundary: one receiver must not hold up the others
                log.exception("webhook failed; trying again", extra={"webhook": hook_id})
                await asyncio.sleep(_TICK_S)

    async def _next(self, hook_id: str) -> Item | _Rest | None:
        passed = 0
        while True:
            step = await self._at.home.store.read(partial(_find, hook_id=hook_id, me=self._me, passed=passed))
            if (
                isinstance(step, _Rest)
                and step.hook is not None
                and step.upto > max(passed, step.hook.cursor)
            ):
                passed = step.upto
                if passed - step.hook.cursor >= _SPAN:
                    await self._at.home.store.transact(
                        "webhook.passed", partial(_pass, hook_id=hook_id, upto=passed)
                    )
            elif not isinstance(step, Item) or await self._may_send(hook_id):
                return step

    async def _may_send(self, hook_id: str) -> bool:
        return await self._at.home.store.transact("webhook.claim", partial(self._claimed, hook_id=hook_id))

    def _claimed(self, tx: Tx, *, hook_id: str) -> bool:
        """Become the sender of a receiver, unless another daemon is."""
        hook = tx.get(Webhook, hook_id)
        if hook is None or _is_others(hook, self._me, tx.now()):
            return False
        if (
            hook.sender != self._me
            or hook.sender_until is None
            or hook.sender_until < tx.now() + self._claim / 2
        ):
            tx.update(Webhook, hook_id, sender=self._me, sender_until=tx.now() + self._claim)
        return True

    async def deliver(self, item: Item) -> Delivery:
        """Send an event once."""
        body = self._body(item.event)
        now = await self._at.home.store.read(lambda tx: tx.now())
        headers = {
            "webhook-id": item.event.id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": signature(item.hook.secret, item.event.id, now, body),
        }
        return await self._send(item.hook, body, headers)

    def _body(self, event: RecordedEvent) -> bytes:
        data = dict(self._render(event))
        message = {"type": event.type, "timestamp": event.at.isoformat(), "data": data}
        body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
        if len(body) <= LARGEST:
            return body
        message["data"] = {**data, "details": {}, "truncated": True}
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()

    async def _post(self, hook: Webhook, body: bytes, headers: Mapping[str, str]) -> Delivery:
        return await post(hook.url, body, headers, allowed=self._at.settings.values.webhook_networks)

    def _note(self, tx: Tx, *, item: Item, delivery: Delivery, chance: float) -> None:
        hook = tx.get(Webhook, item.hook.id)
        if hook is None or hook.sender != self._me:
            return  # it was removed, or another daemon took over after this one hung
        letter = tx.get(DeadLetter, item.letter.id) if item.letter else None
        now = tx.now()
        match after_delivery(delivery, hook.failures, self._patience, now=now, chance=chance):
            case Taken():
                tx.update(Webhook, hook.id, failures=0, error="", retry_at=None)
                self._settle(tx, item, letter)
            case Later(at=at, failures=failures, error=error):
                tx.update(Webhook, hook.id, failures=failures, error=error, retry_at=at)
            case Dead(failures=failures, error=error):
                tx.update(Webhook, hook.id, failures=0, error=error, retry_at=None)
                if letter is not None:
                    tx.update(DeadLetter, letter.id, error=error, failures=failures, replay_at=None)
                    return
                tx.insert(
                    DeadLetter(
                        id=f"{hook.id}/{item.event.n}",
                        webhook_id=hook.id,
                        n=item.event.n,
                        type=item.event.type,
                        error=error,
                        failures=failures,
                        died_at=now,
                    )
                )
                self._settle(tx, item, None)
            case Off(failures=failures, error=error):
                tx.update(
                    Webhook,
                    hook.id,
                    failures=failures,
                    error=error,
                    retry_at=None,
                    off_at=now,
                    sender="",
                    sender_until=None,
                )

    def _settle(self, tx: Tx, item: Item, letter: DeadLetter | None) -> None:
        """Continue after the event, or delete the delivered letter."""
        if letter is not None:
            tx.delete(DeadLetter, letter.id)
        elif item.letter is None:
            tx.update(Webhook, item.hook.id, cursor=item.event.n)


def _find(tx: Tx, *, hook_id: str, me: str, passed: int) -> Item | _Rest | None:
    """Return the next event for a receiver; None if it is off or removed."""
    hook = tx.get(Webhook, hook_id)
    if hook is None or hook.off_at is not None:
        return None
    if hook.retry_at is not None and hook.retry_at > tx.now():
        return _Rest(seconds=min(_TICK_S, (hook.retry_at - tx.now()).total_seconds()))
    if _is_others(hook, me, tx.now()):
        assert hook.sender_until is not None
        return _Rest(seconds=min(_TICK_S, (hook.sender_until - tx.now()).total_seconds()))
    for letter in tx.find(DeadLetter, webhook_id=hook.id, replay_at=NOT_NULL, order_by=("n",), limit=1):
        for event in tx.events(after=letter.n - 1, upto=letter.n, limit=1):
            return Item(hook=hook, event=event, letter=letter)
    last = tx.last_event()
    # A restored database may be behind its receivers.
    after = min(max(passed, hook.cursor), last)
    upto = min(last, after + _SPAN)
    found = tx.events(
        after=after,
        upto=upto,
        limit=1,
        projects=hook.projects or None,
        loop=hook.loop,
        types=hook.types,
    )
    if found:
        return Item(hook=hook, event=found[0], letter=None)
    return _Rest(seconds=_TICK_S, hook=hook, upto=upto)


def is_due(tx: Tx, hook_id: str, me: str) -> bool:
    """Return whether a receiver has to be sent something now, or part of the log has to be looked at for it."""
    step = _find(tx, hook_id=hook_id, me=me, passed=0)
    return isinstance(step, Item) or (isinstance(step, _Rest) and 0 < step.upto < tx.last_event())


def _pass(tx: Tx, *, hook_id: str, upto: int) -> None:
    hook = tx.get(Webhook, hook_id)
    if hook is not None and hook.cursor < upto:
        tx.update(Webhook, hook_id, cursor=upto)


def _is_others(hook: Webhook, me: str, now: datetime) -> bool:
    return hook.sender not in ("", me) and hook.sender_until is not None and hook.sender_until > now
