"""What endpoints get: the open home, the feed of events, and the caller with the scope that the endpoint needs."""

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, Request

from loopwright.core.values.access import Caller, Scope
from loopwright.server.feed import Feed
from loopwright.server.problems import HttpProblem
from loopwright.services.homes.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """The home that is served."""

    at: Session
    feed: Feed


def _served(request: Request) -> Served:
    served: Served = request.app.state.served
    return served


def _allowed(scope: Scope) -> Callable[[Request], Caller]:
    def check(request: Request) -> Caller:
        caller: Caller = request.state.caller
        if not caller.may(scope):
            raise HttpProblem(
                HTTPStatus.FORBIDDEN,
                "scope_missing",
                f"this needs a token with the scope `{scope}`; yours has `{caller.scope}`",
            )
        return caller

    return check


Home = Annotated[Served, Depends(_served)]
Reader = Annotated[Caller, Depends(_allowed(Scope.READ))]
Operator = Annotated[Caller, Depends(_allowed(Scope.OPERATE))]
Admin = Annotated[Caller, Depends(_allowed(Scope.ADMIN))]
