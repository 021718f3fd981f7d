"""Judging what the real program printed, recorded case by case."""

import json
import pickle
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright.adapters.agents.claude.claude import ClaudeAgent
from loopwright.adapters.agents.claude.claude_meters import windows
from loopwright.core.rows.model import Usage
from loopwright.core.rows.waiting_rows import QuotaKind
from loopwright.core.values.failures import Failure
from loopwright.ports import AgentEvent, AgentRequest, AgentResult, Exit, OutputLine, QuotaWindow, Spent

STREAMS = Path(__file__).parents[3] / "data" / "streams"
AGENT = ClaudeAgent()

# The recorded exit code, and what the run must be taken for; None is a claim of success.
CASES: dict[str, tuple[int, Failure | None]] = {
    "c_400": (1, Failure.CONTEXT),
    "c_401": (1, Failure.AUTH),
    "c_403": (1, Failure.AUTH),
    "c_404": (1, Failure.MODEL),
    "c_429": (1, Failure.RATE_LIMIT),
    "c_429nr": (1, Failure.USAGE_LIMIT),
    "c_429sub": (1, Failure.USAGE_LIMIT),
    "c_429sub_api": (1, Failure.USAGE_LIMIT),
    "c_429week": (1, Failure.USAGE_LIMIT),
    "c_529": (1, Failure.OVERLOADED),
    "c_529_text": (1, Failure.OVERLOADED),
    "c_allowbash": (0, None),
    "c_bare": (0, None),
    "c_budget": (1, Failure.BUDGET),
    "c_bypass_mode_root": (1, Failure.CANNOT_START),
    "c_bypass_root": (1, Failure.CANNOT_START),
    "c_bypass_sandbox": (0, None),
    "c_credit": (1, Failure.BILLING),
    "c_deny": (0, None),
    "c_denybash": (0, None),
    "c_dontask": (0, None),
    "c_json": (0, None),
    "c_maxtok": (1, Failure.CONTEXT),
    "c_maxturns": (1, Failure.TURNS),
    "c_noauth": (1, Failure.AUTH),
    "c_par1": (0, None),
    "c_partial": (0, None),
    "c_refusal": (1, Failure.REFUSAL),
    "c_res1": (0, None),
    "c_res2": (0, None),
    "c_res3": (0, None),
    "c_res4": (0, None),
    "c_res5": (1, Failure.CRASH),
    "c_res6": (1, Failure.CRASH),
    "c_retry2": (0, None),
    "c_schema": (0, None),
    "c_sigint": (0, Failure.CRASH),
    "c_sigint_bash": (0, Failure.CRASH),
    "c_sigkill_bash": (-9, Failure.CRASH),
    "c_sigterm": (143, Failure.CRASH),
    "c_sigterm_bash": (143, Failure.CRASH),
    "c_warn": (0, None),
    "claude_connfail_retry": (-9, Failure.CRASH),
    "claude_edit": (0, None),
}


def ended(code: int | None, ended_by: str = "itself") -> Exit:
    return Exit(
        code=code,
        ended_by=ended_by,  # type: ignore[arg-type]
        started_at=None,
        ended_at=datetime(2026, 1, 1, tzinfo=UTC),
        output_bytes=0,
        output_sha256="",
    )


def lines(name: str) -> list[OutputLine]:
    found = []
    for stream in ("out", "err"):
        path = STREAMS / f"{name}.{stream}"
        for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            found.append(OutputLine(offset=len(found), stream=stream, text=text))
    return found


def folded(
    name: str, *, session_cost_micros: int = 0, used: Usage | None = None
) -> tuple[object, list[AgentEvent]]:
    before = Spent(cost_micros=session_cost_micros, usage=used or Usage())
    state, events = AGENT.initial(before=before), []
    for line in lines(name):
        step = AGENT.fold(state, line)
        state = step.state
        events.extend(step.events)
    return state, events


def judged(
    name: str, exit: Exit | None = None, *, session_cost_micros: int = 0, used: Usage | None = None
) -> AgentResult:
    state, _ = folded(name, session_cost_micros=session_cost_micros, used=used)
    return AGENT.result(state, exit or ended(CASES[name][0]))


def test_every_recorded_stream_has_a_row() -> None:
    assert {path.stem for path in STREAMS.iterdir()} == set(CASES)


@pytest.mark.capability("C028", "C029")
@each_case("name", CASES)
def test_a_recorded_run_is_taken_for_what_it_was(name: str) -> None:
    result = judged(name)
    assert result.failure is CASES[name][1], result
    assert result.claimed is (CASES[name][1] is None)
    assert result.claimed or result.detail


@each_case("name", CASES)
def test_folding_again_from_the_start_gives_the_same_state_which_can_be_pickled(name: str) -> None:
    first, second = folded(name), folded(name)
    assert first == second
    assert pickle.loads(pickle.dumps(first)) == first
    for event in first[1]:
        assert json.loads(json.dumps(dict(event.data))) == dict(event.data)


