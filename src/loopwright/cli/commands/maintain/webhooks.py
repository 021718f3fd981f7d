"""`webhooks`: list, create, replay or remove receivers of events."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from cyclopts import App
from rich.markup import escape

from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.lines import columns
from loopwright.cli.shell.output import console, print_json
from loopwright.core.values.access import OWNER, Caller
from loopwright.services.homes.context import look_settings
from loopwright.services.homes.session import Session, opened
from loopwright.services.webhooks import receivers
from loopwright.services.webhooks.receivers import WebhookView

T = TypeVar("T")

app = App(
    name="webhooks",
    help="List, create, replay or remove the webhooks of the daemon.",
    help_format="plaintext",
)


@app.default
def webhooks(*, json: bool = False) -> int:
    """List the webhooks; their secrets are not shown.

    Parameters
    ----------
    json
        Print them as JSON.
    """
    found = _with_home(receivers.list_webhooks)
    if json:
        print_json({"webhooks": list(map(_shown, found))})
        return ExitCode.VERIFIED
    if not found:
        console().print("there are no webhooks; create one with `loopwright webhooks create URL`")
    rows = [
        (
            one.id,
            one.status,
            ", ".join(filter(None, (*one.types, one.loop, *one.projects))) or "all events",
            f"{one.dead} dead" if one.dead else "",
            one.url,
            f"{one.error}; `loopwright webhooks replay {one.id}`" if one.status == "off" else one.error,
        )
        for one in found
    ]
    for line in columns(rows, indent=""):
        console().print(escape(line), soft_wrap=True)
    return ExitCode.VERIFIED


@app.command
def create(
    url: str,
    *,
    project: tuple[str, ...] = (),
    loop: str | None = None,
    type: tuple[str, ...] = (),
    json: bool = False,
) -> int:
    """Send events from now on to a receiver, and print the secret that signs them once.

    Parameters
    ----------
    url
        Where to send them.
    project
        The id of a project; repeat it for several. Without it, all of them.
    loop
        The id of the one loop whose events are sent.
    type
        A type of event, such as plan_verified; repeat it for several. Without it, all of them.
    json
        Print it as JSON.
    """
    made = _with_home(
        lambda at, caller: receivers.create_webhook(at, caller, url, projects=project, loop=loop, types=type)
    )
    if json:
        print_json({**_shown(made.view), "secret": made.secret})
    else:
        console().print(escape(made.view.id))
        console().print(escape(made.secret), soft_wrap=True)
        told = (
            "the second line signs every message and is not shown again; the daemon (`loopwright up`) sends"
        )
        console(stderr=True).print(told, markup=False)
    return ExitCode.VERIFIED


@app.command
def dead(webhook: str, *, json: bool = False) -> int:
    """List the events that a receiver refused.

    Parameters
    ----------
    webhook
        The id of the webhook.
    json
        Print them as JSON.
    """
    found = _with_home(lambda at, caller: receivers.dead_letters(at, caller, webhook))
    if json:
        shown = [{name: getattr(one, name) for name in ("n", "type", "error", "failures")} for one in found]
        print_json({"dead_letters": shown})
        return ExitCode.VERIFIED
    for line in columns([(str(one.n), one.type, one.error) for one in found], indent=""):
        console().print(escape(line))
    if not found:
        console().print("there are no dead letters")
    return ExitCode.VERIFIED


@app.command
def replay(webhook: str) -> int:
    """Send the dead letters of a webhook again, in their order, and turn it on if it is off.

    Parameters
    ----------
    webhook
        The id of the webhook.
    """
    now = _with_home(lambda at, caller: receivers.replay(at, caller, webhook))
    console().print(escape(f"the daemon sends {now.dead} dead letters again, and then what waits"))
    return ExitCode.VERIFIED


@app.command
def remove(webhook: str) -> int:
    """Remove a webhook and its dead letters.

    Parameters
    ----------
    webhook
        The id of the webhook.
    """
    _with_home(lambda at, caller: receivers.remove_webhook(at, caller, webhook))
    console().print(escape(f"{webhook} is removed"))
    return ExitCode.VERIFIED


def _with_home(work: Callable[[Session, Caller], Awaitable[T]]) -> T:
    async def call() -> T:
        async with opened(look_settings()) as at:
            return await work(at, OWNER)

    return asyncio.run(call())


def _shown(view: WebhookView) -> dict[str, object]:
    names = ("id", "url", "projects", "loop", "types", "status", "error", "behind", "dead")
    return {name: getattr(view, name) for name in names}
