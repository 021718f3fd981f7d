"""What an agent's errors mean: by its own names for them, by codes, and by their words as the last resort."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from loopwright.adapters.agents.acp import rpc
from loopwright.adapters.agents.acp.state import Problem
from loopwright.adapters.agents.endings import by_status, resets_in
from loopwright.adapters.agents.output import json_object, object_in, readable
from loopwright.core.values.failures import Failure

_BY_KIND: Final[Mapping[str, Failure]] = MappingProxyType(
    {
        # claude-agent-acp: data.errorKind
        "authentication_failed": Failure.AUTH,
        "billing_error": Failure.BILLING,
        "rate_limit": Failure.RATE_LIMIT,
        "overloaded": Failure.OVERLOADED,
        "server_error": Failure.OVERLOADED,
        "model_not_found": Failure.MODEL,
        "max_output_tokens": Failure.CONTEXT,
        "transport_lost": Failure.CRASH,
        "worker_shutdown": Failure.CRASH,
        # opencode: data.errorName
        "ProviderAuthError": Failure.AUTH,
        "MessageOutputLengthError": Failure.CONTEXT,
        "ContextOverflowError": Failure.CONTEXT,
        # codex-acp: data.codex_error_info
        "usage_limit_exceeded": Failure.USAGE_LIMIT,
        "context_window_exceeded": Failure.CONTEXT,
        "unauthorized": Failure.AUTH,
        "server_overloaded": Failure.OVERLOADED,
    }
)
_FIRST_WORDS: Final = (
    # These come under the names and codes of something else.
    # Google's for a limit by the minute; its limits by the day are told apart by Gemini CLI itself.
    (re.compile(r"quota exceeded for (?:quota )?metric(?!.{0,200}limit: 0\b)", re.IGNORECASE | re.DOTALL),
     Failure.RATE_LIMIT),
    (re.compile(r"hit your .*limit|usage limit|exhausted your (?:daily|weekly) quota", re.IGNORECASE),
     Failure.USAGE_LIMIT),
    (re.compile(r"billing details|credit balance|insufficient.quota|payment required", re.IGNORECASE),
     Failure.BILLING),
    (re.compile(r"prompt.{0,30}too long|context (?:length|window|limit)|number of tokens allowed", re.IGNORECASE),
     Failure.CONTEXT),
    (re.compile(r"\bmodels?\b.{0,80}(?:not found|(?:does|may) not exist|not supported)", re.IGNORECASE),
     Failure.MODEL),
    (re.compile(r"api.?key (?:is )?(?:not valid|missing|invalid)|API_KEY_INVALID", re.IGNORECASE), Failure.AUTH),
)  # fmt: skip
_LAST_WORDS: Final = (
    (re.compile(r"api.?key|authenticat|auth method|insufficient permissions|forbidden|unauthori[sz]ed|"
                r"log(?:ged)? ?in\b", re.IGNORECASE),
     Failure.AUTH),
    (re.compile(r"rate.?limit|too many requests|resource.{0,10}exhausted|exhausted your capacity", re.IGNORECASE),
     Failure.RATE_LIMIT),
    (re.compile(r"overloaded|high demand|at capacity|internal server error|service unavailable", re.IGNORECASE),
     Failure.OVERLOADED),
    (re.compile(r"ECONNREFUSED|ENOTFOUND|ETIMEDOUT|fetch failed|connection (?:refused|error|failed)|"
                r"error sending request", re.IGNORECASE),
     Failure.ENVIRONMENT),
)  # fmt: skip
_STATUS_IN_WORDS: Final = re.compile(
    r'(?:^|\bHTTP |\bstatus |\berror:? |\(|"code":)\s?([45]\d\d)\b', re.IGNORECASE
)

_OF_ONE_MODEL: Final = re.compile(
    r"hit your (?P<kind>opus|sonnet|haiku|fable) limit|(?:quota|capacity) on this model", re.IGNORECASE
)
"""A limit of one model alone: Claude Code names its kind, Gemini CLI means the one that was asked."""

_RESETS: Final = re.compile(
    r"\bresets (?:(?P<month>[A-Z][a-z]{2}) (?P<day>\d{1,2}), )?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?(?P<half>am|pm) \((?P<zone>[\w/+-]+)\)"
)


def problem(error: object) -> Problem:
    """Read an error of the protocol."""
    facts = object_in(error)
    data = facts.get("data")
    details = object_in(data)
    named = next(
        (
            name
            for key in ("errorKind", "errorName", "codex_error_info")
            if (name := readable(details.get(key), 100))
        ),
        "",
    )
    code = facts.get("code")
    words = (facts.get("message"), details.get("details"), details.get("message"), data)
    told = [_unwrapped(text) for one in words if (text := readable(one, 2_000))]
    return Problem(
        message=": ".join(dict.fromkeys(told)) or "it reported an error without words",
        code=code if isinstance(code, int) and not isinstance(code, bool) else None,
        kind=named,
    )


def _unwrapped(text: str) -> str:
    """Return the words in an answer of a service that was handed on as it came."""
    inner = object_in((json_object(text) or {}).get("error"))
    return readable(inner.get("message"), 2_000) or text


def failure(of: Problem) -> Failure:
    """Return what kind of failure an error is."""
    worded = by_words(of.message, _FIRST_WORDS)
    if worded is not None:
        return worded
    if of.kind in _BY_KIND:
        return _BY_KIND[of.kind]
    if of.code == rpc.AUTH_REQUIRED:
        return Failure.AUTH
    told = _STATUS_IN_WORDS.search(of.message)
    # Some put the status of the service into the place of the code.
    known = by_status(of.code) or by_status(int(told[1]) if told else None)
    return known or by_words(of.message, _LAST_WORDS) or Failure.AGENT_ERROR


def by_words(
    text: str, table: tuple[tuple[re.Pattern[str], Failure], ...] = (*_FIRST_WORDS, *_LAST_WORDS)
) -> Failure | None:
    """Return what kind of failure a text is about, if it says so."""
    return next((failure for pattern, failure in table if pattern.search(text)), None)


def limited_model(text: str, asked: str | None) -> str:
    """Return the one model that the words of a limit are about; empty where it is the account, or unknown."""
    found = _OF_ONE_MODEL.search(text)
    return "" if found is None else found["kind"] or asked or ""


def resets_at(text: str, after: datetime) -> datetime | None:
    """Return the time that a text like `resets 9:44pm (UTC)` means: the next one of that name."""
    found = _RESETS.search(text)
    if found is None:
        ahead_s = resets_in(text)
        return None if ahead_s is None else after + timedelta(seconds=ahead_s)
    try:
        here = after.astimezone(ZoneInfo(found["zone"]))
        hour = int(found["hour"]) % 12 + (12 if found["half"] == "pm" else 0)
        told = here.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
        if found["month"]:
            date = datetime.strptime(f"{found['month']} {found['day']} {here.year}", "%b %d %Y")  # noqa: DTZ007
            told = told.replace(month=date.month, day=date.day)
            told = told if told >= here else told.replace(year=told.year + 1)
    except (ValueError, OverflowError, OSError, ZoneInfoNotFoundError):
        return None
    told = told if found["month"] or told >= here else told + timedelta(days=1)
    return told.astimezone(UTC)
