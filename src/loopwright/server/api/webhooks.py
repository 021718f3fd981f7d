"""Webhooks: create, list and remove them, and send refused events again."""

from datetime import datetime
from http import HTTPStatus

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from loopwright.server.context import Admin, Home
from loopwright.server.shapes import SnakeRequest
from loopwright.services.webhooks import receivers

router = APIRouter(prefix="/api/webhooks", tags=["webhooks"])


class WebhookDocument(BaseModel):
    """A receiver of events, without its secret."""

    id: str
    url: str
    projects: list[str] = Field(description="The projects whose events it gets; empty for all of them.")
    loop: str | None
    types: list[str] = Field(description="The types of event that it gets; empty for all of them.")
    status: str = Field(description="on, retrying or off")
    error: str = Field(description="Why the last delivery failed.")
    behind: int = Field(description="How many events were not processed for it yet.")
    dead: int = Field(description="How many events it refused.")
    retry_at: datetime | None
    off_at: datetime | None
    created_by: str
    created_at: datetime


class NewWebhook(SnakeRequest):
    """A webhook to create."""

    url: str = Field(min_length=1, max_length=2000)
    projects: list[str] = Field(default_factory=list, max_length=1000)
    loop: str | None = Field(default=None, max_length=100)
    types: list[str] = Field(default_factory=list, max_length=100)


class MadeWebhook(WebhookDocument):
    """A new webhook."""

    secret: str = Field(
        description="The secret that signs every message (Standard Webhooks). It is shown only once."
    )


class WebhookList(BaseModel):
    """All webhooks."""

    webhooks: list[WebhookDocument]


class DeadLetterDocument(BaseModel):
    """An event that a receiver refused."""

    n: int = Field(description="The number of the event.")
    type: str
    error: str
    failures: int
    died_at: datetime
    replay_at: datetime | None


class DeadLetterList(BaseModel):
    """The events that a receiver refused, in their order."""

    dead_letters: list[DeadLetterDocument]


@router.get("")
async def list_webhooks(home: Home, caller: Admin) -> WebhookList:
    """List the webhooks, the oldest first."""
    return WebhookList(webhooks=list(map(_document, await receivers.list_webhooks(home.at, caller))))


@router.post("", status_code=HTTPStatus.CREATED)
async def create_webhook(wanted: NewWebhook, response: Response, home: Home, caller: Admin) -> MadeWebhook:
    """Send events from now on to a receiver, signed according to Standard Webhooks."""
    response.headers["Cache-Control"] = "no-store"
    made = await receivers.create_webhook(
        home.at, caller, wanted.url, projects=wanted.projects, loop=wanted.loop, types=wanted.types
    )
    return MadeWebhook(**_document(made.view).model_dump(), secret=made.secret)


@router.get("/{webhook_id}")
async def get_webhook(webhook_id: str, home: Home, caller: Admin) -> WebhookDocument:
    """Return one webhook."""
    return _document(await receivers.get_webhook(home.at, caller, webhook_id))


@router.delete("/{webhook_id}", status_code=HTTPStatus.NO_CONTENT)
async def remove_webhook(webhook_id: str, home: Home, caller: Admin) -> None:
    """Remove a webhook and its dead letters."""
    await receivers.remove_webhook(home.at, caller, webhook_id)


@router.get("/{webhook_id}/dead-letters")
async def list_dead_letters(webhook_id: str, home: Home, caller: Admin) -> DeadLetterList:
    """List the events that a receiver refused."""
    found = await receivers.dead_letters(home.at, caller, webhook_id)
    return DeadLetterList(
        dead_letters=[
            DeadLetterDocument(
                n=one.n,
                type=one.type,
                error=one.error,
                failures=one.failures,
                died_at=one.died_at,
                replay_at=one.replay_at,
            )
            for one in found
        ]
    )


@router.post("/{webhook_id}/replay")
async def replay_webhook(webhook_id: str, home: Home, caller: Admin) -> WebhookDocument:
    """Send the dead letters again, in their order, and turn the webhook on if it is off."""
    return _document(await receivers.replay(home.at, caller, webhook_id))


def _document(view: receivers.WebhookView) -> WebhookDocument:
    return WebhookDocument(
        id=view.id,
        url=view.url,
        projects=list(view.projects),
        loop=view.loop,
        types=list(view.types),
        status=view.status,
        error=view.error,
        behind=view.behind,
        dead=view.dead,
        retry_at=view.row.retry_at,
        off_at=view.row.off_at,
        created_by=view.row.created_by,
        created_at=view.row.created_at,
    )
