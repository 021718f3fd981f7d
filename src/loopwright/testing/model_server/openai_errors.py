"""How OpenAI refuses: the same for Responses and Chat Completions."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from loopwright.testing.model_server.scenario import Rejection, Trouble, TroubleKind
from loopwright.testing.model_server.wire import Frame, resets_at

TROUBLES: Final[Mapping[TroubleKind, Rejection]] = MappingProxyType(
    {
        "auth": Rejection(
            status=401,
            kind="invalid_request_error",
            code="invalid_api_key",
            message="Incorrect API key provided: sk-scripted.",
        ),
        "forbidden": Rejection(
            status=403,
            kind="invalid_request_error",
            code="insufficient_permissions",
            message="You have insufficient permissions for this operation.",
        ),
        "model": Rejection(
            status=404,
            kind="invalid_request_error",
            code="model_not_found",
            message="The model `{model}` does not exist or you do not have access to it.",
        ),
        "rate_limit": Rejection(
            status=429,
            kind="requests",
            code="rate_limit_exceeded",
            message="Rate limit reached for {model}: Limit 3, Used 3, Requested 1. Please try again in 1s.",
            headers={"retry-after": "1"},
        ),
        "usage_limit": Rejection(
            status=429, kind="usage_limit_reached", message="The usage limit has been reached"
        ),
        "billing": Rejection(
            status=429,
            kind="insufficient_quota",
            code="insufficient_quota",
            message="You exceeded your current quota, please check your plan and billing details.",
        ),
        "overloaded": Rejection(
            status=503,
            kind="server_error",
            code="server_is_overloaded",
            message="The server is currently overloaded. Please try again later.",
        ),
        "context": Rejection(
            status=400,
            kind="invalid_request_error",
            code="context_length_exceeded",
            message="Your input exceeds the context window of this model. Please adjust your input and try again.",
        ),
    }
)


def rejection(trouble: Trouble, frame: Frame) -> Rejection:
    """Return how OpenAI refuses; a subscription learns from the body when its limit ends."""
    found = TROUBLES[trouble.kind]
    if trouble.kind == "usage_limit":
        reset = resets_at(trouble, frame)
        more = {"plan_type": "plus", "resets_at": reset, "resets_in_seconds": max(0, reset - frame.at)}
        return replace(found, more=more, headers=window_headers(reset))
    return replace(found, message=found.message.format(model=frame.model))


def window_headers(reset: int, *, used_percent: float = 100.0) -> dict[str, str]:
    """Return what codex is told of its five-hour window: also for a reply's headers."""
    prefix = "x-codex-primary"
    return {
        f"{prefix}-used-percent": str(used_percent),
        f"{prefix}-window-minutes": "300",
        f"{prefix}-reset-at": str(reset),
    }


def error(rejection: Rejection) -> dict[str, Any]:
    """Return a refusal as the body of an answer."""
    about = {"message": rejection.message, "type": rejection.kind, "param": None, "code": rejection.code}
    return {"error": {**about, **rejection.more}}
