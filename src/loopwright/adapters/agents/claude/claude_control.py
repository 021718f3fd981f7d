"""Claude Code's control protocol: what is said to it on its stdin, and what its requests ask for.

Our ids are fixed, so that folding the output again gives the same.
"""

import json
import os.path
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, Final

from loopwright.adapters.agents.output import Object, object_in, readable
from loopwright.core.replies.questions import Asking, asking_of
from loopwright.core.values.permissions import Wish, WishKind

OPENING_ID: Final = "loopwright-opening"
INTERRUPT_ID: Final = "loopwright-interrupt"

ASKED: Final = "A person has the question. Stop here; you will get the answer."
REFUSED: Final = "This is not allowed here. Do the task without it."

_CUT: Final = re.compile(r'\{"type":"control_request","request_id":"([^"\\]{1,200})"')

_TOOLS: Final[Mapping[str, tuple[WishKind, str]]] = MappingProxyType(
    {
        "Edit": ("edit", "file_path"),
        "MultiEdit": ("edit", "file_path"),
        "Write": ("edit", "file_path"),
        "NotebookEdit": ("edit", "notebook_path"),
        "Bash": ("command", "command"),
        "Read": ("read", "file_path"),
        "NotebookRead": ("read", "notebook_path"),
        "Glob": ("read", "path"),
        "Grep": ("read", "path"),
        "LS": ("read", "path"),
    }
)
"""What each tool does, and which of its inputs says to what. Any other tool is known by its name alone."""

_QUESTIONS: Final = "AskUserQuestion"
"""The program's own tool to ask a person with: what it wants is an answer, not leave."""


def opening() -> str:
    """Begin the conversation about the conversation, which tells us that the program listens."""
    # Without the last, a conversation keeps the instructions of its first run for ever.
    return _line(_request(OPENING_ID, subtype="initialize", systemPromptSnapshot=False))


def words(text: str) -> str:
    """Return words of the user: as they are written, or else a leading `/` or an `@name` would be a command."""
    message = {"role": "user", "content": [{"type": "text", "text": text}]}
    return _line(
        {
            "type": "user",
            "message": message,
            "parent_tool_use_id": None,
            "session_id": "",
            "client_composed": True,
        }
    )


def interrupt() -> str:
    """Stop the turn in order: it then tells what it did and what that cost."""
    return _line(_request(INTERRUPT_ID, subtype="interrupt"))


def allow(request_id: str) -> str:
    """Let a tool run with its input as it is: what we have read of the input may be redacted."""
    return _answer(request_id, subtype="success", response={"behavior": "allow"})


def deny(request_id: str, message: str, *, stop: bool = False) -> str:
    """Refuse a tool; with `stop` the turn ends there."""
    response = {"behavior": "deny", "message": message, **({"interrupt": True} if stop else {})}
    return _answer(request_id, subtype="success", response=response)


def not_understood(request_id: str, why: str) -> str:
    """Answer what cannot be answered, so that the program does not wait for ever."""
    return _answer(request_id, subtype="error", error=why)


def id_of_cut_request(text: str) -> str | None:
    """Return the id of a request whose line was too long to be kept whole."""
    match = _CUT.match(text)
    return match.group(1) if match else None


def broken_servers(opening: Object, given: Collection[str]) -> tuple[str, ...]:
    """Return the tool servers of this run that its opening line says do not work; the user's own are not its affair."""
    servers = opening.get("mcp_servers")
    found = [object_in(one) for one in servers] if isinstance(servers, list) else []
    return tuple(
        name
        for one in found
        if ((name := readable(one.get("name"), 100)) in given or one.get("source") == "dynamic")
        and one.get("status") in ("failed", "pending")
    )


def wish_of(request: Object, roots: Sequence[str]) -> Wish:
    """Put a permission request into the words that all agents share; paths inside a root are told from it."""
    tool, given = readable(request.get("tool_name"), 200), object_in(request.get("input"))
    kind, key = _TOOLS.get(tool, ("tool", ""))
    what = given.get(key)
    if kind == "tool" or not isinstance(what, str) or not what.strip():
        return Wish(kind="read", what=".") if kind == "read" else Wish(kind="tool", what=tool)
    if kind == "command":
        return Wish(kind=kind, what=what)
    # Where a link leads out of the workspace, the program says so, and a newer one also says where to.
    led_to = request.get("blocked_path")
    if isinstance(led_to, str) and led_to:
        return _path_wish(kind, led_to, roots)
    return _path_wish(kind, what, () if request.get("decision_reason_type") == "workingDir" else roots)


def questions_of(request: Object) -> tuple[Asking, ...]:
    """Return the questions that the program's own tool for them wants to have answered."""
    if request.get("tool_name") != _QUESTIONS:
        return ()
    asked = object_in(request.get("input")).get("questions")
    found = (
        [asking_of(_question(one)) for one in asked if isinstance(one, dict)]
        if isinstance(asked, list)
        else []
    )
    return tuple(one for one in found if one is not None)


def _question(one: Object) -> dict[str, Any]:
    options = one.get("options")
    labels = [object_in(option).get("label") for option in options] if isinstance(options, list) else []
    return {"question": one.get("question"), "options": labels}


def _path_wish(kind: WishKind, path: str, roots: Sequence[str]) -> Wish:
    # Text alone: a codec looks at no file.
    plain = PurePosixPath(os.path.normpath(path))
    if not plain.is_absolute():
        return Wish(kind=kind, what=str(plain), inside=bool(roots) and plain.parts[:1] != ("..",))
    for root in roots:
        if plain.is_relative_to(root):
            return Wish(kind=kind, what=str(plain.relative_to(root)))
    return Wish(kind=kind, what=str(plain), inside=False)


def _request(request_id: str, **request: Any) -> dict[str, Any]:
    return {"type": "control_request", "request_id": request_id, "request": request}


def _answer(request_id: str, *, subtype: str, **rest: Any) -> str:
    return _line(
        {"type": "control_response", "response": {"subtype": subtype, "request_id": request_id, **rest}}
    )


def _line(value: Mapping[str, Any]) -> str:
    return json.dumps(value) + "\n"
