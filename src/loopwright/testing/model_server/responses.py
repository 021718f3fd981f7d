"""OpenAI Responses, as codex speaks it."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any, Final

from loopwright.testing.model_server import openai_errors
from loopwright.testing.model_server.openai_errors import error
from loopwright.testing.model_server.scenario import Rejection, Reply, ToolCall, Trouble
from loopwright.testing.model_server.wire import Event, Frame, Json, Request, pieces

__all__ = ["broken", "error", "read", "rejection", "reply", "stream"]

_RESULTS: Final = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})


def read(path: str, body: Json) -> Request:  # noqa: ARG001 - all is in the body
    """Return what a request asks for."""
    given = body.get("input", [])
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    prompt, answered, in_results = "", 0, False
    for item in items:
        if item.get("type") in _RESULTS:
            # The results of one turn stand side by side.
            answered += not in_results
            in_results = True
            continue
        in_results = False
        if item.get("role") == "user":
            prompt, answered = _text(item.get("content")), 0
    return Request(
        model=str(body.get("model", "")),
        prompt=prompt,
        answered=answered,
        stream=bool(body.get("stream")),
        has_tools=bool(body.get("tools")),
    )


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content or ())


def reply(turn: Reply, frame: Frame) -> dict[str, Any]:
    """Return a turn as a finished response."""
    items: list[dict[str, Any]] = []
    if turn.text:
        refused = turn.stop_reason == "refusal"
        part = {"type": "refusal", "refusal": turn.text} if refused else _part(turn.text)
        items.append(
            {
                "type": "message",
                "id": f"msg_{frame.id}",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    items += [_call(call, f"{frame.id}{n}") for n, call in enumerate(turn.tools)]
    usage, cached = turn.usage, turn.usage.cache_read_tokens or 0
    given = (usage.input_tokens or 0) + cached + (usage.cache_write_tokens or 0)
    cut = turn.stop_reason == "max_tokens"
    return {
        **_opened(frame),
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": items,
        "usage": {
            "input_tokens": given,
            "input_tokens_details": {
                "cached_tokens": cached,
                "cache_write_tokens": usage.cache_write_tokens or 0,
            },
            "output_tokens": usage.output_tokens or 0,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": given + (usage.output_tokens or 0),
        },
    }


def _opened(frame: Frame) -> dict[str, Any]:
    return {
        "id": f"resp_{frame.id}",
        "object": "response",
        "created_at": frame.at,
        "model": frame.model,
        "status": "in_progress",
        "error": None,
        "output": [],
    }


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


def _call(call: ToolCall, id: str) -> dict[str, Any]:
    if isinstance(call.input, str):
        kind: dict[str, Any] = {"type": "custom_tool_call", "id": f"ctc_{id}", "input": call.input}
    else:
        kind = {"type": "function_call", "id": f"fc_{id}", "arguments": json.dumps(dict(call.input))}
    place = {"namespace": call.namespace} if call.namespace else {}
    return {**kind, **place, "call_id": f"call_{id}", "name": call.name, "status": "completed"}


def stream(reply: Json) -> Iterator[Event]:
    """Take a response apart into the events of its stream."""
    numbers = count()

    def event(kind: str, **fields: Any) -> Event:
        return Event(data={"type": kind, "sequence_number": next(numbers), **fields}, name=kind)

    opened = {**reply, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield event("response.created", response=opened)
    for index, item in enumerate(reply["output"]):
        place = {"item_id": item["id"], "output_index": index}
        yield event("response.output_item.added", output_index=index, item=_empty(item))
        if item["type"] == "message":
            place |= {"content_index": 0}
            (part,) = item["content"]
            said = "refusal" if part["type"] == "refusal" else "text"
            name = "response.refusal" if said == "refusal" else "response.output_text"
            yield event("response.content_part.added", **place, part={**part, said: ""})
            for piece in pieces(part[said]):
                yield event(f"{name}.delta", **place, delta=piece)
            yield event(f"{name}.done", **place, **{said: part[said]})
            yield event("response.content_part.done", **place, part=part)
        elif item["type"] == "function_call":
            given = item["arguments"]
            yield event("response.function_call_arguments.delta", **place, delta=given)
            yield event("response.function_call_arguments.done", **place, arguments=given)
        else:
            yield event("response.custom_tool_call_input.delta", **place, delta=item["input"])
            yield event("response.custom_tool_call_input.done", **place, input=item["input"])
        yield event("response.output_item.done", output_index=index, item=item)
    yield event(f"response.{reply['status']}", response=reply)


def _empty(item: Json) -> dict[str, Any]:
    nothing: dict[str, dict[str, Any]] = {
        "message": {"content": []},
        "function_call": {"arguments": ""},
        "custom_tool_call": {"input": ""},
    }
    return {**item, "status": "in_progress", **nothing[item["type"]]}


def rejection(trouble: Trouble, frame: Frame) -> Rejection:
    """Return how OpenAI refuses; here it is only while answering that the input turns out to be too long."""
    found = openai_errors.rejection(trouble, frame)
    return replace(found, in_stream=trouble.kind == "context")


def broken(rejection: Rejection, frame: Frame) -> Iterator[Event]:
    """Return a refusal in a stream that has begun."""
    opened = _opened(frame)
    about = {"code": rejection.code or rejection.kind, "message": rejection.message, **rejection.more}
    for n, (kind, response) in enumerate(
        (
            ("response.created", opened),
            ("response.failed", {**opened, "status": "failed", "error": about}),
        )
    ):
        yield Event(data={"type": kind, "sequence_number": n, "response": response}, name=kind)
