"""The checks that every request passes first: host, origin, size, time and token."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from loopwright.core.values.access import Caller
from loopwright.core.values.errors import LoopwrightError
from loopwright.server.problems import HttpProblem, of_defect, of_error, of_http
from loopwright.services.access.tokens import Origin

LARGEST_BODY: Final = 1 << 20
LARGEST_HEAD: Final = 16 << 10
LONGEST_ADDRESS: Final = 8 << 10
OPEN_PATHS: Final = frozenset({"/healthz", "/readyz", "/login"})
"""Paths that need no token: they tell nothing about projects."""
OPEN_FOLDER: Final = "/static/"
"""The files of the pages need no token either."""
RUN_HEADER: Final = "loopwright-run"
"""The header with the run that a request was sent from."""
COOKIE: Final = "loopwright_token"
"""The cookie that a browser signs in with."""
_FAILURES: Final = 10
_WINDOW_S: Final = 60.0
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})

FindCaller = Callable[[str, Origin], Awaitable[Caller | None]]


class FailedLogins:
    """Counts wrong tokens per client, which makes guessing slow. A valid token always passes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, deque[float]] = {}

    def note(self, client: str) -> float:
        """Count one failure; return how many seconds the client has to wait, 0 while it may try again."""
        now = self._clock()
        seen = self._seen.setdefault(client, deque())
        while seen and seen[0] <= now - _WINDOW_S:
            seen.popleft()
        if len(seen) >= _FAILURES:
            return _WINDOW_S - (now - seen[0])
        seen.append(now)
        if len(self._seen) > 10_000:
            self._forget(now)
        return 0.0

    def _forget(self, now: float) -> None:
        self._seen = {
            client: seen for client, seen in self._seen.items() if seen and seen[-1] > now - _WINDOW_S
        }


