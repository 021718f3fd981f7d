"""Judging what the real program printed, recorded case by case, over both of its protocols."""

import json
import pickle
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.cases import each_case
from tests.unit.agents.codex.codex_messages import AGENT, ended
from tests.wording_plugin import Wording

from loopwright.core.rows.model import Usage
from loopwright.core.values.failures import Failure
from loopwright.core.values.permissions import Permissions
from loopwright.ports import AgentEvent, AgentRequest, AgentResult, Exit, OutputLine, Spent

STREAMS = Path(__file__).parents[3] / "data" / "codex"
REQUEST = AgentRequest(
    prompt="go",
    workspace=Path("/sandbox/work/appsrv"),
    run_directory=Path("/run"),
    permissions=Permissions(),
)

# The recorded exit code, and what the run must be taken for; None is a claim of success.
CASES: dict[str, tuple[int, Failure | None]] = {
    "x_400": (1, Failure.CONTEXT),
    "x_401": (1, Failure.AUTH),
    "x_429": (1, Failure.RATE_LIMIT),
    "x_429quota": (1, Failure.BILLING),
    "x_429usage": (1, Failure.USAGE_LIMIT),
    "x_500": (1, Failure.OVERLOADED),
    "x_edit": (0, None),
    "x_edit_sh": (0, None),
    "x_edit_ws": (0, Failure.ENVIRONMENT),
    "x_edit_wstmp": (0, None),
    "x_failed": (1, Failure.RATE_LIMIT),
    "x_mcp": (0, None),
    "x_nokey": (1, Failure.AUTH),
    "x_resume": (0, None),
    "x_resume_bad": (1, Failure.CRASH),
    "x_resume_last": (0, None),
    "x_ro": (0, None),
    "x_ro_tmp": (0, None),
    "x_say": (0, None),
    "x_schema": (0, None),
    "x_sigint": (1, Failure.CRASH),
    "x_sigint_sh": (1, Failure.CRASH),
    "x_sigterm": (-15, Failure.CRASH),
    "x_sigterm_sh": (-15, Failure.CRASH),
}
TURNS = ("EDIT", "SLOW", "LIMIT")
OURS = {
    "initialize": "initialize",
    "thread/start": "thread",
    "turn/start": "turn",
    "turn/interrupt": "interrupt",
}


def lines(name: str) -> list[OutputLine]:
    """Return what `exec` printed in one case, or what the app server did in one turn, answering to our ids."""
    if name in TURNS:
        return [OutputLine(offset=0, stream="out", text=json.dumps(one)) for one in _turn(name)]
    found = []
    for stream in ("out", "err"):
        path = STREAMS / f"{name}.{stream}"
        for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            found.append(OutputLine(offset=len(found), stream=stream, text=text))
    return found


def _turn(name: str) -> list[dict[str, Any]]:
    heard: list[dict[str, Any]] = []
    ids: dict[Any, str] = {}
    began = turn = ""
    for line in (STREAMS / "appserver.jsonl").read_text(encoding="utf-8").splitlines():
        message = json.loads(line[3:])
        if line.startswith("->") and "method" in message:
            ids[message.get("id")] = OURS.get(message["method"], "")
            began = began or message["method"] * (message["method"] == "turn/start")
            turn = message["params"]["input"][0]["text"] if message["method"] == "turn/start" else turn
        elif line.startswith("<-") and (not began or turn == name):
            is_answer = "id" in message and "method" not in message
            heard.append({**message, "id": ids[message["id"]]} if is_answer else message)
    return heard


def folded(
    name: str, *, request: AgentRequest | None = REQUEST, before: Usage | None = None
) -> tuple[Any, list[AgentEvent], list[dict[str, Any]], bool]:
    state, closed = AGENT.initial(request, before=Spent(usage=before or Usage())), False
    events: list[AgentEvent] = []
    writes: list[dict[str, Any]] = []
    for line in lines(name):
        assert not closed, "nothing is to be done after the end of the turn"
        step = AGENT.fold(state, line)
        state, closed = step.state, step.close
        events.extend(step.events)
        writes.extend(json.loads(text) for text in step.writes)
    return state, events, writes, closed


