"""`Idempotency-Key`: a repeated request gets the first reply again and does nothing."""

from http import HTTPStatus
from typing import Final
from uuid import uuid4

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from loopwright.core.values.access import Caller
from loopwright.core.values.errors import LoopwrightError, Refused
from loopwright.server.guard import replayed, whole
from loopwright.server.problems import MEDIA_TYPE, HttpProblem, of_error, of_http
from loopwright.services.access import replies
from loopwright.services.homes.session import Session

_HEADER: Final = b"idempotency-key"
_LONGEST: Final = 200


class Repeats:
    """Middleware behind the guard that keeps the replies to requests with a key."""

    def __init__(self, app: ASGIApp, *, at: Session) -> None:
        self._app = app
        self._at = at
        self._me = uuid4().hex
        self._running: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Carry one request out, or give its first reply again."""
        caller: Caller | None = scope.get("state", {}).get("caller") if scope["type"] == "http" else None
        key = next((value for name, value in scope.get("headers", ()) if name == _HEADER), None)
        if caller is None or key is None or scope["method"] not in ("POST", "PUT", "PATCH", "DELETE"):
            await self._app(scope, receive, send)
            return
        if not 0 < len(key) <= _LONGEST:
            raise HttpProblem("idempotency_key_wrong", f"an Idempotency-Key has 1 to {_LONGEST} characters")
        body = await whole(receive)
        path = scope["path"] + "?" + scope.get("query_string", b"").decode("latin-1")
        request = replies.Request(
            token_id=caller.token_id,
            key=key.decode("latin-1"),
            method=scope["method"],
            path=path,
            body=body,
        )
        if request.id in self._running:
            running = Refused(
                "the first request with this Idempotency-Key is still running", code="request_running"
            )
            await of_error(running)(scope, receive, send)
            return
        self._running.add(request.id)
        try:
            known = await replies.begin(self._at, request, self._me)
            if known is not None:
                await _again(known.status, known.body)(scope, receive, send)
            else:
                await self._first(request, scope, receive, send, body)
        except LoopwrightError as failed:
            await of_error(failed)(scope, receive, send)
        finally:
            self._running.discard(request.id)

    async def _first(
        self, request: replies.Request, scope: Scope, receive: Receive, send: Send, body: bytes
    ) -> None:
        sent = _Recorded(send)
        await self._app(scope, replayed(body, receive), sent)
        # Kept before the client has it: a client that got a reply gets the same one again. How far a request came
        # that the server failed is unknown, and its repeat says so.
        if sent.status < HTTPStatus.INTERNAL_SERVER_ERROR:
            status, text = (sent.status, sent.body.decode()) if not sent.is_secret else _secret()
            await replies.keep(self._at, request, status, text)
        await sent.flush()


class _Recorded:
    """Holds a reply back until it is kept."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._held: list[Message] = []
        self.status = 0
        self.body = b""
        self.is_secret = False
        """Whether the reply may be stored nowhere."""

    async def __call__(self, message: Message) -> None:
        """Take a part of the reply."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.is_secret = (b"cache-control", b"no-store") in message.get("headers", ())
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")
        self._held.append(message)

    async def flush(self) -> None:
        """Send what was held back."""
        for message in self._held:
            await self._send(message)


def _secret() -> tuple[int, str]:
    refused = of_http(
        HttpProblem(
            "reply_not_kept",
            "this request was carried out already; its reply contained a secret, so it was not kept",
        )
    )
    return refused.status_code, bytes(refused.body).decode()


def _again(status: int, body: str) -> Response:
    kind = MEDIA_TYPE if status >= HTTPStatus.BAD_REQUEST else "application/json"
    return Response(body, status_code=status, media_type=kind, headers={"Idempotency-Replayed": "true"})
