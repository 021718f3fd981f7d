"""The request log, one line of JSON for each request, and counters for `/metrics`.

No line has a token, a query or a body: a path is written as its template.
"""

import logging
import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import Final
from uuid import uuid4

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from loopwright.core.values.access import Caller
from loopwright.services.homes.log import REQUESTS

REQUEST_ID: Final = "x-request-id"
UNKNOWN: Final = "unknown"
"""The template of a path that no endpoint has."""
_BOUNDS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")

log = logging.getLogger(REQUESTS)


class Figures:
    """Counts requests and how long they took."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.under: Counter[float] = Counter()
        self.seconds = 0.0
        self.open = 0

    def note(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count a request that ended."""
        self.requests[method, path, status] += 1
        self.seconds += seconds
        for bound in _BOUNDS_S:
            if seconds <= bound:
                self.under[bound] += 1

    def lines(self) -> Iterator[str]:
        """Yield the counters in the text format of Prometheus."""
        name = "loopwright_http_requests_total"
        yield from (f"# HELP {name} Requests by endpoint and status.", f"# TYPE {name} counter")
        for (method, path, status), count in sorted(self.requests.items()):
            yield f'{name}{{method="{method}",path="{path}",status="{status}"}} {count}'
        name, total = "loopwright_http_request_seconds", self.requests.total()
        yield from (f"# HELP {name} How long requests took.", f"# TYPE {name} histogram")
        for bound in _BOUNDS_S:
            yield f'{name}_bucket{{le="{bound}"}} {self.under[bound]}'
        yield f'{name}_bucket{{le="+Inf"}} {total}'
        yield from (f"{name}_sum {self.seconds:.6f}", f"{name}_count {total}")
        name = "loopwright_http_open_requests"
        yield from (f"# HELP {name} Requests and streams that are open.", f"# TYPE {name} gauge")
        yield f"{name} {self.open}"


class Journal:
    """The outermost middleware: gives each request an id, and notes its end."""

    def __init__(self, app: ASGIApp, *, figures: Figures) -> None:
        self._app = app
        self._figures = figures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, and log its result."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _given_id(scope) or uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        status = 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*_more(message, request_id)]}
            await send(message)

        began = time.monotonic()
        self._figures.open += 1
        try:
            await self._app(scope, receive, noted)
        finally:
            self._figures.open -= 1
            self._note(scope, request_id, status, time.monotonic() - began)

    def _note(self, scope: Scope, request_id: str, status: int, seconds: float) -> None:
        caller: Caller | None = scope["state"].get("caller")
        path = getattr(scope.get("route"), "path", UNKNOWN)
        # A client can send any word as its method.
        method = scope["method"] if path != UNKNOWN else "ANY"
        self._figures.note(method, path, status, seconds)
        facts = {
            "request_id": request_id,
            "method": scope["method"],
            "path": path,
            "status": status or None,
            "duration_ms": round(seconds * 1000, 3),
            "token": caller.name if caller else None,
            "client": (scope.get("client") or (None,))[0],
        }
        log.info("request", extra=facts)


def _given_id(scope: Scope) -> str | None:
    given = next((value for name, value in scope["headers"] if name == REQUEST_ID.encode()), b"")
    text: str = given.decode("latin-1")
    return text if _ID.fullmatch(text) else None


def _more(message: Message, request_id: str) -> Iterator[tuple[bytes, bytes]]:
    headers = [(name.lower(), value) for name, value in message.get("headers", ())]
    yield from headers
    yield REQUEST_ID.encode(), request_id.encode()
    yield b"x-content-type-options", b"nosniff"
    if not any(name == b"cache-control" for name, _ in headers):
        yield b"cache-control", b"private, no-cache"
