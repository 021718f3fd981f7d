"""JSON-RPC as Codex speaks it: one message on a line, without the field that tells the version."""

import json
from collections.abc import Mapping
from typing import Any


def request(id: str, method: str, params: Mapping[str, Any]) -> str:
    """Write one of our requests."""
    return line({"id": id, "method": method, "params": params})


def line(message: Mapping[str, Any]) -> str:
    """Write a message."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"), default=dict)
    # Half a character, which a prompt may carry, is not JSON for Codex.
    return text.encode("utf-8", "replace").decode("utf-8") + "\n"
