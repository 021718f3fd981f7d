"""The tools by which an agent turns to a person: an MCP server on stdin and stdout, `asking.py RUN_DIRECTORY`.

It notes each question, and all work that the agent found and leaves to others, as one JSON line in the run's
directory, where the worker reads them. An agent that asks has to stop, one that notes work continues. It is
started with every run, so it loads nothing but a little of the standard library.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

FILE = "questions.jsonl"
DISCOVERED_FILE = "discovered.jsonl"
FILES = (FILE, DISCOVERED_FILE)
"""All that the tools write: a sandbox lets a run write these, and nothing else in its directory."""
MOST_QUESTIONS = 20
MOST_DISCOVERED = 20
LONGEST_QUESTION = 4_000
LONGEST_OPTION = 500
MOST_OPTIONS = 12
LONGEST_TITLE = 200
LONGEST_REASON = 2_000
LONGEST_LINE = 64_000
"""A question of the longest texts, each of its characters escaped."""
LONGEST_MESSAGE = 1024 * 1024

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Revisions of the protocol, the newest first. What is used of it here is the same in all."""

ANSWER = "A person has been asked. Stop here now; you will be started again with the answer."
NOTED = "It is noted for the user. Do not do it; continue your own task."

TOOL = {
    "name": "ask",
    "description": (
        "Ask the person who is responsible for this work a question that you cannot answer from the repository and "
        "the task, and that you must not guess. Ask everything that you need to know, then stop: you will be "
        "started again with the answers."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "question": {
                "type": "string",
                "maxLength": LONGEST_QUESTION,
                "description": "The question, with what the person has to know to answer it.",
            },
            "options": {
                "type": "array",
                "items": {"type": "string", "maxLength": LONGEST_OPTION},
                "maxItems": MOST_OPTIONS,
                "description": "The possible answers, where there are only a few.",
            },
            "default": {
                "type": "string",
                "maxLength": LONGEST_OPTION,
                "description": "The answer to take if the user does not answer in time.",
            },
            "kind": {
                "type": "string",
                "enum": ["question", "escalation"],
                "description": "`escalation` if the work should not continue as planned.",
            },
        },
        "required": ["question"],
        "additionalProperties": False,
    },
}

DISCOVERED = {
    "name": "discovered",
    "description": (
        "Note work that you found and that is not part of your task: a defect elsewhere, a missing test, a change that "
        "another team has to make. Do not do it yourself; continue your task."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "title": {
                "type": "string",
                "maxLength": LONGEST_TITLE,
                "description": "What is to be done, on one line.",
            },
            "reason": {
                "type": "string",
                "maxLength": LONGEST_REASON,
                "description": "Why, and what to know for doing it: where it is, how to see it.",
            },
            "recommendation": {
                "type": "string",
                "enum": ["current", "new"],
                "description": "`current` if the plan that you work on needs it, `new` for its own plan.",
            },
        },
        "required": ["title", "reason"],
        "additionalProperties": False,
    },
}

PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602


class Unusable(Exception):
    """The question cannot be taken; the text tells the agent why."""


class Refused(Exception):
    """The request is none of this protocol."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def main(directory: str) -> None:
    """Serve until stdin is closed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for line in _lines(sys.stdin.buffer):
        answer = respond(line, directory)
        if answer is not None:
            sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
            sys.stdout.buffer.flush()