@each_case("name", CASES)
def test_the_done_pattern_finds_the_result_line_and_no_other(name: str) -> None:
    pattern = AGENT.invocation(
        AgentRequest(prompt="", workspace=Path("w"), run_directory=Path("r"))
    ).done_pattern
    assert pattern is not None
    found = [line.text for line in lines(name) if re.search(pattern, line.text)]
    results = [line.text for line in lines(name) if line.text.startswith("{") and is_result(line.text)]
    assert found == results


def is_result(text: str) -> bool:
    return json.loads(text).get("type") == "result"


def test_a_used_up_window_says_when_it_opens_again() -> None:
    assert judged("c_429sub").retry_at == datetime.fromtimestamp(1794779041, UTC)
    assert judged("c_429week").retry_at == datetime.fromtimestamp(1795038241, UTC)
    assert judged("c_429nr").retry_at is None


def test_a_warning_about_the_window_does_not_fail_a_run() -> None:
    _, events = folded("c_warn")
    warnings = [event for event in events if event.kind == "RateLimit"]
    assert [event.data["status"] for event in warnings] == ["allowed_warning"]
    assert warnings[0].data["utilization"] == 0.93
    assert judged("c_warn").retry_at is None


def test_the_cost_of_a_resumed_conversation_is_what_this_run_added() -> None:
    assert judged("c_res1").cost_micros == 1040
    assert judged("c_res2", session_cost_micros=1040).cost_micros == 1040
    assert judged("c_res3", session_cost_micros=2080).cost_micros == 1040


def test_a_total_that_was_counted_anew_is_this_runs_own_cost() -> None:
    assert judged("c_res1", session_cost_micros=999_999).cost_micros == 1040


def test_what_a_killed_run_cost_is_unknown_and_not_zero() -> None:
    result = judged("c_sigkill_bash")
    assert result.cost_micros is None
    assert result.usage is None


def test_usage_is_read_from_the_result_alone() -> None:
    assert judged("claude_edit").usage == Usage(
        input_tokens=360, output_tokens=75, cache_read_tokens=150, cache_write_tokens=30
    )


def test_the_tokens_of_a_resumed_conversation_are_what_this_run_added() -> None:
    once = Usage(input_tokens=120, output_tokens=25, cache_read_tokens=50, cache_write_tokens=10)
    assert judged("c_res1").usage == judged("c_res2", used=once).usage == once


def test_tokens_are_counted_to_the_last_request_as_the_cost_is() -> None:
    # Its own sum for the turn leaves the request out at which the budget ran out.
    usage = judged("c_budget").usage
    assert usage is not None
    assert usage.input_tokens == 240


def test_each_window_of_the_quota_is_told_with_the_newest_word_on_it() -> None:
    resets_at = datetime.fromtimestamp(1794779041, UTC)
    assert judged("c_429sub").windows == (
        QuotaWindow(
            name="five_hour", kind=QuotaKind.SUBSCRIPTION, used=1.0, resets_at=resets_at, rejected=True
        ),
    )
    assert judged("c_warn").windows == (
        QuotaWindow(name="five_hour", kind=QuotaKind.SUBSCRIPTION, used=0.93, resets_at=resets_at),
    )
    info = {"status": "rejected", "rateLimitType": "seven_day_sonnet", "resetsAt": 1794779041}
    assert [(one.model, one.kind) for one in windows((), info)] == [("sonnet", QuotaKind.WEEKLY)]
    (week,) = judged("c_429week").windows
    assert week.model == ""
    assert (week.name, week.kind, week.used, week.rejected) == ("seven_day", QuotaKind.WEEKLY, None, True)


def test_a_key_is_paid_for_call_by_call_and_no_login_says_nothing() -> None:
    assert judged("claude_edit").windows == (QuotaWindow(name="api_key", kind=QuotaKind.DOLLARS),)
    assert judged("c_noauth").windows == ()


def test_refused_tools_are_noted_although_the_run_claims_success(wording: Wording) -> None:
    result = judged("c_deny")
    assert result.claimed
    wording(result.detail)


def test_an_edit_is_told_step_by_step() -> None:
    state, all_events = folded("claude_edit")
    events = [event for event in all_events if event.kind != "Usage"]
    assert [event.kind for event in events] == [
        "Started", "Text", "ToolStart", "ToolEnd", "ToolStart", "ToolEnd", "FileChange", "Text", "Finished",
    ]  # fmt: skip
    edit, edited, change = events[4:7]
    assert edit.text == "Edit /sandbox/work/claude_edit/hello.txt"
    assert edited.data["name"] == "Edit"
    assert edited.data["ok"] is True
    assert change.data == {"path": "/sandbox/work/claude_edit/hello.txt", "change": "changed"}
    result = AGENT.result(state, ended(0))
    assert (result.model, result.version) == ("claude-sonnet-4-5", "2.1.325")
    assert result.session_ref == "02396c1d-fa57-4590-9aec-106f52f5b83d"
    assert result.summary == "Done. I changed hello.txt. "


