"""Output that the program never should print, and some day will."""

import json
import pickle
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import each_case

from loopwright.adapters.agents.claude.claude import ClaudeAgent
from loopwright.core.values.failures import RULES, Failure, Level
from loopwright.ports import AgentEvent, AgentResult, Exit, OutputLine

AGENT = ClaudeAgent()
GOOD: dict[str, Any] = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "done",
    "terminal_reason": "completed",
    "num_turns": 1,
    "total_cost_usd": 0.5,
    "session_id": "s",
}
INIT = {"type": "system", "subtype": "init", "session_id": "s", "model": "m", "claude_code_version": "1"}


def run(*texts: str | dict[str, Any], code: int | None = 0) -> tuple[AgentResult, list[AgentEvent]]:
    state, events = AGENT.initial(), []
    for text in texts:
        line = OutputLine(offset=0, stream="out", text=text if isinstance(text, str) else json.dumps(text))
        step = AGENT.fold(state, line)
        state = step.state
        events.extend(step.events)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    how = Exit(code=code, ended_by="itself", started_at=at, ended_at=at, output_bytes=0, output_sha256="")
    assert pickle.loads(pickle.dumps(state)) == state
    return AGENT.result(state, how), events


ODD = {
    "nothing": "",
    "prose": "Segmentation fault",
    "half a line": json.dumps(GOOD)[:-10],
    "a list": "[1, 2]",
    "a number": "7",
    "null": "null",
    "no type": "{}",
    "type is no text": '{"type": {"a": []}}',
    "type is new": '{"type": "telepathy", "subtype": ["x"]}',
    "binary": "\x00\x1b[31m\ufffd",
    "too deep": '{"type":' + "[" * 100_000,
    "too deep inside": '{"type":"assistant","message":' * 5_000,
    "a number without end": '{"type":"result","num_turns":' + "9" * 10_000 + "}",
    "infinite": '{"type":"rate_limit_event","rate_limit_info":{"resetsAt":Infinity,"utilization":NaN}}',
    "no message": '{"type":"assistant"}',
    "message is text": '{"type":"assistant","message":"hi"}',
    "content is text": '{"type":"user","message":{"content":"hi"}}',
    "blocks are numbers": '{"type":"assistant","message":{"content":[1,null,"x"]}}',
    "wrong kinds": '{"type":"system","subtype":"init","session_id":1,"model":[],"claude_code_version":{}}',
}


@pytest.mark.capability("C027")
@each_case("text", ODD.values(), ids=ODD.keys())
def test_an_odd_line_changes_nothing_about_the_judgement(text: str) -> None:
    result, events = run(INIT, text, GOOD)
    assert result.claimed
    assert result.cost_micros == 500_000
    assert events[-1].kind == "Finished"


def test_what_is_not_understood_is_kept_as_raw_text() -> None:
    for name in ("prose", "half a line", "type is new", "too deep", "a list"):
        _, events = run(ODD[name])
        assert [event.kind for event in events] == ["Raw"], name
        assert events[0].text


@pytest.mark.capability("C027")
def test_a_huge_line_becomes_a_small_event() -> None:
    text = {"type": "assistant", "message": {"content": [{"type": "text", "text": "x" * 5_000_000}]}}
    _, events = run(text, "y" * 20_000_000)
    assert [event.kind for event in events] == ["Text", "Raw"]
    assert all(len(event.text) < 5_000 for event in events)


def test_text_that_no_database_takes_is_mended() -> None:
    _, events = run('{"type":"assistant","message":{"content":[{"type":"text","text":"a\\u0000b\\ud800c"}]}}')
    assert events[0].text == "ab?c"


@pytest.mark.trap("error with exit 0")
@each_case(
    "change",
    [
        {"is_error": True},
        {"is_error": None},
        {"is_error": "false"},
        {"is_error": 0},
        {"terminal_reason": "something_new"},
    ],
)
def test_only_a_plainly_good_result_is_a_claim(change: dict[str, Any]) -> None:
    assert run(INIT, {**GOOD, **change})[0].failure is Failure.AGENT_ERROR


def test_a_result_without_a_reason_is_judged_by_the_rest() -> None:
    assert run(INIT, {key: value for key, value in GOOD.items() if key != "terminal_reason"})[0].claimed


@each_case("cost", [None, "0.5", True, -1, float("nan"), float("inf"), [], 10**30])
def test_a_cost_that_is_no_amount_is_unknown(cost: object) -> None:
    assert run(INIT, {**GOOD, "total_cost_usd": cost})[0].cost_micros is None


def test_a_run_that_prints_nothing_and_exits_zero_has_crashed() -> None:
    assert run()[0].failure is Failure.CRASH


@pytest.mark.trap("random crash")
def test_a_program_that_breaks_down_in_the_middle_is_started_again_and_no_work_is_blamed() -> None:
    words = {"type": "assistant", "message": {"content": [{"type": "text", "text": "I begin."}]}}
    broken = "Error: No messages returned\n    at process.processTicksAndRejections"
    result, _ = run(INIT, words, broken, code=1)
    assert result.failure is Failure.CRASH
    assert RULES[Failure.CRASH].level is Level.CALL


@pytest.mark.capability("C029")
@each_case("code", [1, 2, 126, 127])
def test_a_program_that_fails_before_it_streams_could_not_start(code: int) -> None:
    result, _ = run("error: unknown option '--nonsense'", code=code)
    assert result.failure is Failure.CANNOT_START
    assert "unknown option" in result.detail


def test_an_error_that_was_overcome_is_forgotten() -> None:
    failed = {"type": "assistant", "error": "authentication_failed", "message": {"content": []}}
    fine = {"type": "assistant", "message": {"content": []}}
    assert run(INIT, failed, fine, {**GOOD, "is_error": True})[0].failure is Failure.AGENT_ERROR


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["subtype", "message", "error", "is_error", "usage", "permission_denials", "rate_limit_info", "errors",
     "total_cost_usd", "tool_use_result", "api_error_params", "result", "session_id"]
)  # fmt: skip
TYPES = st.sampled_from(["system", "assistant", "user", "result", "rate_limit_event"])
BLOCKS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["text", "tool_use", "tool_result", "thinking"])},
        optional={
            "text": JSON,
            "input": JSON,
            "content": JSON,
            "id": JSON,
            "tool_use_id": JSON,
            "name": JSON,
        },
    ),
    max_size=3,
)
MESSAGES = st.dictionaries(st.just("content"), JSON | BLOCKS)
EVENTS = st.builds(
    lambda kind, rest, message: {**rest, **message, "type": kind},
    TYPES,
    st.dictionaries(KEYS, JSON, max_size=4),
    st.just({}) | st.builds(lambda message: {"message": message}, MESSAGES),
)


@pytest.mark.capability("C027")
@settings(deadline=None)
@given(st.lists(EVENTS.map(json.dumps) | st.text(max_size=50), max_size=6), st.none() | st.integers(-15, 255))
def test_no_output_at_all_makes_the_codec_raise(texts: list[str], code: int | None) -> None:
    result, events = run(*texts, code=code)
    assert result.claimed is (result.failure is None)
    for event in events:
        json.dumps(dict(event.data))
        event.text.encode()
