"""A receiver of `json://` notices on loopback, which keeps what it takes."""

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Sink:
    """What was taken, how often it was asked, and what it answers."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []
        self.asked = 0
        self.refuses = 0
        """How many of the next notices it refuses."""
        self.port = 0

    def url(self, path: str = "") -> str:
        """Return the URL of the target for Apprise."""
        return f"json://127.0.0.1:{self.port}/{path}"

    @property
    def titles(self) -> list[str]:
        """The titles of what was taken, in order."""
        return [one["title"] for one in self.taken]


@contextmanager
def listening() -> Iterator[Sink]:
    """Listen for the length of a block."""
    sink = Sink()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            said = json.loads(self.rfile.read(int(self.headers["content-length"])))
            sink.asked += 1
            is_refused = sink.refuses > 0
            sink.refuses -= is_refused
            if not is_refused:
                sink.taken.append(said)
            self.send_response(500 if is_refused else 200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        sink.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield sink
        server.shutdown()
        thread.join()