def test_a_file_made_by_a_shell_command_is_a_file_change() -> None:
    _, events = folded("c_bypass_sandbox")
    assert [event.text for event in events if event.kind == "FileChange"] == [
        "/sandbox/work/c_bypass_sandbox/made_by_bash"
    ]


def test_retries_are_told() -> None:
    _, events = folded("c_retry2")
    retries = [event.data for event in events if event.kind == "Retry"]
    assert [retry["attempt"] for retry in retries] == [1, 2]
    assert {retry["status"] for retry in retries} == {529}


def test_a_service_that_asks_to_slow_down_says_for_how_long() -> None:
    assert judged("c_429").retry_at == datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert judged("c_529").retry_at is None, "these pauses are its own"


@each_case(
    ("pauses", "answered", "after_s"),
    [
        (((1, 30_000), (2, 45_000)), False, 45.0),
        (((1, 30_000), (2, 1_200)), False, 30.0),  # the second pause is as long as its own would be
        (((1, 625), (2, 1_250), (7, 40_000)), False, None),
        (((1, 30_000),), True, None),
        (((1, 10**15), (2, "soon"), (3, None), (4, -1)), False, None),
    ],
)
@each_case(("status", "failure"), [(429, Failure.RATE_LIMIT), (529, Failure.OVERLOADED)])
def test_a_longer_pause_than_its_own_is_what_the_service_asked_for(
    pauses: tuple[tuple[int, object], ...],
    answered: bool,
    after_s: float | None,
    status: int,
    failure: Failure,
) -> None:
    told: list[dict[str, object]] = [
        {"type": "system", "subtype": "api_retry", "attempt": n, "retry_delay_ms": ms} for n, ms in pauses
    ]
    if answered:
        told.append({"type": "assistant", "message": {"content": [{"type": "text", "text": "At last."}]}})
        told.append({"type": "system", "subtype": "api_retry", "attempt": 1, "retry_delay_ms": 500})
    told.append(
        {"type": "result", "is_error": True, "api_error_status": status, "result": "no", "num_turns": 1}
    )
    state = AGENT.initial()
    for one in told:
        state = AGENT.fold(state, OutputLine(offset=0, stream="out", text=json.dumps(one))).state
    result = AGENT.result(state, ended(1))
    assert result.failure is failure
    again_at = None if after_s is None else datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=after_s)
    assert result.retry_at == again_at


def test_a_conversation_that_never_began_cannot_be_gone_on_with(wording: Wording) -> None:
    assert judged("c_res5").session_ref is None
    wording(judged("c_res5").detail)


@pytest.mark.capability("C029")
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
    ended_by: str, failure: Failure
) -> None:
    assert judged("claude_edit", ended(0, ended_by)).failure is failure


@each_case("ended_by", ["deadline", "idle"])
def test_who_is_ended_while_it_waits_for_its_service_did_not_work_too_long(
    ended_by: str, wording: Wording
) -> None:
    result = judged("claude_connfail_retry", ended(-15, ended_by))
    assert (result.failure, result.claimed, result.retry_at) == (Failure.ENVIRONMENT, False, None)
    wording(result.detail)
    assert judged("claude_connfail_retry", ended(-15, "asked")).failure is Failure.CANCELLED
    assert judged("c_retry2", ended(-15, ended_by)).failure in (Failure.TIMEOUT, Failure.HANG), (
        "it got over it"
    )


@each_case(
    ("status", "error", "failure"),
    [
        (529, "overloaded", Failure.OVERLOADED),
        (429, "rate_limit", Failure.RATE_LIMIT),
        (None, "overloaded", Failure.OVERLOADED),
        (None, "unknown", Failure.ENVIRONMENT),
    ],
)
def test_what_its_service_said_last_is_what_it_waited_for(
    status: int | None, error: str, failure: Failure
) -> None:
    told = {"type": "system", "subtype": "api_retry", "attempt": 1, "retry_delay_ms": 30_000}
    line = json.dumps({**told, "error_status": status, "error": error})
    state = AGENT.fold(AGENT.initial(), OutputLine(offset=0, stream="out", text=line)).state
    assert AGENT.result(state, ended(-15, "deadline")).failure is failure


def test_who_said_done_and_was_then_ended_for_not_leaving_has_claimed_success() -> None:
    assert judged("claude_edit", ended(-15, "done_hang")).claimed


def test_who_reported_an_error_and_did_not_leave_has_the_error() -> None:
    assert judged("c_401", ended(-15, "done_hang")).failure is Failure.AUTH


@pytest.mark.capability("C028")
@each_case("code", [1, -11, 137])
def test_a_good_result_with_a_bad_exit_is_no_success(code: int) -> None:
    assert judged("claude_edit", ended(code)).failure is Failure.CRASH
