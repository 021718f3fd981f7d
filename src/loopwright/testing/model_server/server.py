"""The HTTP server: finds the protocol by the path, the turn by the request, and sends what the protocol says."""

import json
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit
from uuid import uuid4

from loopwright.testing.model_server import anthropic, chat, gemini, responses
from loopwright.testing.model_server.scenario import Flaky, Rejection, Reply, Scenario, Trouble
from loopwright.testing.model_server.wire import REQUEST_ID, CannotSay, Event, Frame, Json, Request, Wire


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where a protocol is spoken; what stands before in the path is the user's choice."""

    path: str
    wire: Wire
    list_unless: str = ""
    """A stream is one list that grows, unless the query says this."""


ROUTES: Final = (
    Route(path=r"/v1/messages$", wire=anthropic),
    Route(path=r"/responses$", wire=responses),
    Route(path=r"/chat/completions$", wire=chat),
    Route(path=r"/models/[^/]+:(?:streamG|g)enerateContent$", wire=gemini, list_unless="alt=sse"),
)

_COUNTS: Final[Mapping[str, Json]] = {
    "/count_tokens": {"input_tokens": 100},
    ":countTokens": {"totalTokens": 100},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request that the server got."""

    path: str
    model: str
    prompt: str
    answered: int
    headers: Mapping[str, str]
    """With names in lower case."""
    body: Json
    """The whole request: which tools were offered, and which instructions given."""


class ModelServer:
    """Plays a scenario while it is entered as a context."""

    def __init__(
        self, scenario: Scenario, *, port: int = 0, heard: Callable[[Asked], None] | None = None
    ) -> None:
        self.scenario = scenario
        self._heard = heard
        self._asked: list[Asked] = []
        self._failed: Counter[tuple[int, bool]] = Counter()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._http = _Http(("127.0.0.1", port), _Handler)
        self._http.played_by = self
        # A short poll, because leaving the context waits for one.
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """The address to give to the agent."""
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def asked(self) -> tuple[Asked, ...]:
        """All requests for an answer so far."""
        with self._lock:
            return tuple(self._asked)

    def note(self, asked: Asked) -> None:
        """Remember a request for the test."""
        with self._lock:
            self._asked.append(asked)
        if self._heard is not None:
            self._heard(asked)

    def turn(self, request: Request) -> Reply | Rejection | Trouble:
        """Return the turn that is due."""
        turn = self.scenario.turn(request.prompt, request.answered, has_tools=request.has_tools)
        if not isinstance(turn, Flaky):
            return turn
        # Not by what was said: an agent that resumes after the refusal says something else.
        place = (id(turn), request.has_tools)
        with self._lock:
            self._failed[place] += 1
            return turn.then if self._failed[place] > turn.times else turn.fails

    def pause(self, seconds: float) -> None:
        """Wait, but not beyond the end of the server."""
        if seconds > 0:
            self._closing.wait(seconds)

    def __enter__(self) -> Self:
        """Begin to serve."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop serving."""
        self._closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    played_by: ModelServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report what went wrong, but for an agent that was killed in the middle of an answer."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def do_HEAD(self) -> None:
        """Answer a health check."""
        self._head(200, {"content-length": "0"})

    def do_GET(self) -> None:
        """List a model; any name is served."""
        path = urlsplit(self.path).path
        if path.endswith("/models"):
            model = {"id": "scripted", "object": "model", "type": "model", "display_name": "Scripted"}
            self._json(200, {"object": "list", "data": [model], "models": [], "has_more": False})
        else:
            self._nothing_here(path)

    def do_POST(self) -> None:
        """Answer a request for a message."""
        address, body = urlsplit(self.path), self._body()
        for route in ROUTES:
            if re.search(route.path, address.path):
                as_events = route.list_unless in address.query
                self._answer(route.wire, address.path, body, as_events=as_events)
                return
        for end, count in _COUNTS.items():
            if address.path.endswith(end):
                self._json(200, count)
                return
        self._nothing_here(address.path)

    def _nothing_here(self, path: str) -> None:
        missing = Rejection(status=404, kind="not_found_error", message=f"there is no {path} here")
        self._json(404, anthropic.error(missing))

    def _body(self) -> Json:
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        else:
            raw = b"".join(self._chunks())
        value = json.loads(raw or b"{}")
        return value if isinstance(value, dict) else {}

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().strip() or b"0", 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _answer(self, wire: Wire, path: str, body: Json, *, as_events: bool) -> None:
        player, request = self.server.played_by, wire.read(path, body)
        frame = Frame(id=uuid4().hex[:20], model=request.model, at=int(time.time()))
        player.note(
            Asked(
                path=path,
                model=request.model,
                prompt=request.prompt,
                answered=request.answered,
                headers={name.lower(): value for name, value in self.headers.items()},
                body=body,
            )
        )
        turn = player.turn(request)
        if isinstance(turn, Reply):
            try:
                reply = wire.reply(turn, frame)
            except CannotSay as problem:
                self._json(500, wire.error(Rejection(status=500, kind="scenario", message=str(problem))))
                return
            player.pause(turn.delay_s)
            if not request.stream:
                self._json(200, reply, turn.headers)
            else:
                self._stream(wire.stream(reply), turn.headers, pace_s=turn.pace_s, as_events=as_events)
            return
        refusal = wire.rejection(turn, frame) if isinstance(turn, Trouble) else turn
        if refusal.in_stream and request.stream:
            self._stream(wire.broken(refusal, frame), refusal.headers, as_events=as_events)
        else:
            self._json(refusal.status, wire.error(refusal), refusal.headers)

    def _json(self, status: int, value: Json, headers: Mapping[str, str] | None = None) -> None:
        content = json.dumps(value).encode()
        self._head(status, {"content-type": "application/json", "content-length": str(len(content))}, headers)
        self.wfile.write(content)

    def _stream(
        self, events: Iterator[Event], headers: Mapping[str, str], *, as_events: bool, pace_s: float = 0.0
    ) -> None:
        kind = "text/event-stream" if as_events else "application/json"
        self._head(200, {"content-type": kind, "transfer-encoding": "chunked"}, headers)
        for piece in _as_events(events) if as_events else _as_list(events):
            data = piece.encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            self.wfile.flush()
            self.server.played_by.pause(pace_s)
        self.wfile.write(b"0\r\n\r\n")

    def _head(self, status: int, ours: Mapping[str, str], headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"request-id": REQUEST_ID, **ours, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()


def _as_events(events: Iterator[Event]) -> Iterator[str]:
    for event in events:
        name = f"event: {event.name}\n" if event.name else ""
        data = event.data if isinstance(event.data, str) else json.dumps(event.data)
        yield f"{name}data: {data}\n\n"


def _as_list(events: Iterator[Event]) -> Iterator[str]:
    before = "["
    for event in events:
        yield before + json.dumps(event.data)
        before = ","
    yield "]"
