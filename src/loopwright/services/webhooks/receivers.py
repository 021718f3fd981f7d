"""Create, list and remove webhooks, and send undelivered events again."""

import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from loopwright.adapters.machine.host import new_id
from loopwright.adapters.webhooks.posting import Target, check_url, checked_addresses
from loopwright.core.integrations.webhooks import new_secret
from loopwright.core.rows.events import CATALOGUE, RecordedEvent
from loopwright.core.rows.model import Loop, Project
from loopwright.core.rows.webhook_rows import DeadLetter, Webhook
from loopwright.core.values.access import Caller
from loopwright.core.values.errors import NotAllowed, NotFound, Refused, UserError
from loopwright.core.values.ids import Kind
from loopwright.ports import Tx
from loopwright.services.homes.session import Session

__all__ = ["DeadLetter", "NewWebhook", "Sent", "Webhook", "WebhookView"]

_MOST: Final = 100
_LETTERS: Final = 200
_DELIVERIES: Final = 50
_LOOKED_AT: Final = 10_000
"""How many events of the log are searched for those that a receiver gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookView:
    """A webhook without its secret."""

    id: str
    url: str
    projects: tuple[str, ...]
    loop: str | None
    types: tuple[str, ...]
    status: str
    """`on`, `retrying` or `off`."""
    error: str
    behind: int
    """How many events of the log were not processed for it yet."""
    dead: int
    row: Webhook


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """An event for a receiver, and whether it was delivered."""

    n: int
    type: str
    at: datetime
    plan_id: str | None
    state: str
    """`taken`, `refused` or `waiting`."""
    letter: DeadLetter | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWebhook:
    """A new webhook."""

    view: WebhookView
    secret: str
    """Signs every message, and is shown once."""


async def create_webhook(
    at: Session,
    caller: Caller,
    url: str,
    *,
    projects: Collection[str] = (),
    loop: str | None = None,
    types: Collection[str] = (),
) -> NewWebhook:
    """Send the events from now on to a receiver."""
    check_url(url)
    if unknown := sorted(set(types) - CATALOGUE.keys()):
        raise UserError(
            f"no event has the type {unknown[0]!r}",
            code="event_type_unknown",
            hint="`loopwright watch --json` shows the types of a plan",
        )
    if caller.projects is not None and not projects:
        raise NotAllowed(
            "your token sees some projects only, so it cannot make a webhook for all of them",
            code="webhook_reaches_too_far",
            hint="name the projects",
        )
    try:
        await checked_addresses(url, at.settings.values.webhook_networks)
    except Target as refused:
        raise Refused(
            f"nothing may be sent to {url}: {refused}",
            code="webhook_target_refused",
            hint="use a public https address, or add the network to `webhook_networks` in your own config.toml",
        ) from refused
    secret = new_secret(secrets.token_bytes(32))

    def insert(tx: Tx) -> WebhookView:
        if tx.count(Webhook, target=None) >= _MOST:
            raise Refused(
                f"there are {_MOST} webhooks already",
                code="webhooks_too_many",
                hint="remove one with `loopwright webhooks remove ID`",
            )
        for project in projects:
            if tx.get(Project, project) is None or not caller.sees(project):
                raise NotFound(f"there is no project {project}", code="project_not_found")
        if loop is not None:
            row = tx.get(Loop, loop)
            if row is None or not caller.sees(row.project_id):
                raise NotFound(f"there is no loop {loop}", code="loop_not_found")
        made = Webhook(
            id=new_id(Kind.WEBHOOK),
            url=url,
            secret=secret,
            projects=tuple(sorted(projects)),
            loop=loop,
            types=tuple(sorted(types)),
            cursor=tx.last_event(),
            created_by=caller.actor,
            created_at=tx.now(),
        )
        tx.insert(made)
        return _view(tx, made)

    return NewWebhook(view=await at.home.store.transact("webhook.create", insert), secret=secret)


async def list_webhooks(at: Session, caller: Caller) -> tuple[WebhookView, ...]:
    """Return the webhooks that the caller's token allows, the oldest first."""

    def load(tx: Tx) -> tuple[WebhookView, ...]:
        found = tx.find(Webhook, target=None, order_by=("created_at",))
        return tuple(_view(tx, one) for one in found if _is_seen(one, caller))

    return await at.home.store.read(load)


