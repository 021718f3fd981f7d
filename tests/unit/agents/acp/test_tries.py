"""What an agent tries again by itself: how far it is let, and what comes of it when that is enough."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.cases import each_case
from tests.unit.agents.acp.recordings import request
from tests.unit.agents.acp.talk import answer, begun, end, error, line, says
from tests.wording_plugin import Wording

from loopwright.adapters.agents.acp import rpc
from loopwright.adapters.agents.acp.agent import AcpAgent
from loopwright.adapters.agents.acp.failures import limited_model
from loopwright.adapters.agents.acp.profiles import PROFILES
from loopwright.adapters.agents.acp.tries import LONGEST_PAUSE_S, MOST_TRIES
from loopwright.core.values.failures import Failure
from loopwright.ports import AgentEvent, AgentResult, Exit, OutputLine

AT = datetime(2026, 11, 16, 19, 0, tzinfo=UTC)
GEMINI, OPENCODE = (AcpAgent(profile=PROFILES[name]) for name in ("gemini", "opencode"))
EXIT = Exit(code=0, ended_by="itself", started_at=AT, ended_at=AT, output_bytes=0, output_sha256="0" * 64)


def tried(attempt: int, message: str, how: str = "with backoff") -> list[OutputLine]:
    """Return what Gemini CLI prints of a try that failed."""
    text = f"Attempt {attempt} failed: {message}. Retrying {how}..."
    return [line(one, "err") for one in text.split("\n")]


def noted(_attempt: int, message: str) -> list[OutputLine]:
    """Return what OpenCode prints of a try that failed; it does not count them."""
    told = message.replace('"', '\\"').replace("\n", "\\n")
    text = (
        'timestamp=2026-11-16T19:13:26.042Z level=ERROR run=10ffcf24 message="stream error" providerID=local '
        f'modelID=any session.id=s small=false agent=build mode=primary error.error="AI_APICallError: {told}"'
    )
    return [line(text, "err")]


PRINTS = [pytest.param(GEMINI, tried, id="gemini"), pytest.param(OPENCODE, noted, id="opencode")]
LIMIT = noted(1, "The usage limit has been reached")


def run(
    agent: AcpAgent, lines: Sequence[OutputLine], ended: Exit = EXIT
) -> tuple[AgentResult, list[AgentEvent], list[str]]:
    """Fold what is said in the middle of a turn; return the result, the events and what is written."""
    state, events, writes = begun(agent), [], []
    for one in lines:
        folded = agent.fold(state, one)
        state = folded.state
        events += folded.events
        writes += folded.writes
    return agent.result(state, ended), events, [json.loads(text).get("method") for text in writes]


@pytest.mark.capability("C029")
@each_case(
    ("message", "failure"),
    [
        ("The usage limit has been reached", Failure.USAGE_LIMIT),
        ("You exceeded your current quota, please check your plan and billing details.", Failure.BILLING),
        ("Rate limit reached for requests", Failure.RATE_LIMIT),
        ("Provider is overloaded", Failure.OVERLOADED),
    ],
)
@each_case(("agent", "prints"), PRINTS)
def test_so_many_tries_in_a_row_are_enough(
    agent: AcpAgent, prints: Any, message: str, failure: Failure
) -> None:
    most = MOST_TRIES[failure]
    before = [one for n in range(1, most) for one in prints(n, message)]
    result, events, written = run(agent, [*before, says("At last."), end()])
    assert result.claimed, "what it gets over by itself is no failure"
    assert [event.kind for event in events].count("Retry") == most - 1
    assert written == []

    result, events, written = run(agent, [*before, *prints(most, message), end("cancelled")])
    assert (result.claimed, result.failure, result.retry_at) == (False, failure, None)
    assert result.detail.startswith(message)
    assert written == ["session/cancel"]
    assert [event.data for event in events if event.kind == "Error"] == [{"class": failure.value}]


@each_case(
    ("message", "how", "failure", "after_s"),
    [
        ("Rate limit reached", "after 3600000ms", Failure.USAGE_LIMIT, 3600),
        ("Usage limit reached", "after 4000ms", Failure.USAGE_LIMIT, 4),
        ("Usage limit reached. It will reset in 1 hour", "with backoff", Failure.USAGE_LIMIT, 3600),
        ("You have exhausted your capacity on this model. Your quota will reset after 8h44m7s.", "after 37000000ms",
         Failure.USAGE_LIMIT, 31447),
        ("The model is overloaded", "after 600000ms", Failure.OVERLOADED, 600),
    ],
)  # fmt: skip
def test_a_service_that_wants_to_be_asked_much_later_is_not_waited_for(
    message: str, how: str, failure: Failure, after_s: int
) -> None:
    result, _, written = run(GEMINI, [*tried(1, message, how), end("cancelled")])
    assert (result.failure, result.retry_at) == (failure, AT + timedelta(seconds=after_s))
    assert written == ["session/cancel"]


@each_case(
    ("words", "asked", "model"),
    [
        ("You have exhausted your daily quota on this model.", "pro-1", "pro-1"),
        ("You have exhausted your capacity on this model. Your quota will reset after 8h.", "pro-1", "pro-1"),
        ("You have exhausted your daily quota on this model.", None, ""),
        ("You've hit your Opus limit · resets 9:44pm (UTC)", "claude-opus-5", "Opus"),
        ("You've hit your weekly limit · resets 9:44pm (UTC)", "claude-opus-5", ""),
    ],
)
def test_words_tell_a_limit_of_one_model_from_one_of_the_account(
    words: str, asked: str | None, model: str
) -> None:
    assert limited_model(words, asked) == model


@each_case(
    ("message", "how", "after_s"),
    [
        ("Rate limit reached", "after 40000ms", 40),
        ("Rate limit reached. Please retry in 30s.", "after 40000ms", 30),
        ("Rate limit reached", "with backoff", None),
    ],
)
def test_a_service_that_asks_to_slow_down_says_for_how_long(
    message: str, how: str, after_s: int | None
) -> None:
    lines = [one for n in range(1, MOST_TRIES[Failure.RATE_LIMIT] + 1) for one in tried(n, message, how)]
    result, _, _ = run(GEMINI, [*lines, end("cancelled")])
    again_at = None if after_s is None else AT + timedelta(seconds=after_s)
    assert (result.failure, result.retry_at) == (Failure.RATE_LIMIT, again_at)


def test_a_limit_that_is_over_soon_is_waited_for() -> None:
    words = "You have exhausted your capacity on this model. Your quota will reset after 53s."
    pause = f"after {int(LONGEST_PAUSE_S) * 1000}ms"
    result, _, written = run(GEMINI, [*tried(1, words, pause), says("Done."), end()])
    assert result.claimed
    assert written == []


def test_what_is_said_of_a_try_may_go_over_several_lines() -> None:
    words = "Please check your plan and billing details.\n* Quota exceeded for metric: x"
    more = f"{words}, limit: 20\nPlease retry in 200s.\nSuggested retry after 200s."
    lines = [*tried(1, f"{words}, limit: 20", "after 5000ms"), *tried(2, more, "after 200000ms")]
    lines = [replace(one, text=f"[2026-11-16T19:17:57.792Z] [WARN] {one.text}") if "Attempt" in one.text else one
             for one in lines]  # fmt: skip
    result, events, _ = run(GEMINI, [*lines, end("cancelled")])
    assert (result.failure, result.retry_at) == (Failure.USAGE_LIMIT, AT + timedelta(seconds=200))
    assert [event.data.get("attempt") for event in events if event.kind == "Retry"] == [1]


@each_case(
    ("text", "failure"),
    [
        ("Attempt 3 failed with status 429. Retrying with backoff... ApiError: {", Failure.RATE_LIMIT),
        (
            "Attempt 3 failed with 429 error (no Retry-After header). Retrying with backoff...",
            Failure.RATE_LIMIT,
        ),
        ("Attempt 6 failed with status 503. Retrying with backoff...", Failure.OVERLOADED),
    ],
)
def test_a_status_without_words_tells_enough(text: str, failure: Failure, wording: Wording) -> None:
    result, _, _ = run(GEMINI, [line(text, "err"), end("cancelled")])
    assert result.failure is failure
    wording(result.detail)


@each_case(
    "text",
    [
        "Attempt 9 failed. Retrying with backoff...",
        "Attempt 9 failed: something odd. Retrying with backoff...",
        "Attempt 9 failed: Rate limit reached. Max attempts reached",
        "Attempt 99999 failed: Rate limit reached. Retrying with backoff...",
        "Retrying with backoff...",
    ],
)
def test_what_tells_of_no_limit_stops_nothing(text: str) -> None:
    result, _, written = run(GEMINI, [line(text, "err"), says("Done."), end()])
    assert result.claimed
    assert written == []


def test_who_gets_further_in_between_is_not_in_a_row() -> None:
    once = noted(1, "Rate limit reached")
    result, events, written = run(OPENCODE, [*once, *once, says("One."), *once, *once, says("Two."), end()])
    assert result.claimed
    assert [event.data["attempt"] for event in events if event.kind == "Retry"] == [1, 2, 1, 2]
    assert written == []


def test_the_words_of_a_log_are_read_as_they_were_meant() -> None:
    told = noted(1, 'Weekly "usage limit" reached.\nResets in 19hr')
    result, _, _ = run(OPENCODE, [*told, end()])
    assert (result.failure, result.retry_at) == (Failure.USAGE_LIMIT, AT + timedelta(hours=19))
    assert result.detail.startswith('Weekly "usage limit" reached. Resets in 19hr')


def test_an_empty_line_after_it_is_no_further_try() -> None:
    result, events, _ = run(
        OPENCODE, [*noted(1, "Rate limit reached"), *[line("", "err")] * 5, says("Done."), end()]
    )
    assert result.claimed
    assert [event.kind for event in events].count("Retry") == 1


def test_a_title_that_cannot_be_had_is_nothing() -> None:
    (told,) = LIMIT
    aside = replace(told, text=told.text.replace("small=false", "small=true"))
    result, _, written = run(OPENCODE, [aside, says("Done."), end()])
    assert result.claimed
    assert written == []


def test_only_what_it_prints_itself_and_while_it_works_counts() -> None:
    (words,) = LIMIT
    for agent, lines in (
        (AcpAgent(profile=PROFILES["goose"]), [words, says("Done."), end()]),
        (OPENCODE, [replace(words, stream="out"), says("Done."), end()]),
        (OPENCODE, [says(words.text), end()]),
        (OPENCODE, [says("Done."), end(), words]),
    ):
        result, _, written = run(agent, lines)
        assert result.claimed, lines
        assert written == []


def test_it_is_stopped_once_and_what_it_says_of_that_does_not_matter() -> None:
    for last in (end("cancelled"), end("end_turn"), error(rpc.PROMPT, -32603, "aborted")):
        result, _, written = run(OPENCODE, [says("I begin."), *LIMIT, *LIMIT, last])
        assert (result.claimed, result.failure) == (False, Failure.USAGE_LIMIT)
        assert written == ["session/cancel"]


def test_what_it_got_over_at_that_moment_is_done() -> None:
    result, _, _ = run(OPENCODE, [*LIMIT, says("Done all the same."), end()])
    assert result.claimed


@each_case(
    ("ended_by", "failure"), [("deadline", "usage_limit"), ("idle", "usage_limit"), ("asked", "cancelled")]
)
def test_who_does_not_listen_is_ended_and_known_for_what_it_met(ended_by: Any, failure: str) -> None:
    result, _, _ = run(OPENCODE, LIMIT, replace(EXIT, code=-15, ended_by=ended_by))
    assert result.failure == failure


def test_who_only_reads_is_shown_the_same() -> None:
    lines = [answer(rpc.SESSION, sessionId="s"), *LIMIT, end()]
    state, kinds = OPENCODE.initial(), []
    for one in lines:
        folded = OPENCODE.fold(state, one)
        state = folded.state
        kinds += [event.kind for event in folded.events]
    assert kinds == ["Started", "Raw", "Error", "Finished"]


def test_what_gemini_notes_for_its_makers_is_kept_apart() -> None:
    noted = [
        "[2026-11-16T19:17:57.792Z] [DEBUG] Experiments loaded {",
        "  flags: []",
        "}",
        "Something is wrong.",
    ]
    state, seen = GEMINI.initial(request()), []
    for text in noted:
        folded = GEMINI.fold(state, line(text, "err"))
        state = folded.state
        seen += [event.data for event in folded.events]
    assert seen == [{"type": "log"}] * 3 + [{"stream": "err"}]
    assert state.tail == ("Something is wrong.",)
