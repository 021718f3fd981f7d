"""What a run of Claude Code came to: the rules by which its last words and its end are judged."""

import re
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from loopwright.adapters.agents import endings
from loopwright.adapters.agents.claude.claude_dialogue import ClaudeState, spent
from loopwright.adapters.agents.claude.claude_stream import Ending, Seen
from loopwright.adapters.agents.service_errors import by_status
from loopwright.core.values.failures import Failure
from loopwright.ports import AgentResult, Exit

_BY_REASON: Final[Mapping[str, Failure]] = MappingProxyType(
    {
        "prompt_too_long": Failure.CONTEXT,
        "max_turns": Failure.TURNS,
        "error_max_turns": Failure.TURNS,
        "budget_exhausted": Failure.BUDGET,
        "error_max_budget_usd": Failure.BUDGET,
        # Loopwright did not interrupt it (that is known before), so something else on this machine did.
        "aborted_streaming": Failure.CRASH,
        "aborted_tools": Failure.CRASH,
    }
)
_BY_ERROR: Final[Mapping[str, Failure]] = MappingProxyType(
    {
        "usage_limit_reached": Failure.USAGE_LIMIT,
        "connection_failed": Failure.ENVIRONMENT,
        "max_output_tokens": Failure.CONTEXT,
        "authentication_failed": Failure.AUTH,
        "billing_error": Failure.BILLING,
        "rate_limit": Failure.RATE_LIMIT,
        "overloaded": Failure.OVERLOADED,
        "server_error": Failure.OVERLOADED,
        "model_not_found": Failure.MODEL,
    }
)
_BY_WORDS: Final = (
    # The conversation to continue is gone, or taken: the engine lets it begin another.
    (re.compile(r"No conversation found|Session ID \S+ is already in use"), Failure.CRASH),
    (
        re.compile(r"hit your .*limit|usage limit reached|reached your .*usage limits", re.IGNORECASE),
        Failure.USAGE_LIMIT,
    ),
    (re.compile(r"not logged in|invalid api key|please run /login", re.IGNORECASE), Failure.AUTH),
    (re.compile(r"credit balance is too low", re.IGNORECASE), Failure.BILLING),
    (re.compile(r"prompt is too long", re.IGNORECASE), Failure.CONTEXT),
    (re.compile(r"API Error:.*\b429\b"), Failure.RATE_LIMIT),
    (re.compile(r"API Error:.*(?:\b5\d\d\b|overloaded)", re.IGNORECASE), Failure.OVERLOADED),
)
"""Last resort, for output without the fields above."""
_REGAINED: Final = re.compile(r"regain access on (\d{4}-\d\d-\d\d) at (\d\d:\d\d) UTC")
"""How the service says to the owner of a key when the limit ends that was set for it."""


def judge(state: ClaudeState, exit: Exit) -> AgentResult:
    """Judge the run: only a clean result line and a clean exit together are a claim of success."""
    seen = state.seen
    # A run that was stopped for another reason was not stopped to ask.
    asked = () if exit.ended_by == "asked" else state.asked
    failure, detail, retry_at = (None, "", None) if asked else _judge(state, exit)
    ending, claimed = seen.ending, failure is None and not asked
    cost_micros, usage = spent(state)
    return AgentResult(
        claimed=claimed,
        summary=ending.text if ending and not ending.is_error else "",
        failure=failure,
        detail="; ".join(part for part in (detail, "" if asked else _denials(ending)) if part),
        retry_at=retry_at,
        usage=usage,
        cost_micros=cost_micros,
        session_ref=seen.session_ref,
        model=seen.model,
        version=seen.version,
        asked=asked,
        structured=ending.structured if ending and claimed else None,
        windows=seen.windows,
    )


