"""A model server on the loopback address that plays a scenario: real agent programs can be run against it.

It speaks the Anthropic Messages API with streaming and tool calls. It remembers nothing between requests:
which turn is due is seen from the request itself, by counting the tool results after the last words of the
user. So it serves resumed and concurrent conversations alike.
"""

import json
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self
from uuid import uuid4

_USAGE: Final[Mapping[str, int]] = {
    "input_tokens": 120,
    "cache_creation_input_tokens": 10,
    "cache_read_input_tokens": 50,
    "output_tokens": 25,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool that the model wants to have run."""

    name: str
    input: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A turn in which the model answers."""

    text: str = ""
    tools: tuple[ToolCall, ...] = ()
    stop_reason: str | None = None
    usage: Mapping[str, int] = field(default_factory=lambda: dict(_USAGE))
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A turn in which the service refuses."""

    status: int
    kind: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)


Turn = Reply | Rejection


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What the model does. The last turn is repeated for as long as it is asked."""

    turns: tuple[Turn, ...]
    by_prompt: Mapping[str, tuple[Turn, ...]] = field(default_factory=dict)
    """Other turns for conversations whose last user words contain a text."""

    def turn(self, prompt: str, answered: int) -> Turn:
        """Return the turn that is due after so many rounds of tool results."""
        special = (turns for text, turns in self.by_prompt.items() if text in prompt)
        turns = next(special, self.turns)
        return turns[min(answered, len(turns) - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request that the server got."""

    path: str
    model: str
    prompt: str
    answered: int
    headers: Mapping[str, str]
    """With names in lower case."""


class ModelServer:
    """Plays a scenario while it is entered as a context."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self._asked: list[Asked] = []
        self._lock = threading.Lock()
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.played_by = self
        # A short poll, because leaving the context waits for one.
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """The address to give to the agent."""
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def asked(self) -> tuple[Asked, ...]:
        """All requests for a message so far."""
        with self._lock:
            return tuple(self._asked)

    def note(self, asked: Asked) -> None:
        """Remember a request for whoever tests with it."""
        with self._lock:
            self._asked.append(asked)

    def __enter__(self) -> Self:
        """Begin to serve."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop serving."""
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
        """Answer a look whether anybody is there."""
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        """Answer a request for a message."""
        body = self._body()
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            self._json(200, {"input_tokens": 100})
        elif path.endswith("/v1/messages"):
            self._message(path, body)
        else:
            self._json(404, _error("not_found_error", f"there is no {path} here"))

    def _body(self) -> dict[str, Any]:
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

    def _message(self, path: str, body: dict[str, Any]) -> None:
        prompt, answered = _position(body)
        player, model = self.server.played_by, str(body.get("model", ""))
        headers = {name.lower(): value for name, value in self.headers.items()}
        player.note(Asked(path=path, model=model, prompt=prompt, answered=answered, headers=headers))
        match player.scenario.turn(prompt, answered):
            case Rejection() as turn:
                self._json(turn.status, _error(turn.kind, turn.message), turn.headers)
            case Reply() as turn if body.get("stream"):
                self._stream(_message(turn, model), turn.headers)
            case Reply() as turn:
                self._json(200, _message(turn, model), turn.headers)

    def _json(self, status: int, value: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        content = json.dumps(value).encode()
        self._head(status, {"content-type": "application/json", "content-length": str(len(content))}, headers)
        self.wfile.write(content)

    def _stream(self, message: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        self._head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"}, headers)
        for event in _events(message):
            data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def _head(self, status: int, ours: Mapping[str, str], headers: Mapping[str, str] | None) -> None:
        self.send_response(status)
        for name, value in {"request-id": "req_scripted", **ours, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()


def _position(body: Mapping[str, Any]) -> tuple[str, int]:
    """Return the last words of the user, and how many rounds of tool results followed them."""
    prompt, answered = "", 0
    for message in body.get("messages", []):
        if message.get("role") != "user":
            continue
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if any(block.get("type") == "tool_result" for block in blocks):
            answered += 1
        else:
            prompt, answered = "\n".join(block.get("text", "") for block in blocks), 0
    return prompt, answered


def _message(turn: Reply, model: str) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": turn.text}] if turn.text else []
    for call in turn.tools:
        id = f"toolu_{uuid4().hex[:20]}"  # noqa: A001 - the protocol's word
        blocks.append({"type": "tool_use", "id": id, "name": call.name, "input": dict(call.input)})
    return {
        "id": f"msg_{uuid4().hex[:20]}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": turn.stop_reason or ("tool_use" if turn.tools else "end_turn"),
        "stop_sequence": None,
        "usage": dict(turn.usage),
    }


def _events(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Take a message apart into the events of its stream."""
    start = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
    yield {"type": "message_start", "message": start}
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": message["usage"].get("output_tokens", 0)}
    yield {"type": "message_delta", "delta": end, "usage": usage}
    yield {"type": "message_stop"}


def _error(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_scripted"}
