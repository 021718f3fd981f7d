"""A collector of OTLP over HTTP on loopback, which keeps the spans that it takes."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A span as it came over the wire."""

    trace: bytes
    id: bytes
    parent: bytes
    name: str
    lasted_s: float
    failed: bool
    why: str
    attributes: dict[str, Any]
    resource: dict[str, Any]


class Collector:
    """What was taken, and what it answers."""

    def __init__(self) -> None:
        self.spans: list[Taken] = []
        self.asked = 0
        self.paths: set[str] = set()
        self.refuses = 0
        """How many of the next requests it refuses."""
        self.port = 0

    @property
    def url(self) -> str:
        """The address for the setting."""
        return f"http://127.0.0.1:{self.port}"

    def named(self, name: str) -> list[Taken]:
        """Return the spans whose names begin with this."""
        return [one for one in self.spans if one.name.startswith(name)]

    def take(self, body: bytes) -> None:
        """Keep the spans of a request."""
        for each in ExportTraceServiceRequest.FromString(body).resource_spans:
            about = {one.key: _plain(one.value) for one in each.resource.attributes}
            self.spans += [
                Taken(
                    trace=one.trace_id,
                    id=one.span_id,
                    parent=one.parent_span_id,
                    name=one.name,
                    lasted_s=(one.end_time_unix_nano - one.start_time_unix_nano) / 1e9,
                    failed=one.status.code == 2,
                    why=one.status.message,
                    attributes={item.key: _plain(item.value) for item in one.attributes},
                    resource=about,
                )
                for scope in each.scope_spans
                for one in scope.spans
            ]


def _plain(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return (
        [_plain(one) for one in value.array_value.values] if kind == "array_value" else getattr(value, kind)
    )


@contextmanager
def listening() -> Iterator[Collector]:
    """Listen for the length of a block."""
    collector = Collector()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            collector.asked += 1
            collector.paths.add(self.path)
            is_refused = collector.refuses > 0
            collector.refuses -= is_refused
            if not is_refused:
                collector.take(body)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(400 if is_refused else 200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield collector
        server.shutdown()
        thread.join()