def judged(name: str, exit: Exit | None = None, **more: Any) -> AgentResult:
    return AGENT.result(folded(name, **more)[0], exit or ended(CASES[name][0] if name in CASES else 0))


def test_every_recorded_stream_has_a_row() -> None:
    assert {path.stem for path in STREAMS.iterdir()} == {*CASES, "appserver"}


@pytest.mark.capability("C028", "C029")
@each_case("name", CASES)
def test_a_recorded_run_is_taken_for_what_it_was(name: str) -> None:
    result = judged(name)
    assert result.failure is CASES[name][1], result
    assert result.claimed is (CASES[name][1] is None)
    assert result.claimed or result.detail


@each_case("name", [*CASES, *TURNS])
def test_folding_again_from_the_start_gives_the_same_state_which_can_be_pickled(name: str) -> None:
    first, second = folded(name), folded(name)
    assert first == second
    assert pickle.loads(pickle.dumps(first[0])) == first[0]
    for event in first[1]:
        assert json.loads(json.dumps(dict(event.data))) == dict(event.data)


@each_case("name", [*CASES, *TURNS])
def test_without_a_request_the_same_is_told_and_nothing_is_written_to_begin_with(name: str) -> None:
    state, events, writes, _ = folded(name, request=None)
    assert [one.kind for one in events if one.kind != "Ask"] == [
        one.kind for one in folded(name)[1] if one.kind != "Ask"
    ]
    assert not [one for one in writes if one.get("method") in ("thread/start", "turn/start")]
    AGENT.result(state, ended(0))


@each_case(
    ("names", "options", "methods"),
    [
        (list(CASES), {"protocol": "exec"}, {"turn.completed", "turn.failed"}),
        (list(TURNS), {}, {"turn/completed"}),
    ],
)
def test_the_done_pattern_finds_the_end_of_the_turn_and_no_other_line(
    names: list[str], options: dict[str, str], methods: set[str]
) -> None:
    pattern = AGENT.invocation(replace(REQUEST, options=options)).done_pattern
    assert pattern is not None
    for name in names:
        recorded = [line.text for line in lines(name)]
        if name in TURNS:
            recorded = [json.dumps(json.loads(text), separators=(",", ":")) for text in recorded]
        found = [text for text in recorded if re.search(pattern, text)]
        assert found == [
            text
            for text in recorded
            if text.startswith("{")
            and {json.loads(text).get("type"), json.loads(text).get("method")} & methods
        ]


def test_the_end_of_another_agents_turn_is_not_taken_for_the_end() -> None:
    pattern = AGENT.invocation(REQUEST).done_pattern
    assert pattern is not None
    line = '{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"%s","rootTurnId":"%s"}}}'
    assert re.search(pattern, line % ("a", "a"))
    assert not re.search(pattern, line % ("b", "a"))


