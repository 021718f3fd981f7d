"""`tokens`: who may use the daemon over HTTP."""

import asyncio
from typing import Annotated, Final, Literal

from cyclopts import App, Parameter
from cyclopts.validators import Number
from rich.markup import escape

from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.lines import columns
from loopwright.cli.shell.output import console, print_json
from loopwright.core.values.access import Scope
from loopwright.core.values.wording import dollars
from loopwright.services.access import tokens as service
from loopwright.services.access.tokens import NewToken, TokenView
from loopwright.services.homes.context import look_settings
from loopwright.services.homes.session import Session, opened

app = App(
    name="tokens", help="List, make or revoke the tokens for the daemon's API.", help_format="plaintext"
)


_SHOWN: Final = ("id", "name", "scope", "projects", "limit_micros", "nesting")


@app.default
def tokens(*, json: bool = False) -> int:
    """List the tokens; the tokens themselves are stored nowhere.

    Parameters
    ----------
    json
        Print them as JSON.
    """

    async def load() -> tuple[TokenView, ...]:
        async with opened(look_settings()) as at:
            return await service.list_tokens(at)

    found = asyncio.run(load())
    if json:
        shown = [{name: getattr(one.row, name) for name in _SHOWN} for one in found]
        spent = [one.spent_micros for one in found]
        print_json(
            {"tokens": [{**one, "spent_micros": sum_} for one, sum_ in zip(shown, spent, strict=True)]}
        )
        return ExitCode.VERIFIED
    rows = [
        (
            one.row.name,
            one.row.scope.value,
            "revoked"
            if one.row.revoked_at
            else f"{len(one.row.projects)} projects"
            if one.row.projects
            else "all projects",
            _limits(one),
            one.row.id,
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
    spending_limit: str | None = None,
    nesting: Annotated[int | None, Parameter(validator=Number(gte=0, lte=100))] = None,
    steer: bool = False,
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
    spending_limit
        Dollars that everything created with it may cost together. It then continues only its own work.
    nesting
        How many levels of loops may be created with it from inside each other: an agent with a token of depth 1 may
        create loops, and the agents in those may not.
    steer
        With a spending limit or a nesting depth: let it also continue work that was not created with it.
    json
        Print it as JSON.
    """

    async def make() -> NewToken:
        async with opened(look_settings()) as at:
            return await service.create_token(
                at, name, scope=Scope(scope), projects=project, limit=most, nesting=nesting, steers=steer
            )

    most = service.read_limit(spending_limit or "off")
    made = asyncio.run(make())
    if json:
        print_json({"id": made.view.row.id, "name": made.view.row.name, "token": made.text})
    else:
        console().print(escape(made.text), soft_wrap=True)
    return ExitCode.VERIFIED


@app.command
def limit(token: str, amount: str) -> int:
    """Set what everything that is created with a token may cost together; it accepts what was spent so far.

    Parameters
    ----------
    token
        The id or the name of the token.
    amount
        Dollars, or `off`.
    """

    async def change() -> TokenView:
        async with opened(look_settings()) as at:
            return await service.set_limit(at, await _id_of(at, token), micros)

    micros = service.read_limit(amount)
    changed = asyncio.run(change())
    console().print(escape(f"{changed.row.name}: {_limits(changed) or 'no spending limit'}"))
    return ExitCode.VERIFIED


@app.command
def revoke(token: str) -> int:
    """Revoke a token: the next request with it is refused.

    Parameters
    ----------
    token
        The id or the name of the token.
    """

    async def end() -> TokenView:
        async with opened(look_settings()) as at:
            return await service.revoke_token(at, await _id_of(at, token))

    console().print(escape(f"{asyncio.run(end()).row.name} is revoked"))
    return ExitCode.VERIFIED


async def _id_of(at: Session, token: str) -> str:
    known = await service.list_tokens(at)
    named = [one.row.id for one in known if one.row.name == token and one.row.revoked_at is None]
    return named[0] if named else token


def _limits(one: TokenView) -> str:
    """Return the spending limit and the nesting depth of a token in words."""
    limit_, depth = one.row.limit_micros, one.row.nesting
    spent = "" if limit_ is None else f"{dollars(one.spent_micros or 0)} of {dollars(limit_)} spent"
    return ", ".join(filter(None, (spent, "" if depth is None else f"nesting {depth}")))
