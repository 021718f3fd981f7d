"""What endpoints get: the open home, the feed of events, and the caller with the scope that the endpoint needs."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Header, Query, Request

from loopwright.core.values.access import Caller, Scope
from loopwright.core.values.errors import NotAllowed
from loopwright.server.feed import Feed
from loopwright.server.journal import Figures
from loopwright.server.links import LoginLinks
from loopwright.services.homes.caller import Expected, expect_version
from loopwright.services.homes.session import Session
from loopwright.services.remote.pages import LARGEST, USUAL, Asked
from loopwright.services.roles.delegating import Orchestrators


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Time limits for clients."""

    unread_s: float = 20.0
    """To read a part of a stream."""
    body_s: float = 30.0
    """To send the body of a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """The home that is served."""

    at: Session
    feed: Feed
    figures: Figures
    limits: Limits
    orchestrators: Orchestrators
    links: LoginLinks = field(default_factory=LoginLinks)


async def _served(request: Request) -> Served:
    served: Served = request.app.state.served
    return served


def _allowed(scope: Scope) -> Callable[[Request], Awaitable[Caller]]:
    async def check(request: Request) -> Caller:
        caller: Caller = request.state.caller
        if not caller.may(scope):
            raise NotAllowed(
                f"this needs a token with the scope `{scope}`; yours has `{caller.scope}`",
                code="scope_missing",
            )
        return caller

    return check


async def _matching(
    request: Request,
    caller: Annotated[Caller, Depends(_allowed(Scope.OPERATE))],
    if_match: Annotated[
        str | None,
        Header(
            max_length=200,
            description="The ETag that you saw. If it has changed since, the reply is 412 and nothing happens.",
        ),
    ] = None,
) -> Caller:
    """Return the caller; the change is refused if the caller saw another version."""
    version = (if_match or "").strip().removeprefix("W/").strip('"')
    is_any = not version or version == "*"
    loop_id = request.path_params.get("loop_id")
    expect_version(None if is_any else Expected(version=version, loop_id=loop_id))
    return caller


async def _asked(
    after: Annotated[str, Query(max_length=500, description="`next` of the page before.")] = "",
    limit: Annotated[int, Query(ge=1, le=LARGEST)] = USUAL,
) -> Asked:
    return Asked(after=after, limit=limit)


Home = Annotated[Served, Depends(_served)]
Reader = Annotated[Caller, Depends(_allowed(Scope.READ))]
Operator = Annotated[Caller, Depends(_allowed(Scope.OPERATE))]
Paging = Annotated[Asked, Depends(_asked)]
Writer = Annotated[Caller, Depends(_matching)]
"""An operator that may name the version to change."""
Admin = Annotated[Caller, Depends(_allowed(Scope.ADMIN))]