class Guard:
    """Middleware in front of everything: refuses with a problem document, or hands the request on with its caller."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        find_caller: FindCaller,
        hosts: Collection[str],
        failed: FailedLogins,
        body_s: float,
    ) -> None:
        self._app = app
        self._body_s = body_s
        self._find_caller = find_caller
        self._hosts = frozenset(one.lower() for one in hosts)
        self._failed = failed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = _headers(scope)
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            body = await self._checked(scope, headers, receive)
            await self._app(scope, replayed(body, receive), watched)
        except HttpProblem as refused:
            await _reply_to(refused, scope, headers)(scope, receive, send)
        except LoopwrightError as failed:  # the database may be away
            if started:
                raise
            await of_error(failed)(scope, receive, send)
        except Exception as defect:  # the boundary: a defect ends one request, and the log says more
            if started:
                raise
            await of_defect(defect, scope["state"]["request_id"])(scope, receive, send)

    async def _checked(self, scope: Scope, headers: Mapping[str, str], receive: Receive) -> bytes:
        """Return the body of a request that may be carried out."""
        _check_head(scope)
        self._check_host(headers)
        self._check_origin(headers, scope["method"])
        _check_length(headers)
        if scope["path"] not in OPEN_PATHS and not scope["path"].startswith(OPEN_FOLDER):
            scope["state"]["caller"] = await self._caller(scope, headers)
        try:
            async with asyncio.timeout(self._body_s):
                return await whole(receive)
        except TimeoutError as late:
            raise HttpProblem(
                "body_too_slow",
                f"the body did not arrive within {self._body_s:g} s",
                headers={"Connection": "close"},
            ) from late

    def _check_host(self, headers: Mapping[str, str]) -> None:
        """Refuse an unknown host name: a hostile page can point its own name at this server (DNS rebinding)."""
        host = _without_port(headers.get("host", ""))
        if "*" not in self._hosts and host not in self._hosts:
            raise HttpProblem(
                "host_wrong",
                f"this server does not answer to the host {host!r}",
                hint="use the address that `loopwright up` printed, or add the host with --host-name",
            )

    def _check_origin(self, headers: Mapping[str, str], method: str) -> None:
        """Refuse a change that a page of another site requests."""
        origin = headers.get("origin")
        if origin is None or method in _SAFE:
            return
        host = origin.partition("://")[2]
        if host != headers.get("host"):
            raise HttpProblem("origin_wrong", f"the origin {origin!r} may not change anything here")

    async def _caller(self, scope: Scope, headers: Mapping[str, str]) -> Caller:
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer":
            token = _cookie(headers) if _is_from_here(headers, scope["method"]) else ""
        origin = Origin(
            run_id=headers.get(RUN_HEADER) or None, client=scope.get("client"), server=scope.get("server")
        )
        caller = await self._find_caller(token.strip(), origin) if token.strip() else None
        if caller is not None:
            return caller
        client = (scope.get("client") or ("unknown", 0))[0]
        wait = self._failed.note(client) if token.strip() else 0.0  # one without a token guesses nothing
        if wait > 0:
            raise HttpProblem(
                "too_many_failed_logins",
                f"too many requests with a wrong token; try again in {wait:.0f} s",
                headers={"Retry-After": str(int(wait) + 1)},
            )
        raise HttpProblem(
            "token_missing" if not token else "token_unknown",
            "this request needs a valid token in the header `Authorization: Bearer TOKEN`",
            hint="`loopwright tokens` makes one",
            headers={"WWW-Authenticate": "Bearer"},
        )


async def whole(receive: Receive) -> bytes:
    """Return the body of a request, unless it is too large."""
    pieces: list[bytes] = []
    while True:
        message = await receive()
        pieces.append(message.get("body", b""))
        if sum(map(len, pieces)) > LARGEST_BODY:
            raise _too_large()
        if not message.get("more_body", False):
            return b"".join(pieces)


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return the body again, then wait for the client to leave."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _check_head(scope: Scope) -> None:
    address = len(scope["path"]) + len(scope.get("query_string", b""))
    if address > LONGEST_ADDRESS:
        raise HttpProblem(
            "address_too_long",
            f"the address of a request may have at most {LONGEST_ADDRESS} bytes",
        )
    if sum(len(name) + len(value) for name, value in scope["headers"]) > LARGEST_HEAD:
        raise HttpProblem(
            "head_too_large",
            f"the headers of a request may have at most {LARGEST_HEAD} bytes",
        )


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def _cookie(headers: Mapping[str, str]) -> str:
    pairs = (pair.strip().partition("=") for pair in headers.get("cookie", "").split(";"))
    return next((value for name, _, value in pairs if name == COOKIE), "")


def _is_from_here(headers: Mapping[str, str], method: str) -> bool:
    """Return whether a cookie counts: a change must come from a page of this server."""
    if method in _SAFE:
        return True
    # The origin was compared with the host before; a browser sends one with every change.
    return "origin" in headers or headers.get("sec-fetch-site") == "same-origin"


def _reply_to(refused: HttpProblem, scope: Scope, headers: Mapping[str, str]) -> ASGIApp:
    """Return the reply to a refused request: a browser without a session gets the sign-in form."""
    is_page = "text/html" in headers.get("accept", "") and not scope["path"].startswith("/api/")
    if refused.status is HTTPStatus.UNAUTHORIZED and is_page and scope["method"] == "GET":
        wanted = quote(
            scope["path"] + ("?" + scope["query_string"].decode() if scope["query_string"] else "")
        )
        return RedirectResponse(f"/login?next={wanted}", status_code=303)
    return of_http(refused)


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0].lstrip("[")
    return host.partition(":")[0].lower()


def _check_length(headers: Mapping[str, str]) -> None:
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > LARGEST_BODY:
        raise _too_large()


def _too_large() -> HttpProblem:
    return HttpProblem(
        "body_too_large",
        f"the body of a request may have at most {LARGEST_BODY} bytes",
    )
