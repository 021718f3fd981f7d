"""`tokens`: who may use the daemon over HTTP."""

import asyncio
from typing import Literal

from cyclopts import App
from rich.markup import escape

from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.lines import columns
from loopwright.cli.shell.output import console, print_json
from loopwright.core.values.access import Scope
from loopwright.services.access import tokens as service
from loopwright.services.access.tokens import NewToken, Token
from loopwright.services.homes.context import look_settings
from loopwright.services.homes.session import opened

app = App(
    name="tokens", help="List, make or revoke the tokens for the daemon's API.", help_format="plaintext"
)


@app.default
def tokens(*, json: bool = False) -> int:
    """List the tokens; the tokens themselves are stored nowhere.

    Parameters
    ----------
    json
        Print them as JSON.
    """

    async def load() -> tuple[Token, ...]:
        async with opened(look_settings()) as at:
            return await service.list_tokens(at)

    found = asyncio.run(load())
    if json:
        shown = [{name: getattr(one, name) for name in ("id", "name", "scope", "projects")} for one in found]
        print_json({"tokens": shown})
        return ExitCode.VERIFIED
    rows = [
        (
            one.name,
            one.scope.value,
            "revoked"
            if one.revoked_at
            else f"{len(one.projects)} projects"
            if one.projects
            else "all projects",
            one.id,
        )
        for one in found
    ]
    if not found:
        console().print("there are no tokens; create one with `loopwright tokens create NAME`")
    for line in columns(rows, indent=""):
        console().print(escape(line))
    return ExitCode.VERIFIED


@app.command
def create(
    name: str,
    *,
    scope: Literal["read", "operate", "admin"] = "read",
    project: tuple[str, ...] = (),
    json: bool = False,
) -> int:
    """Make a token and print it once.

    Parameters
    ----------
    name
        What the record calls its holder.
    scope
        read: see; operate: also start, steer and answer; admin: also define commands and tokens.
    project
        The id of a project that it may see; repeat it for several. Without it, all of them.
    json
        Print it as JSON.
    """

    async def make() -> NewToken:
        async with opened(look_settings()) as at:
            return await service.create_token(at, name, scope=Scope(scope), projects=project)

    made = asyncio.run(make())
    if json:
        print_json({"id": made.row.id, "name": made.row.name, "token": made.text})
    else:
        console().print(escape(made.text), soft_wrap=True)
    return ExitCode.VERIFIED


@app.command
def revoke(token: str) -> int:
    """Revoke a token: the next request with it is refused.

    Parameters
    ----------
    token
        The id or the name of the token.
    """

    async def end() -> Token:
        async with opened(look_settings()) as at:
            known = await service.list_tokens(at)
            named = [one.id for one in known if one.name == token and one.revoked_at is None]
            return await service.revoke_token(at, named[0] if named else token)

    console().print(escape(f"{asyncio.run(end()).name} is revoked"))
    return ExitCode.VERIFIED
