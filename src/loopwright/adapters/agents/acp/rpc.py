"""JSON-RPC as the Agent Client Protocol uses it: one message on a line, and a fixed id for each of our requests."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

INITIALIZE, AUTHENTICATE, SESSION, MODE, MODEL, PROMPT = range(1, 7)
"""The ids of our requests, in the order in which they are made. Each is made once, so that folding again repeats it."""

PROTOCOL_VERSION: Final = 1

AUTH_REQUIRED: Final = -32000
METHOD_NOT_FOUND: Final = -32601
INVALID_REQUEST: Final = -32600

_OURS: Final = rf'"id"\s*:\s*[{INITIALIZE}-{MODEL}]\s*[,}}]'
_THEIRS: Final = r'"jsonrpc"\s*:\s*"2\.0"\s*,\s*(?:"id"\s*:\s*(?:\d+|"[^"]*"|null)\s*,\s*)?"method"'
DONE: Final = (
    rf"^\{{(?!{_THEIRS})"
    rf'(?=.*"(?:result|error)"\s*:)(?:(?=.*"id"\s*:\s*{PROMPT}\s*[,}}])|(?=.*{_OURS})(?=.*"error"\s*:\s*\{{))'
)
"""The answer to our prompt, or an error before it: after both, stdin is closed and nothing more is to come."""

_CUT_REQUEST: Final = re.compile(
    r'\{"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(?P<id>\d{1,15}|"[^"\\]*")\s*,\s*"method"\s*:\s*"[^"]+"'
)


def request(id: int, method: str, params: Mapping[str, Any]) -> str:
    """Write one of our requests."""
    return _line({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def notification(method: str, params: Mapping[str, Any]) -> str:
    """Write something that is not answered."""
    return _line({"jsonrpc": "2.0", "method": method, "params": params})


def answer(id: object, result: Mapping[str, Any]) -> str:
    """Answer a request of the agent's."""
    return _line({"jsonrpc": "2.0", "id": id, "result": result})


def refusal(id: object, code: int, message: str) -> str:
    """Answer a request of the agent's with an error."""
    return _line({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})


def id_of_cut_request(text: str) -> int | str | None:
    """Return the id of a request on a line that cannot be read, because it was too long: it waits for an answer."""
    found = _CUT_REQUEST.match(text)
    if found is None:
        return None
    id: int | str = json.loads(found["id"])  # noqa: A001 - the protocol's word
    return id


def _line(message: Mapping[str, Any]) -> str:
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    # Half a character, which a prompt may carry, is not JSON for others.
    return text.encode("utf-8", "replace").decode("utf-8") + "\n"