async def get_webhook(at: Session, caller: Caller, webhook_id: str) -> WebhookView:
    """Return one webhook."""
    return await at.home.store.read(lambda tx: _view(tx, _seen(tx, caller, webhook_id)))


async def remove_webhook(at: Session, caller: Caller, webhook_id: str) -> None:
    """Stop sending to a receiver, and delete its secret and its dead letters."""

    def remove(tx: Tx) -> None:
        found = _seen(tx, caller, webhook_id)
        for letter in tx.find(DeadLetter, webhook_id=found.id):
            tx.delete(DeadLetter, letter.id)
        tx.delete(Webhook, found.id)

    await at.home.store.transact("webhook.remove", remove)


async def dead_letters(at: Session, caller: Caller, webhook_id: str) -> tuple[DeadLetter, ...]:
    """Return the events that a receiver refused, in their order."""

    def load(tx: Tx) -> tuple[DeadLetter, ...]:
        found = _seen(tx, caller, webhook_id)
        return tuple(tx.find(DeadLetter, webhook_id=found.id, order_by=("n",), limit=_LETTERS))

    return await at.home.store.read(load)


async def deliveries(at: Session, caller: Caller, webhook_id: str) -> tuple[Sent, ...]:
    """Return the newest events that a receiver gets, the newest first: the log is its outbox."""

    def load(tx: Tx) -> tuple[Sent, ...]:
        hook = _seen(tx, caller, webhook_id)
        found = tx.events(
            after=max(0, tx.last_event() - _LOOKED_AT),
            limit=_DELIVERIES,
            projects=hook.projects or None,
            loop=hook.loop,
            types=hook.types,
            newest=True,
        )
        letters = {one.n: one for one in tx.find(DeadLetter, webhook_id=hook.id)}
        mine = (one for one in reversed(found) if one.at >= hook.created_at)
        return tuple(_sent(one, hook, letters.get(one.n)) for one in mine)

    return await at.home.store.read(load)


def _sent(event: RecordedEvent, hook: Webhook, letter: DeadLetter | None) -> Sent:
    state = "refused" if letter else "taken" if event.n <= hook.cursor else "waiting"
    return Sent(n=event.n, type=event.type, at=event.at, plan_id=event.plan, state=state, letter=letter)


async def replay(at: Session, caller: Caller, webhook_id: str) -> WebhookView:
    """Send the dead letters of a webhook again, in order, then the waiting events; turn it on if it is off."""

    def ask(tx: Tx) -> WebhookView:
        found = _seen(tx, caller, webhook_id)
        for letter in tx.find(DeadLetter, webhook_id=found.id, replay_at=None):
            tx.update(DeadLetter, letter.id, replay_at=tx.now())
        now = tx.update(Webhook, found.id, off_at=None, retry_at=None, failures=0)
        return _view(tx, now)

    return await at.home.store.transact("webhook.replay", ask)


def _view(tx: Tx, row: Webhook) -> WebhookView:
    return WebhookView(
        id=row.id,
        url=row.url,
        projects=row.projects,
        loop=row.loop,
        types=row.types,
        status="off" if row.off_at else "retrying" if row.failures else "on",
        error=row.error,
        behind=max(0, tx.last_event() - row.cursor),
        dead=tx.count(DeadLetter, webhook_id=row.id),
        row=row,
    )


def _seen(tx: Tx, caller: Caller, webhook_id: str) -> Webhook:
    found = tx.get(Webhook, webhook_id)
    if found is None or found.target is not None or not _is_seen(found, caller):
        raise NotFound(f"there is no webhook {webhook_id}", code="webhook_not_found")
    return found


def _is_seen(row: Webhook, caller: Caller) -> bool:
    return caller.projects is None or (bool(row.projects) and caller.projects.issuperset(row.projects))
