"""A receiver of webhooks in its own process: `receiver.py PORT FOLDER [STOPS_AFTER]`.

It writes each message with a new id to `messages`, and each with a known one to `repeats`. With STOPS_AFTER it ends
hard after that many messages: after it wrote one, and before it answered.
"""

import http.server
import json
import os
import sys
from pathlib import Path

folder = Path(sys.argv[2])
stops_after = int(sys.argv[3]) if len(sys.argv) > 3 else 0
messages, repeats = folder / "messages", folder / "repeats"
known = {json.loads(line)["id"] for line in messages.read_text().splitlines()} if messages.exists() else set()
taken: list[str] = []


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        headers = {name.lower(): value for name, value in self.headers.items()}
        one = headers["webhook-id"]
        with (repeats if one in known else messages).open("a") as file:
            file.write(json.dumps({"id": one, "headers": headers, "body": body}) + "\n")
        known.add(one)
        taken.append(one)
        if len(taken) == stops_after:
            os._exit(9)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
(folder / "port").write_text(str(server.server_address[1]))
server.serve_forever()
