"""What Codex's errors mean: by their names, by the status of the service, and by their words as the last resort."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from loopwright.adapters.agents.endings import by_status
from loopwright.adapters.agents.output import readable, whole_number
from loopwright.core.values.failures import Failure

_BY_NAME: Final[Mapping[str, Failure]] = MappingProxyType(
    {
        "contextWindowExceeded": Failure.CONTEXT,
        "sessionBudgetExceeded": Failure.BUDGET,
        "usageLimitExceeded": Failure.USAGE_LIMIT,
        "rateLimitExceeded": Failure.RATE_LIMIT,
        "flexUnavailable": Failure.OVERLOADED,
        "serverOverloaded": Failure.OVERLOADED,
        "internalServerError": Failure.OVERLOADED,
        "cyberPolicy": Failure.REFUSAL,
        "misalignmentPolicyViolation": Failure.REFUSAL,
        "unauthorized": Failure.AUTH,
        "sandboxError": Failure.ENVIRONMENT,
    }
)
_CONNECTION: Final = frozenset(
    {
        "httpConnectionFailed",
        "responseStreamConnectionFailed",
        "responseStreamDisconnected",
        "responseTooManyFailedAttempts",
    }
)
"""Errors that carry the status of the service, if there was an answer at all."""
_UNPAID: Final = re.compile(
    r"quota exceeded|billing details|insufficient_quota|upgrade to plus|out of credits|spend cap",
    re.IGNORECASE,
)
"""These come under the same name as a usage limit, but waiting does not help."""
_BY_WORDS: Final = (
    # The conversation to continue is gone: the engine lets it begin another.
    (re.compile(r"no rollout found|thread not found", re.IGNORECASE), Failure.CRASH),
    (re.compile(r"required MCP servers? failed", re.IGNORECASE), Failure.TOOL),
    (_UNPAID, Failure.BILLING),
    (re.compile(r"hit your usage limit", re.IGNORECASE), Failure.USAGE_LIMIT),
    (
        re.compile(
            r"context_length_exceeded|context window|max_output_tokens|exceeds the maximum length",
            re.IGNORECASE,
        ),
        Failure.CONTEXT,
    ),
    (
        re.compile(
            r"not logged in|codex login|sign in again|Missing environment variable|token.* refreshed",
            re.IGNORECASE,
        ),
        Failure.AUTH,
    ),
    (
        re.compile(r"model_not_found|does not exist or you do not have access|model is not supported"),
        Failure.MODEL,
    ),
    (re.compile(r"flagged|usage policy|cybersecurity|content_filter", re.IGNORECASE), Failure.REFUSAL),
    (re.compile(r"rate limit exceeded", re.IGNORECASE), Failure.RATE_LIMIT),
    (re.compile(r"high demand|at capacity|overloaded", re.IGNORECASE), Failure.OVERLOADED),
    (
        re.compile(r"stream disconnected|error sending request|connection failed", re.IGNORECASE),
        Failure.ENVIRONMENT,
    ),
)
_STATUS_IN_WORDS: Final = re.compile(r"(?:unexpected status|last status:) (\d{3})\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An error as Codex told it."""

    message: str
    name: str = ""
    """Of its kind; `exec` does not tell it."""
    status: int | None = None
    """What the service answered."""


def problem(error: Mapping[str, Any]) -> Problem:
    """Read an error of a turn."""
    message, details = readable(error.get("message")), readable(error.get("additionalDetails"))
    info = error.get("codexErrorInfo")
    name, status = readable(info, 100), None
    if isinstance(info, dict) and len(info) == 1:
        ((named, facts),) = info.items()
        name = readable(named, 100)
        status = whole_number(facts.get("httpStatusCode")) if isinstance(facts, dict) else None
    return Problem(message=" / ".join(filter(None, (message, details))), name=name, status=status)


def failure(of: Problem) -> Failure:
    """Return what kind of failure an error is."""
    if of.name == "usageLimitExceeded" and _UNPAID.search(of.message):
        return Failure.BILLING
    if of.name in _BY_NAME:
        return _BY_NAME[of.name]
    told = _STATUS_IN_WORDS.search(of.message)
    status = of.status or (int(told[1]) if told else None)
    known = by_status(status) or by_words(of.message)
    if known is not None:
        return known
    return Failure.ENVIRONMENT if of.name in _CONNECTION else Failure.AGENT_ERROR


def by_words(text: str) -> Failure | None:
    """Return what kind of failure a text is about, if it says so."""
    return next((failure for pattern, failure in _BY_WORDS if pattern.search(text)), None)