class TestExec:
    def test_an_edit_is_told_step_by_step(self) -> None:
        state, events, _, _ = folded("x_edit")
        assert [event.kind for event in events if event.kind != "Raw"] == [
            "Started", "Text", "ToolStart", "ToolEnd", "ToolStart", "ToolEnd", "FileChange", "Text", "Finished",
        ]  # fmt: skip
        told = {event.kind: event for event in events}
        assert told["FileChange"].data == {"path": "/sandbox/work/x_edit/hello.txt", "change": "changed"}
        assert events[2].text == "shell cat hello.txt"
        assert events[3].data["ok"] is True
        result = AGENT.result(state, ended(0))
        assert result.summary == "Done. I changed hello.txt."
        assert result.session_ref == "01a1e08a-aa35-7461-bebc-44dc99265f08"

    def test_usage_is_counted_on_over_the_conversation_so_each_run_has_the_difference(self) -> None:
        first = Usage(input_tokens=210, output_tokens=75, cache_read_tokens=150, cache_write_tokens=0)
        assert judged("x_edit").usage == first
        second = judged("x_resume", before=first).usage
        assert second == Usage(input_tokens=70, output_tokens=25, cache_read_tokens=50, cache_write_tokens=0)
        both = Usage(input_tokens=280, output_tokens=100, cache_read_tokens=200, cache_write_tokens=0)
        assert judged("x_resume_last", before=both).usage == second

    def test_a_total_that_was_counted_anew_is_this_runs_own(self) -> None:
        assert judged("x_say", before=Usage(input_tokens=9999)).usage == Usage(
            input_tokens=70, output_tokens=25, cache_read_tokens=50, cache_write_tokens=0
        )

    @each_case("name", ["x_401", "x_sigterm", "x_sigint_sh"])
    def test_what_a_failed_run_used_is_unknown_and_not_zero(self, name: str) -> None:
        assert judged(name).usage is None
        assert judged(name).cost_micros is None

    def test_trying_again_is_no_failure_by_itself(self) -> None:
        _, events, _, _ = folded("x_failed")
        assert [event.kind for event in events if event.kind in ("Retry", "Error")] == ["Retry", "Error"]

    def test_a_model_that_it_does_not_know_is_a_warning_and_no_failure(self) -> None:
        _, events, _, _ = folded("x_say")
        (warning,) = [event for event in events if event.kind == "Error"]
        assert "Model metadata for `gpt-5` not found" in warning.text
        assert warning.data == {"class": "warning"}

    def test_a_sandbox_without_its_helpers_is_told_although_the_run_reports_success(
        self, wording: Wording
    ) -> None:
        result = judged("x_edit_ws")
        wording(result.detail)
        assert judged("x_edit").claimed, "without the sandbox it needs no helpers"

    def test_a_command_that_the_sandbox_refused_leaves_no_trace_and_none_is_made_up(self) -> None:
        _, events, _, _ = folded("x_ro_tmp")
        assert {event.kind for event in events} == {"Raw", "Started", "Text", "Finished"}

    def test_when_a_limit_ends_is_only_told_to_people(self) -> None:
        result = judged("x_429usage")
        assert "try again at 8:48 PM" in result.detail
        assert result.retry_at is None

    def test_how_long_to_slow_down_is_told_in_some_of_its_errors(self) -> None:
        assert judged("x_failed").retry_at == ended(1).ended_at + timedelta(seconds=1)
        assert judged("x_429").retry_at is None

    def test_an_answer_by_a_schema_is_read(self) -> None:
        schema = {"type": "object"}
        assert judged("x_schema", request=replace(REQUEST, schema=schema)).structured == {"ok": True}
        assert judged("x_schema").structured is None
        assert judged("x_say", request=replace(REQUEST, schema=schema)).failure is Failure.AGENT_ERROR

    def test_a_conversation_that_never_began_cannot_be_gone_on_with(self, wording: Wording) -> None:
        assert judged("x_resume_bad").session_ref is None
        wording(judged("x_resume_bad").detail)

    def test_a_tool_of_a_server_has_the_name_that_other_agents_give_it(self) -> None:
        _, events, _, _ = folded("x_mcp")
        assert [(event.kind, event.text) for event in events if event.kind.startswith("Tool")] == [
            ("ToolStart", "mcp__toy__add"),
            ("ToolEnd", "5"),
        ]