def _judge(state: ClaudeState, exit: Exit) -> tuple[Failure | None, str, datetime | None]:
    ended = endings.ended_by_us(exit)
    if ended is not None:
        waited = _while_waiting(state.seen) if ended[0] in (Failure.TIMEOUT, Failure.HANG) else None
        if waited is not None:
            return waited[0], f"{ended[1]}: {waited[1]}", _again_at(waited[0], state.seen, "", exit)
        return (*ended, None)
    seen, ending = state.seen, state.seen.ending
    fine = ending is not None and not ending.is_error and ending.terminal_reason in (None, "completed")
    if state.broken_tools:
        return Failure.TOOL, f"these tool servers do not work: {', '.join(state.broken_tools)}", None
    if state.interrupted and not fine:
        return Failure.CANCELLED, "it was interrupted", None
    if ending is None:
        return _without_result(seen, exit)
    if not fine:
        failure = _classify(state, ending)
        detail = ending.text or ending.terminal_reason or ending.subtype or "it reported an error"
        return failure, detail, _again_at(failure, seen, ending.text, exit)
    if exit.ended_by == "itself" and exit.code != 0:
        return Failure.CRASH, f"it reported success but {endings.in_words(exit.code)}", None
    if state.request is not None and state.request.schema is not None and ending.structured is None:
        return Failure.AGENT_ERROR, "it gave no result that fits the schema", None
    return None, "", None


def _while_waiting(seen: Seen) -> tuple[Failure, str] | None:
    """Return what it waited for when it was ended."""
    if seen.retried is None:
        return None
    status, error = seen.retried
    failure = by_status(status) or _BY_ERROR.get(error, Failure.ENVIRONMENT)
    answered = f"its service answered with {status or error}"
    return failure, "it could not reach its service" if failure is Failure.ENVIRONMENT else answered


def _again_at(failure: Failure, seen: Seen, text: str, exit: Exit) -> datetime | None:
    """Return when the service said that it may be asked again."""
    if failure is Failure.USAGE_LIMIT:
        return seen.resets_at or _regained(text)
    if failure in (Failure.RATE_LIMIT, Failure.OVERLOADED) and seen.wait_s is not None:
        return exit.ended_at + timedelta(seconds=seen.wait_s)
    return None


def _without_result(seen: Seen, exit: Exit) -> tuple[Failure, str, None]:
    said = " / ".join(seen.tail[-5:])
    by_words = _by_words(said)
    if by_words is not None:
        return by_words, said, None
    detail = f"it {endings.in_words(exit.code)} without a result" + (f": {said}" if said else "")
    if not seen.started and exit.code != 0 and not endings.is_signal(exit.code):
        return Failure.CANNOT_START, detail, None
    return Failure.CRASH, detail, None


def _classify(state: ClaudeState, ending: Ending) -> Failure:
    seen = state.seen
    if ending.api_status == 429 and (seen.limit_rejected or _gave_up_at_once(state)):
        return Failure.USAGE_LIMIT
    if ending.stop_reason == "refusal":
        return Failure.REFUSAL
    named = (
        _BY_REASON.get(ending.terminal_reason or ""),
        _BY_REASON.get(ending.subtype),
        _BY_ERROR.get(ending.api_error or ""),
        _BY_ERROR.get(seen.error or ""),
    )
    for failure in named:
        if failure is not None:
            return failure
    told = by_status(ending.api_status) or _by_words(ending.text)
    if told is not None:
        return told
    return Failure.AGENT_ERROR if seen.started or ending.turns else Failure.CANNOT_START


def _gave_up_at_once(state: ClaudeState) -> bool:
    """Return whether it was told to come back later than it cares to wait.

    It tries again by itself, and says so, unless the service names a wait of more than a minute, or forbids it. With a
    key instead of a subscription, this is all that it tells of a limit: not even when it ends.
    """
    may_try = state.request is None or state.request.options.get("max_retries") != 0
    return may_try and state.seen.retried is None


def _regained(text: str) -> datetime | None:
    found = _REGAINED.search(text)
    try:
        return datetime.fromisoformat(f"{found[1]}T{found[2]}+00:00") if found else None
    except ValueError:
        return None


def _by_words(text: str) -> Failure | None:
    return next((failure for pattern, failure in _BY_WORDS if pattern.search(text)), None)


def _denials(ending: Ending | None) -> str:
    if ending is None or not ending.denied:
        return ""
    counted = ", ".join(f"{name} ({count})" for name, count in sorted(Counter(ending.denied).items()))
    return f"permission was denied for {counted}"
