"""Gemini's generateContent and streamGenerateContent, as Gemini CLI speaks them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from loopwright.testing.model_server.scenario import Rejection, Reply, ToolCall, Trouble, TroubleKind
from loopwright.testing.model_server.wire import CannotSay, Event, Frame, Json, Request, pieces

_FINISH: Final = {"max_tokens": "MAX_TOKENS", "refusal": "PROHIBITED_CONTENT"}
_RPC: Final = "type.googleapis.com/google.rpc"
_METRIC: Final = "generativelanguage.googleapis.com/generate_content_free_tier_requests"


def _quota(id: str, limit: int, delay_s: int) -> dict[str, Any]:
    violation = {"quotaMetric": _METRIC, "quotaId": id, "quotaValue": str(limit)}
    return {
        "details": [
            {"@type": f"{_RPC}.QuotaFailure", "violations": [violation]},
            {"@type": f"{_RPC}.RetryInfo", "retryDelay": f"{delay_s}s"},
        ]
    }


TROUBLES: Final[Mapping[TroubleKind, Rejection]] = MappingProxyType(
    {
        "auth": Rejection(
            status=400,
            kind="INVALID_ARGUMENT",
            message="API key not valid. Please pass a valid API key.",
            more={"details": [{"@type": f"{_RPC}.ErrorInfo", "reason": "API_KEY_INVALID"}]},
        ),
        "forbidden": Rejection(
            status=403,
            kind="PERMISSION_DENIED",
            message="The caller does not have permission",
        ),
        "model": Rejection(
            status=404,
            kind="NOT_FOUND",
            message="models/{model} is not found for API version v1beta, or is not supported for generateContent.",
        ),
        "rate_limit": Rejection(
            status=429,
            kind="RESOURCE_EXHAUSTED",
            message=f"You exceeded your current quota. Quota exceeded for metric: {_METRIC}, limit: 5",
            more=_quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", 5, 1),
        ),
        "usage_limit": Rejection(
            status=429,
            kind="RESOURCE_EXHAUSTED",
            message=f"You exceeded your current quota. Quota exceeded for metric: {_METRIC}, limit: 250",
            # It does not say when the day ends.
            more=_quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier", 250, 40),
        ),
        "billing": Rejection(
            status=400,
            kind="FAILED_PRECONDITION",
            message="Gemini API free tier is not available in your country. "
            "Please enable billing on your project in Google AI Studio.",
        ),
        "overloaded": Rejection(
            status=503,
            kind="UNAVAILABLE",
            message="The model is overloaded. Please try again later.",
        ),
        "context": Rejection(
            status=400,
            kind="INVALID_ARGUMENT",
            message="The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        ),
    }
)


def read(path: str, body: Json) -> Request:
    """Return what a request asks for: the model and whether to stream stand in the path."""
    found = re.search(r"/models/([^/:]+):(\w+)", path)
    model, method = found.groups() if found else ("", "")
    contents = body.get("contents", [])
    prompt, answered = "", 0
    for content in contents:
        if content.get("role", "user") not in ("user", "function"):
            continue
        parts = content.get("parts", [])
        if any("functionResponse" in part for part in parts):
            answered += 1
        else:
            prompt, answered = "\n".join(part.get("text", "") for part in parts), 0
    return Request(
        model=model,
        prompt=prompt,
        answered=answered,
        stream=method == "streamGenerateContent",
        has_tools=bool(body.get("tools")),
    )


def reply(turn: Reply, frame: Frame) -> dict[str, Any]:
    """Return a turn as a candidate."""
    parts: list[dict[str, Any]] = [{"text": turn.text}] if turn.text else []
    parts += [_call(call, f"call_{frame.id}{n}") for n, call in enumerate(turn.tools)]
    usage, cached = turn.usage, turn.usage.cache_read_tokens or 0
    given = (usage.input_tokens or 0) + cached + (usage.cache_write_tokens or 0)
    return {
        **_candidate(parts, _FINISH.get(turn.stop_reason or "", "STOP")),
        "usageMetadata": {
            "promptTokenCount": given,
            "cachedContentTokenCount": cached,
            "candidatesTokenCount": usage.output_tokens or 0,
            "totalTokenCount": given + (usage.output_tokens or 0),
        },
        "modelVersion": frame.model,
        "responseId": frame.id,
    }


def _candidate(parts: list[dict[str, Any]], finish: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    return {"candidates": [{**candidate, "finishReason": finish} if finish else candidate]}


def _call(call: ToolCall, id: str) -> dict[str, Any]:
    if isinstance(call.input, str):
        raise CannotSay(f"Gemini has no tools that take a text as it is: {call.name}")
    return {"functionCall": {"name": call.full_name, "args": dict(call.input), "id": id}}


def stream(reply: Json) -> Iterator[Event]:
    """Take an answer apart into the answers of its stream, why it stopped and the usage last."""
    (candidate,) = reply["candidates"]
    frame = {name: reply[name] for name in ("modelVersion", "responseId")}
    for part in candidate["content"]["parts"]:
        for piece in [{"text": text} for text in pieces(part["text"])] if "text" in part else [part]:
            yield Event(data={**_candidate([piece]), **frame})
    last = {**_candidate([{"text": ""}], candidate["finishReason"]), **frame}
    yield Event(data={**last, "usageMetadata": reply["usageMetadata"]})


def rejection(trouble: Trouble, frame: Frame) -> Rejection:
    """Return how Gemini refuses."""
    found = TROUBLES[trouble.kind]
    return replace(found, message=found.message.format(model=frame.model))


def error(rejection: Rejection) -> dict[str, Any]:
    """Return a refusal as the body of an answer."""
    about = {"code": rejection.status, "message": rejection.message, "status": rejection.kind}
    return {"error": {**about, **rejection.more}}


def broken(rejection: Rejection, frame: Frame) -> Iterator[Event]:  # noqa: ARG001 - an error has no frame here
    """Return a refusal in a stream that has begun."""
    yield Event(data=error(rejection))
