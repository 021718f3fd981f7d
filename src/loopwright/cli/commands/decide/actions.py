"""`actions`: what agents did to loops with their tools, and undoing it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from cyclopts import App
from rich.markup import escape

from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json
from loopwright.core.values.access import OWNER
from loopwright.core.values.states import ActionState
from loopwright.core.values.wording import to_type
from loopwright.services.homes.context import look_settings
from loopwright.services.homes.session import Session, opened
from loopwright.services.projects import projects
from loopwright.services.remote import actions as service
from loopwright.services.remote.actions import Action

T = TypeVar("T")
app = App(
    name="actions",
    help="List what agents did to loops with their tools, with their reasons, or undo one.",
    help_format="plaintext",
)


@app.default
def actions(*, all: bool = False, json: bool = False) -> int:
    """List what agents did to the loops of this project, the newest first.

    Parameters
    ----------
    all
        List what they did in every project.
    json
        Print it as JSON.
    """
    here = None if all else projects.known_here()
    found = _with_home(lambda at: service.list_actions(at, OWNER, here.id if here is not None else None))
    if json:
        print_json({"actions": found})
        return ExitCode.VERIFIED
    if not found:
        console().print("no agent has changed a loop here")
    for one in found:
        for line in _lines(one):
            console().print(escape(line), soft_wrap=True)
    return ExitCode.VERIFIED


@app.command
def undo(action: str, /) -> int:
    """Undo what an agent did.

    Parameters
    ----------
    action
        Which: its id.
    """
    done = _with_home(lambda at: service.undo(at, OWNER, action))
    console().print(escape(f"undone: {done.result}"))
    return ExitCode.VERIFIED


def _lines(one: Action) -> list[str]:
    lines = [
        f"{one.created_at:%Y-%m-%d %H:%M}  {one.kind}  {one.state.value.lower()}  by {one.actor}",
        f"  {one.result}",
        f"  why: {one.reason}",
    ]
    if one.state is ActionState.DONE:
        lines.append(f"  {to_type('actions', 'undo', one.id)}")
    return lines


def _with_home(work: Callable[[Session], Awaitable[T]]) -> T:
    async def call() -> T:
        async with opened(look_settings()) as at:
            return await work(at)

    return asyncio.run(call())
