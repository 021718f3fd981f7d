"""The pages of webhooks: delivered, refused and waiting events of each receiver."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from loopwright.core.values.errors import LoopwrightError
from loopwright.server.context import Admin, Home
from loopwright.server.pages.render import page, words_of
from loopwright.services.dashboard import home as dashboard
from loopwright.services.dashboard.project import list_projects
from loopwright.services.webhooks import receivers

router = APIRouter(prefix="/webhooks", include_in_schema=False)

Text = Annotated[str, Form()]


@router.get("")
async def show_webhooks(request: Request, home: Home, caller: Admin) -> Response:
    """Show the receivers of events, and the form that adds one."""
    return await _list(request, home, caller)


@router.post("")
async def create_webhook(
    request: Request,
    home: Home,
    caller: Admin,
    url: Text = "",
    types: Text = "",
    projects: Annotated[list[str] | None, Form()] = None,
) -> Response:
    """Create a webhook, and show its secret once."""
    wanted = types.replace(",", " ").split()
    try:
        made = await receivers.create_webhook(
            home.at, caller, url.strip(), projects=projects or (), types=wanted
        )
    except LoopwrightError as refused:
        return await _list(
            request, home, caller, refused=words_of(refused), url=url, types=types, chosen=projects or ()
        )
    return await _list(request, home, caller, made=made)


@router.get("/{webhook_id}")
async def show_webhook(request: Request, webhook_id: str, home: Home, caller: Admin) -> Response:
    """Show a receiver's delivered, refused and waiting events."""
    return page(
        request,
        "webhook.html",
        hook=await receivers.get_webhook(home.at, caller, webhook_id),
        sent=await receivers.deliveries(home.at, caller, webhook_id),
        letters=await receivers.dead_letters(home.at, caller, webhook_id),
        projects=await list_projects(home.at, caller),
        now=datetime.now(UTC),
        asks=await dashboard.attention(home.at, caller),
    )


@router.post("/{webhook_id}/replay")
async def replay_webhook(webhook_id: str, home: Home, caller: Admin) -> Response:
    """Send the refused events of a receiver again."""
    await receivers.replay(home.at, caller, webhook_id)
    return RedirectResponse(f"/webhooks/{webhook_id}", status_code=303)


@router.post("/{webhook_id}/remove")
async def remove_webhook(webhook_id: str, home: Home, caller: Admin) -> Response:
    """Remove a receiver."""
    await receivers.remove_webhook(home.at, caller, webhook_id)
    return RedirectResponse("/webhooks", status_code=303)


async def _list(
    request: Request,
    home: Home,
    caller: Admin,
    *,
    made: receivers.NewWebhook | None = None,
    refused: str = "",
    url: str = "",
    types: str = "",
    chosen: Collection[str] = (),
) -> Response:
    return page(
        request,
        "webhooks.html",
        hooks=await receivers.list_webhooks(home.at, caller),
        projects=await list_projects(home.at, caller),
        sees_all=caller.sees(None),
        made=made,
        refused=refused,
        url=url,
        types=types,
        chosen=chosen,
        shown_at="/webhooks",
        now=datetime.now(UTC),
        asks=await dashboard.attention(home.at, caller),
    )
