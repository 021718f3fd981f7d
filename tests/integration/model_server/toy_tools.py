"""A tool server on stdio with one tool that adds: just enough of MCP for a real agent program."""

import json
import sys

TOOL = {
    "name": "add",
    "description": "Add two numbers",
    "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}},
}

for line in sys.stdin:
    request = json.loads(line)
    match request.get("method"):
        case "initialize":
            version = request["params"]["protocolVersion"]
            about = {"name": "toy", "version": "1"}
            answer = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            answer = {"tools": [TOOL]}
        case "tools/call":
            given = request["params"]["arguments"]
            answer = {"content": [{"type": "text", "text": f"the sum is {given['a'] + given['b']}"}]}
        case _:
            answer = {}
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": answer}), flush=True)
