"""Anthropic Messages, as Claude Code speaks it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from loopwright.testing.model_server.scenario import Rejection, Reply, ToolCall, Trouble, TroubleKind
from loopwright.testing.model_server.wire import (
    REQUEST_ID,
    CannotSay,
    Event,
    Frame,
    Json,
    Request,
    pieces,
    resets_at,
)

TROUBLES: Final[Mapping[TroubleKind, Rejection]] = MappingProxyType(
    {
        "auth": Rejection(status=401, kind="authentication_error", message="invalid x-api-key"),
        "forbidden": Rejection(
            status=403,
            kind="permission_error",
            message="Your API key does not have permission to use the specified resource.",
        ),
        "model": Rejection(status=404, kind="not_found_error", message="model: {model}"),
        "rate_limit": Rejection(
            status=429,
            kind="rate_limit_error",
            message="This request would exceed your organization's rate limit of 40,000 input tokens per minute.",
            headers={"retry-after": "1"},
        ),
        "usage_limit": Rejection(
            status=429,
            kind="rate_limit_error",
            message="This request would exceed your account's rate limit. Please try again later.",
        ),
        "billing": Rejection(
            status=400,
            kind="invalid_request_error",
            message="Your credit balance is too low to access the Anthropic API. "
            "Please go to Plans & Billing to upgrade or purchase credits.",
        ),
        "overloaded": Rejection(status=529, kind="overloaded_error", message="Overloaded"),
        "context": Rejection(
            status=400,
            kind="invalid_request_error",
            message="prompt is too long: 210000 tokens > 200000 maximum",
        ),
    }
)


def read(path: str, body: Json) -> Request:  # noqa: ARG001 - all is in the body
    """Return what a request asks for."""
    messages = body.get("messages", [])
    prompt, answered = "", 0
    for message in messages:
        if message.get("role") != "user":
            continue
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if any(block.get("type") == "tool_result" for block in blocks):
            answered += 1
        else:
            prompt, answered = "\n".join(block.get("text", "") for block in blocks), 0
    return Request(
        model=str(body.get("model", "")),
        prompt=prompt,
        answered=answered,
        stream=bool(body.get("stream")),
        has_tools=bool(body.get("tools")),
    )


def reply(turn: Reply, frame: Frame) -> dict[str, Any]:
    """Return a turn as a message."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": turn.text}] if turn.text else []
    blocks += [_tool_use(call, f"toolu_{frame.id}{n}") for n, call in enumerate(turn.tools)]
    return {
        "id": f"msg_{frame.id}",
        "type": "message",
        "role": "assistant",
        "model": frame.model,
        "content": blocks,
        "stop_reason": turn.stop_reason or ("tool_use" if turn.tools else "end_turn"),
        "stop_sequence": None,
        "usage": {
            "input_tokens": turn.usage.input_tokens or 0,
            "cache_creation_input_tokens": turn.usage.cache_write_tokens or 0,
            "cache_read_input_tokens": turn.usage.cache_read_tokens or 0,
            "output_tokens": turn.usage.output_tokens or 0,
        },
    }


def stream(reply: Json) -> Iterator[Event]:
    """Take a message apart into the events of its stream."""
    start = {**reply, "content": [], "stop_reason": None, "usage": {**reply["usage"], "output_tokens": 1}}
    yield _event("message_start", message=start)
    for index, block in enumerate(reply["content"]):
        if block["type"] == "text":
            empty = {**block, "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
        else:
            empty = {**block, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        yield _event("content_block_start", index=index, content_block=empty)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    end = {"stop_reason": reply["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=end, usage={"output_tokens": reply["usage"]["output_tokens"]})
    yield _event("message_stop")


def rejection(trouble: Trouble, frame: Frame) -> Rejection:
    """Return how Anthropic refuses; a subscription learns of its limit from headers."""
    found = TROUBLES[trouble.kind]
    if trouble.kind == "usage_limit":
        return replace(
            found, headers=window_headers(trouble.window, resets_at(trouble, frame), status="rejected")
        )
    return replace(found, message=found.message.format(model=frame.model))


def window_headers(claim: str, reset: int, *, status: str, used: float = 1.0) -> dict[str, str]:
    """Return what a subscription is told of a window, for example `five_hour`: also for a reply's headers."""
    prefix = "anthropic-ratelimit-unified"
    headers = {
        f"{prefix}-status": status,
        f"{prefix}-reset": str(reset),
        f"{prefix}-representative-claim": claim,
    }
    if window := {"five_hour": "5h", "seven_day": "7d"}.get(claim):
        headers |= {
            f"{prefix}-{window}-status": status,
            f"{prefix}-{window}-reset": str(reset),
            f"{prefix}-{window}-utilization": str(used),
        }
    if status == "rejected":
        headers |= {"retry-after": "3600", "x-should-retry": "false"}
    return headers


def error(rejection: Rejection) -> dict[str, Any]:
    """Return a refusal as the body of an answer."""
    about = {"type": rejection.kind, "message": rejection.message, **rejection.more}
    return {"type": "error", "error": about, "request_id": REQUEST_ID}


def broken(rejection: Rejection, frame: Frame) -> Iterator[Event]:
    """Return a refusal in a stream that has begun."""
    yield next(stream(reply(Reply(), frame)))
    yield Event(data=error(rejection), name="error")


def _event(kind: str, **fields: Any) -> Event:
    return Event(data={"type": kind, **fields}, name=kind)


def _tool_use(call: ToolCall, id: str) -> dict[str, Any]:
    if isinstance(call.input, str):
        raise CannotSay(f"Anthropic has no tools that take a text as it is: {call.name}")
    return {"type": "tool_use", "id": id, "name": call.full_name, "input": dict(call.input)}