class TestAppServer:
    def test_what_is_written_is_what_was_written_then(self) -> None:
        """The recording answered both requests with yes, in a conversation that it had begun as we do."""
        _, _, writes, closed = folded("EDIT")
        assert [one.get("method") or one["result"] for one in writes] == [
            "initialized", "account/read", "thread/start", "turn/start", {"decision": "accept"}, {"decision": "accept"},
        ]  # fmt: skip
        assert writes[3]["params"] == {
            "threadId": "01a1e095-c0f3-7fd3-a76d-fea7b4bde137",
            "input": [{"type": "text", "text": "go"}],
        }
        assert [one["id"] for one in writes[4:]] == [0, 1]
        assert closed

    def test_an_edit_is_told_step_by_step(self) -> None:
        state, events, _, _ = folded("EDIT")
        assert [event.kind for event in events] == [
            "Started", "Text", "ToolStart", "ToolEnd", "Usage", "ToolStart", "ToolEnd", "FileChange", "Usage",
            "Text", "Usage", "Finished",
        ]  # fmt: skip
        assert events[7].data == {"path": "hello.txt", "change": "changed"}
        result = AGENT.result(state, ended(0))
        assert result.claimed
        assert result.summary == "Done. I changed hello.txt."
        assert (result.model, result.version) == ("gpt-5.5", "0.166.0")
        assert result.usage == Usage(
            input_tokens=210, output_tokens=75, cache_read_tokens=150, cache_write_tokens=0
        )

    def test_an_interrupted_turn_is_cancelled_when_it_was_us(self) -> None:
        assert judged("SLOW").failure is Failure.CANCELLED

    def test_a_turn_that_somebody_else_interrupted_is_not(self) -> None:
        state = AGENT.initial(REQUEST)
        for line in lines("SLOW"):
            if '"id": "interrupt"' not in line.text:
                state = AGENT.fold(state, line).state
        assert AGENT.result(state, ended(0)).failure is Failure.CRASH

    def test_it_is_interrupted_by_the_ids_of_its_own_turn_and_only_while_it_lasts(self) -> None:
        state, words = AGENT.initial(REQUEST), []
        for line in lines("SLOW"):
            words.append(AGENT.interrupt(state))
            state = AGENT.fold(state, line).state
        asked = json.loads(next(one for one in words if one)[0])
        assert asked["method"] == "turn/interrupt"
        assert asked["params"] == {
            "threadId": "01a1e095-c0f3-7fd3-a76d-fea7b4bde137",
            "turnId": "01a1e095-c312-7f52-bf2d-e06bec6135c7",
        }
        assert words[0] == AGENT.interrupt(state) == ()

    def test_a_usage_limit_says_when_it_ends_and_which_window_it_is(self) -> None:
        result = judged("LIMIT")
        assert result.failure is Failure.USAGE_LIMIT
        assert result.retry_at == datetime.fromtimestamp(1794775723, UTC)
        assert [(one.name, one.used, one.rejected) for one in result.windows] == [
            ("primary", 1.0, True),
            ("secondary", 0.4, False),
        ]

    @each_case("name", TURNS)
    @each_case(
        ("ended_by", "failure"),
        [
            ("not_started", Failure.CANNOT_START),
            ("asked", Failure.CANCELLED),
            ("deadline", Failure.TIMEOUT),
            ("idle", Failure.HANG),
            ("lost", Failure.CRASH),
        ],
    )
    def test_a_run_that_was_ended_from_outside_is_no_success_whatever_it_said(
        self, name: str, ended_by: str, failure: Failure
    ) -> None:
        assert judged(name, ended(0, ended_by)).failure is failure

    def test_who_said_done_and_was_then_ended_for_not_leaving_has_claimed_success(self) -> None:
        assert judged("EDIT", ended(-15, "done_hang")).claimed

    @pytest.mark.capability("C028")
    @each_case("code", [1, -11, 137])
    def test_a_completed_turn_with_a_bad_exit_is_no_success(self, code: int) -> None:
        assert judged("EDIT", ended(code)).failure is Failure.CRASH

    def test_a_clean_exit_without_the_end_of_the_turn_is_no_success(self) -> None:
        state = AGENT.initial(REQUEST)
        for line in lines("EDIT")[:-1]:
            state = AGENT.fold(state, line).state
        assert AGENT.result(state, ended(0)).failure is Failure.CRASH
