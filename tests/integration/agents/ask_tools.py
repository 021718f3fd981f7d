"""A tool server on stdio whose one tool notes what it was asked: as strict with methods as real agents expect it."""

import json
import os
import sys
from pathlib import Path

TOOL = {
    "name": "ask",
    "description": "Ask a person",
    "inputSchema": {"type": "object", "properties": {"question": {"type": "string"}}},
}

if __name__ == "__main__":
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        if "id" not in request:
            continue
        reply: dict[str, object] = {"jsonrpc": "2.0", "id": request["id"]}
        match request["method"]:
            case "initialize":
                reply["result"] = {
                    "protocolVersion": request["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "ask", "version": "1"},
                }
            case "tools/list":
                reply["result"] = {"tools": [TOOL]}
            case "tools/call":
                with Path(os.environ["USED"]).open("a") as file:
                    file.write(request["params"]["arguments"]["question"] + "\n")
                reply["result"] = {"content": [{"type": "text", "text": "A person has been asked."}]}
            case "ping":
                reply["result"] = {}
            case _:
                reply["error"] = {"code": -32601, "message": "Method not found"}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