def respond(line: bytes, directory: str) -> object:
    """Return the answer to one line; None when there is none to give."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return _error(None, PARSE_ERROR, "that is not JSON")
    if isinstance(message, list) and message:
        return [answer for one in message if (answer := _one(one, directory)) is not None] or None
    return _one(message, directory)


def _one(message: object, directory: str) -> dict[str, Any] | None:
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        if isinstance(message, dict) and ("result" in message or "error" in message):
            return None  # an answer, although nothing was asked
        return _error(None, INVALID_REQUEST, "that is not a request")
    id_, params = message.get("id"), message.get("params")
    if "id" not in message:
        return None  # a notification
    if isinstance(id_, bool) or not isinstance(id_, str | int):
        return _error(None, INVALID_REQUEST, "the id must be a text or a number")
    try:
        result = _result(message["method"], params if isinstance(params, dict) else {}, directory)
    except Refused as refused:
        return _error(id_, refused.code, str(refused))
    return {"jsonrpc": "2.0", "id": id_, "result": result}


def _result(method: str, params: dict[str, Any], directory: str) -> dict[str, Any]:
    match method:
        case "initialize":
            wanted = params.get("protocolVersion")
            return {
                "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "loopwright", "version": "1"},
            }
        case "ping":
            return {}
        case "tools/list":
            return {"tools": [TOOL, DISCOVERED]}
        case "tools/call" if params.get("name") == TOOL["name"]:
            return _called(params.get("arguments"), directory)
        case "tools/call" if params.get("name") == DISCOVERED["name"]:
            return _discovered(params.get("arguments"), directory)
        case "tools/call":
            raise Refused(INVALID_PARAMS, "the tools here are `ask` and `discovered`")
        case _:
            raise Refused(UNKNOWN_METHOD, f"there is no {method[:100]} here")


def _called(arguments: object, directory: str) -> dict[str, Any]:
    full = f"{MOST_QUESTIONS} questions have been asked in this run. Stop here now."
    try:
        _note(_question(arguments), f"{directory}/{FILE}", MOST_QUESTIONS, full)
    except (Unusable, OSError) as problem:
        return _told(f"The question was not asked: {_why(problem)}", is_error=True)
    return _told(ANSWER)


def _discovered(arguments: object, directory: str) -> dict[str, Any]:
    full = f"{MOST_DISCOVERED} have been noted in this run. Continue your task."
    try:
        _note(_work(arguments), f"{directory}/{DISCOVERED_FILE}", MOST_DISCOVERED, full)
    except (Unusable, OSError) as problem:
        return _told(f"The work was not noted: {_why(problem)}", is_error=True)
    return _told(NOTED)


def _told(text: str, *, is_error: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def _why(problem: Unusable | OSError) -> str:
    return str(problem) if isinstance(problem, Unusable) else f"it cannot be noted: {problem.strerror}"


def _work(arguments: object) -> dict[str, Any]:
    given = _known(arguments, ("title", "reason", "recommendation"))
    work = {
        "title": _text(given, "title", LONGEST_TITLE),
        "reason": _text(given, "reason", LONGEST_REASON),
        "recommendation": given.get("recommendation") or "new",
    }
    for name in ("title", "reason"):
        if not work[name]:
            raise Unusable(f"{name} must be a text that is not empty")
    if work["recommendation"] not in ("current", "new"):
        raise Unusable("recommendation must be current or new")
    return work


def _known(arguments: object, names: tuple[str, ...]) -> dict[str, Any]:
    given = arguments if isinstance(arguments, dict) else {}
    unknown = sorted(str(name)[:50] for name in set(given) - set(names))
    if unknown:
        raise Unusable(
            f"there is no {', '.join(unknown[:5])}; give {', '.join(names[:-1])} and {names[-1]} only"
        )
    return given


def _question(arguments: object) -> dict[str, Any]:
    given = _known(arguments, ("question", "options", "default", "kind"))
    question = {"question": _text(given, "question", LONGEST_QUESTION)}
    if not question["question"]:
        raise Unusable("question must be a text that is not empty")
    options = given.get("options") or []
    if not isinstance(options, list) or len(options) > MOST_OPTIONS:
        raise Unusable(f"options must be a list of at most {MOST_OPTIONS} texts")
    texts = [_text({"options": one}, "options", LONGEST_OPTION) for one in options]
    if kind := given.get("kind"):
        if kind not in ("question", "escalation"):
            raise Unusable("kind must be question or escalation")
        question["kind"] = kind
    if default := _text(given, "default", LONGEST_OPTION):
        question["default"] = default
    return {**question, **({"options": texts} if any(texts) else {})}


def _text(given: dict[str, Any], name: str, longest: int) -> str:
    value = given.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > longest:
        raise Unusable(f"{name} must be a text of at most {longest} characters")
    return value.strip()


def _note(value: dict[str, Any], path: str, most: int, full: str) -> None:
    """Append a value whole or not at all; one that is noted already is not noted again."""
    line = json.dumps(value).encode() + b"\n"
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        size = os.fstat(file).st_size
        known = os.pread(file, most * LONGEST_LINE, 0).splitlines(keepends=True)
        if line in known:
            return
        if len(known) >= most or size >= most * LONGEST_LINE:
            raise Unusable(full)
        # Half a line of a process that was killed must not spoil this one.
        whole = line if not known or known[-1].endswith(b"\n") else b"\n" + line
        if os.write(file, whole) != len(whole):
            os.ftruncate(file, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(file)


def _error(id_: object, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message}}


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield lines; one that is too long becomes a piece that is not JSON, and the rest of it is passed over."""
    while line := stream.readline(LONGEST_MESSAGE):
        if not line.endswith(b"\n") and len(line) == LONGEST_MESSAGE:
            while rest := stream.readline(LONGEST_MESSAGE):
                if rest.endswith(b"\n"):
                    break
            line = b"too long"
        if line.strip():
            yield line


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: asking.py RUN_DIRECTORY")
    main(sys.argv[1])
