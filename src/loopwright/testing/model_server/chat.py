"""OpenAI Chat Completions, as goose, OpenCode and most others speak it."""

import json
from collections.abc import Iterator
from typing import Any, Final

from loopwright.testing.model_server.openai_errors import error, rejection
from loopwright.testing.model_server.scenario import Rejection, Reply, ToolCall
from loopwright.testing.model_server.wire import Event, Frame, Json, Request, pieces

__all__ = ["broken", "error", "read", "rejection", "reply", "stream"]

_FINISH: Final = {"max_tokens": "length", "refusal": "content_filter"}
_DONE: Final = Event(data="[DONE]")


def read(path: str, body: Json) -> Request:  # noqa: ARG001 - all is in the body
    """Return what a request asks for."""
    messages = body.get("messages", [])
    prompt, answered, in_results = "", 0, False
    for message in messages:
        if message.get("role") == "tool":
            # Each result is its own message; those of one turn are side by side.
            answered += not in_results
            in_results = True
            continue
        in_results = False
        if message.get("role") == "user":
            prompt, answered = _text(message.get("content")), 0
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
    """Return a turn as a completion."""
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None, "refusal": None}
    if turn.stop_reason == "refusal":
        message |= {"content": None, "refusal": turn.text}
    if turn.tools:
        message["tool_calls"] = [_call(call, f"call_{frame.id}{n}") for n, call in enumerate(turn.tools)]
    finish = _FINISH.get(turn.stop_reason or "") or ("tool_calls" if turn.tools else "stop")
    usage, cached = turn.usage, turn.usage.cache_read_tokens or 0
    given = (usage.input_tokens or 0) + cached + (usage.cache_write_tokens or 0)
    return {
        **_opened(frame, "chat.completion"),
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": given,
            "completion_tokens": usage.output_tokens or 0,
            "total_tokens": given + (usage.output_tokens or 0),
            "prompt_tokens_details": {"cached_tokens": cached},
        },
    }


def _opened(frame: Frame, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{frame.id}", "object": kind, "created": frame.at, "model": frame.model}


def _call(call: ToolCall, id: str) -> dict[str, Any]:
    if isinstance(call.input, str):
        custom = {"name": call.full_name, "input": call.input}
        return {"id": id, "type": "custom", "custom": custom}
    function = {"name": call.full_name, "arguments": json.dumps(dict(call.input))}
    return {"id": id, "type": "function", "function": function}


def stream(reply: Json) -> Iterator[Event]:
    """Take a completion apart into the chunks of its stream, the usage last."""
    frame = {name: reply[name] for name in ("id", "created", "model")}
    (choice,) = reply["choices"]
    message = choice["message"]

    def chunk(delta: Json, finish: str | None = None) -> Event:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        return Event(data={**frame, "object": "chat.completion.chunk", "choices": choices})

    yield chunk({"role": "assistant", "content": ""})
    for name in ("content", "refusal"):
        for piece in pieces(message[name] or ""):
            yield chunk({name: piece})
    for index, call in enumerate(message.get("tool_calls", ())):
        yield chunk({"tool_calls": [{"index": index, **call}]})
    yield chunk({}, choice["finish_reason"])
    yield Event(
        data={**frame, "object": "chat.completion.chunk", "choices": [], "usage": reply["usage"]},
    )
    yield _DONE


def broken(rejection: Rejection, frame: Frame) -> Iterator[Event]:
    """Return a refusal in a stream that has begun."""
    yield next(stream(reply(Reply(), frame)))
    yield Event(data=error(rejection))
    yield _DONE
