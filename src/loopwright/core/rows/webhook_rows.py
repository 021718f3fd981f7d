"""Rows of webhooks: where events are sent, and the events that a receiver refused."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A receiver of events. The event log is its outbox: the row stores the receiver's position."""

    id: str
    url: str
    secret: str
    """Signs every message. It is shown once, when the webhook is created."""
    projects: tuple[str, ...] = ()
    """The projects whose events it gets; empty for all of them."""
    loop: str | None = None
    """The only loop whose events it gets."""
    types: tuple[str, ...] = ()
    """The types of event that it gets; empty for all of them."""
    cursor: int
    """Every event up to this number was delivered, refused or not wanted."""
    failures: int = 0
    """How often in a row the next event was not delivered."""
    error: str = ""
    """Why the last delivery failed."""
    retry_at: datetime | None = None
    off_at: datetime | None = None
    """Since when nothing is sent: the receiver was away for too long, or wants no more."""
    sender: str = ""
    """The daemon that sends to it now."""
    sender_until: datetime | None = None
    """When another daemon may take over sending."""
    created_by: str
    created_at: datetime
    target: str | None = None
    """The target of `notify` or `otlp_endpoint` that the row is for, without secrets; None for a webhook."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """An event that a receiver refused; later events were still sent to it."""

    id: str
    webhook_id: str
    n: int
    """The number of the event."""
    type: str
    error: str
    failures: int
    died_at: datetime
    replay_at: datetime | None = None
    """When you requested it again; None if you did not."""
