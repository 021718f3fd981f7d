"""Judging what six real programs said over the protocol, recorded case by case."""

import json
import pickle
import re
from typing import Any

import pytest
from tests.cases import each_case
from tests.unit.agents.acp.recordings import (
    NAMES,
    TOOLS,
    agent_of,
    answers,
    ended,
    fold,
    lines,
    read,
    request,
    rows,
)
from tests.wording_plugin import Wording

from loopwright.adapters.agents.acp import rpc
from loopwright.core.rows.model import Usage
from loopwright.core.values.failures import Failure
from loopwright.core.values.permissions import Access, Permissions
from loopwright.ports import Spent

MAY_RUN = Permissions(commands=("make *", "python3 *"))
READ_ONLY = Permissions(access=Access.READ_ONLY)
ALL = Permissions(access=Access.SANDBOXED_ALL)
ASKED = "asked"

# What the programs were allowed, and what the run must be taken for; None is a claim of success.
BY_CASE: dict[str, tuple[Permissions, Failure | str | None]] = {
    "edit": (Permissions(), None),
    "shell": (MAY_RUN, None),
    "shell-rej": (READ_ONLY, None),
    "shell-rejcont": (READ_ONLY, None),
    "shell-ask": (Permissions(), ASKED),
    "shell-mode": (ALL, None),
    "shell-untr2": (ALL, Failure.CANNOT_START),
    "write_out": (Permissions(), ASKED),
    "slow": (Permissions(), Failure.CANCELLED),
    "sleep": (MAY_RUN, Failure.CANCELLED),
    "401": (Permissions(), Failure.AUTH),
    "403": (Permissions(), Failure.AUTH),
    "404": (Permissions(), Failure.MODEL),
    "429": (Permissions(), Failure.RATE_LIMIT),
    "429quota": (Permissions(), Failure.USAGE_LIMIT),
    "500": (Permissions(), Failure.OVERLOADED),
    "529": (Permissions(), Failure.OVERLOADED),
    "billing": (Permissions(), Failure.BILLING),
    "context": (Permissions(), Failure.CONTEXT),
    "many": (Permissions(), Failure.TURNS),
    "mcp": (Permissions(), None),
    "say-first": (Permissions(), None),
    "say-again": (Permissions(), None),
    "say-fork": (Permissions(), None),
    "say-lost": (Permissions(), Failure.CRASH),
    "say-nokey": (Permissions(), Failure.AUTH),
    "say-nokey2": (Permissions(), Failure.AUTH),
    "say-nokey3": (Permissions(), Failure.AUTH),
}
ODD: dict[str, Failure | str | None] = {
    # It sums up what it has, fails again, and ends its turn as if all were well, without a word.
    "goose_context": Failure.AGENT_ERROR,
    # The same words as for a limit on requests, but with an invoice.
    "goose_429quota": Failure.BILLING,
    # They end their turn at a refusal; opencode does not where it was told so.
    "copilot_shell-rej": Failure.TOOL,
    "opencode_shell-rej": Failure.TOOL,
    # It begins a conversation that it does not find anew, under the same name.
    "qwen_say-lost": None,
}


def expected(name: str) -> Failure | str | None:
    return ODD.get(name, BY_CASE[name.partition("_")[2]][1])


def given(name: str) -> dict[str, Any]:
    """Return what the program was asked for in a recording."""
    case = name.partition("_")[2]
    facts: dict[str, Any] = {"permissions": BY_CASE[case][0]}
    if case == "mcp":
        facts["tools"] = TOOLS
    if case in ("say-again", "say-fork", "say-lost"):
        (ref,) = [
            json.loads(text)["params"]["sessionId"]
            for who, text in rows(name)
            if '"id":3' in text and who == "in"
        ]
        facts |= {"session_ref": ref, "fork": case == "say-fork"}
    if case == "say-nokey2":
        facts["options"] = {"auth": "openai"}
    return facts


def test_there_is_a_recording_of_every_agent_and_a_row_for_each() -> None:
    assert {name.partition("_")[0] for name in NAMES} == {
        "gemini",
        "opencode",
        "goose",
        "qwen",
        "copilot",
        "claude",
    }
    assert {name.partition("_")[2] for name in NAMES} == set(BY_CASE)


@pytest.mark.capability("C028", "C029")
@each_case("name", NAMES)
def test_a_recorded_run_is_taken_for_what_it_was(name: str) -> None:
    result = read(name, **given(name)).result()
    wanted = expected(name)
    assert result.failure is (None if wanted == ASKED else wanted), result
    assert result.claimed is (wanted is None)
    assert bool(result.asked) is (wanted == ASKED)
    assert result.claimed or result.asked or result.detail


SAID_OTHERWISE = ("shell-untr2", "write_out", "context", "say-nokey2")
"""Where whoever recorded it answered in another way, or not at all."""


@each_case("name", [name for name in NAMES if name.partition("_")[2] not in SAID_OTHERWISE])
def test_requests_are_answered_as_the_program_understood_it(name: str) -> None:
    said, recorded = read(name, **given(name)).answered(), answers(name)
    for one in (*said, *recorded):
        one.get("error", {}).pop("message", None)
    assert said == recorded


@each_case("name", NAMES)
def test_stdin_is_closed_once_when_the_turn_is_over(name: str) -> None:
    # The one that goes round in circles was stopped by force.
    assert read(name, **given(name)).closed == (0 if name == "opencode_context" else 1)


@each_case("name", NAMES)
def test_folding_again_gives_the_same_state_and_writes_and_can_be_pickled(name: str) -> None:
    first, second = read(name, **given(name)), read(name, **given(name))
    assert first == second
    assert pickle.loads(pickle.dumps(first.state)) == first.state
    for event in first.events:
        assert json.loads(json.dumps(dict(event.data))) == dict(event.data)


@each_case("name", NAMES)
def test_who_only_reads_hears_the_same_and_says_nothing(name: str) -> None:
    only = fold(agent_of(name), lines(name), None)
    assert only.writes == ()
    assert only.closed == 0
    if expected(name) is None:
        driven = read(name, **given(name))
        for kind in ("Text", "ToolEnd", "Finished"):
            # Gemini says its mode in words; who does not know what was asked of it takes that for the first ones.
            skipped = 1 if name == "gemini_shell-mode" and kind == "Text" else 0
            assert only.told(kind)[skipped:] == driven.told(kind)[skipped:]


@each_case("name", NAMES)
def test_the_done_pattern_finds_the_end_and_nothing_else(name: str) -> None:
    found = [line.text for line in lines(name) if re.search(rpc.DONE, line.text)]
    messages = [
        json.loads(line.text) for line in lines(name) if line.stream == "out" and line.text.startswith("{")
    ]
    ends = [one for one in messages if "method" not in one and (one["id"] == rpc.PROMPT or "error" in one)]
    assert [json.loads(text) for text in found] == ends
    assert found or name == "opencode_context"


@each_case("name", [name for name in NAMES if name.endswith("_shell-ask")])
def test_what_nobody_settled_stops_the_turn_and_is_a_question(name: str) -> None:
    run = read(name, **given(name))
    (asking,) = run.result().asked
    assert asking.wish is not None
    assert asking.wish.key == "command:make dist"
    assert asking.options == ("yes", "no")
    stop, answer = run.said()[-2:]
    assert stop["method"] == "session/cancel", (
        "the protocol wants the word to stop before open requests are answered"
    )
    assert answer["result"] == {"outcome": {"outcome": "cancelled"}}
    assert run.told("Ask") == [asking.text]


@each_case("name", [name for name in NAMES if name.endswith("_write_out")])
def test_a_file_elsewhere_is_asked_for_by_its_whole_path(name: str) -> None:
    keys = [asking.wish.key for asking in read(name, **given(name)).result().asked if asking.wish]
    assert keys == ["edit:/elsewhere/outside.txt"]


@each_case("name", [name for name in NAMES if name.endswith("_mcp")])
def test_the_tool_to_ask_with_needs_no_leave_whatever_the_agent_calls_it(name: str) -> None:
    run = read(name, **given(name))
    assert run.result().asked == ()
    assert run.told("Error") == []


@each_case("name", [name for name in NAMES if name.endswith("_mcp") and not name.startswith("qwen")])
def test_another_tool_of_a_server_is_asked_for_by_the_name_that_all_agents_give_it(name: str) -> None:
    """The tool of the recording, but of a server with another name."""
    agent, output = (
        agent_of(name),
        [
            type(line)(offset=line.offset, stream=line.stream, text=line.text.replace("loopwright", "toy"))
            for line in lines(name)
        ],
    )
    run = fold(agent, output, request(tools={"toy": TOOLS["loopwright"]}))
    assert [asking.wish.key for asking in run.result().asked if asking.wish] == ["tool:mcp__toy__ask"]


@each_case("name", [name for name in NAMES if name.endswith("_shell-rej")])
def test_a_refusal_is_on_the_record(name: str, wording: Wording) -> None:
    run = read(name, **given(name))
    wording(run.result().detail)
    assert run.told("Error")[0] == "not allowed: make dist"


@each_case("name", [name for name in NAMES if name.endswith("_edit")])
def test_an_edit_is_told_step_by_step(name: str) -> None:
    run = read(name, **given(name))
    kinds = [event.kind for event in run.events if event.kind not in ("Raw", "Usage")]
    assert kinds[0] == "Started"
    assert kinds[-1] == "Finished"
    assert kinds.index("ToolStart") < kinds.index("ToolEnd") < kinds.index("FileChange")
    assert run.told("FileChange") == ["hello.txt"], "from the top of the workspace"
    assert run.told("Text")[-1].strip() == "Done. I changed hello.txt.", "one event for all of its pieces"
    assert run.result().summary.strip() == "Done. I changed hello.txt."


@each_case("name", [name for name in NAMES if name.endswith("_shell-mode")])
def test_in_its_free_mode_it_asks_for_nothing(name: str) -> None:
    run = read(name, **given(name))
    (mode,) = [one for one in run.said() if one.get("method") == "session/set_mode"]
    (recorded,) = [json.loads(text) for who, text in rows(name) if who == "in" and "session/set_mode" in text]
    assert mode == recorded
    assert run.answered() == []


@each_case("name", [name for name in NAMES if name.endswith("_say-again")])
def test_a_conversation_that_is_gone_on_with_is_not_told_again(name: str) -> None:
    run = read(name, **given(name))
    assert [text.strip() for text in run.told("Text")] == ["hello"]
    assert run.result().session_ref == given(name)["session_ref"]


# Tokens of a run with so many requests of 120 (50 of them from a cache) and 25 each, and its cost.
ONE = Usage(input_tokens=70, output_tokens=25, cache_read_tokens=50)
METERS: dict[str, tuple[Usage | None, int | None]] = {
    "gemini_edit": (Usage(input_tokens=240, output_tokens=50), None),
    "opencode_edit": (None, 1200),
    "goose_edit": (None, None),
    "qwen_edit": (Usage(input_tokens=210, output_tokens=75, cache_read_tokens=150), None),
    "copilot_edit": (
        Usage(input_tokens=140, output_tokens=50, cache_read_tokens=100, cache_write_tokens=0), None,
    ),
    "claude_edit": (
        Usage(input_tokens=360, output_tokens=75, cache_read_tokens=150, cache_write_tokens=30), 4160,
    ),
    "qwen_say-again": (ONE, None),
    "opencode_say-again": (None, 600),
    "claude_say-again": (
        Usage(input_tokens=120, output_tokens=25, cache_read_tokens=50, cache_write_tokens=10), 2080,
    ),
    # What a copy of a conversation brings along is subtracted where it is counted, and only there.
    "opencode_say-fork": (None, 600),
    "claude_say-fork": (
        Usage(input_tokens=120, output_tokens=25, cache_read_tokens=50, cache_write_tokens=10), 1040,
    ),
    # What a turn used that was stopped is unknown, and not nothing.
    "claude_slow": (None, 1040),
    "opencode_slow": (None, None),
    "copilot_slow": (None, None),
}  # fmt: skip
BEFORE = {
    "opencode_say-again": 600,
    "claude_say-again": 2080,
    "opencode_say-fork": 1200,
    "claude_say-fork": 1000,
}


@each_case("name", METERS)
def test_a_run_is_charged_with_what_it_used_itself(name: str) -> None:
    before = Spent(cost_micros=BEFORE[name]) if name in BEFORE else None
    result = read(name, before=before, **given(name)).result()
    assert (result.usage, result.cost_micros) == METERS[name]


def test_the_program_tells_its_version_and_its_model() -> None:
    told = {
        name: (read(f"{name}_edit").result().version, read(f"{name}_edit").result().model)
        for name in ("gemini", "opencode", "goose", "qwen", "copilot", "claude")
    }
    assert told == {
        "gemini": ("0.61.0", "gemini-2.5-pro"),
        "opencode": ("1.18.33", "fake/fake-model"),
        "goose": ("1.52.0", "fake-model"),
        "qwen": ("0.15.10", "$runtime|openai|fake-model(openai)"),
        "copilot": ("1.0.102", None),
        "claude": ("0.99.1", "claude-opus-5-5"),
    }


def test_the_retries_of_copilot_are_told_and_are_no_words_of_the_model() -> None:
    run = read("copilot_500")
    assert len(run.told("Retry")) == 5
    assert run.told("Text") == []


def test_going_round_in_circles_is_stopped() -> None:
    run = read("opencode_context")
    assert [one["method"] for one in run.said()][-1] == "session/cancel"
    assert [one["method"] for one in run.said()].count("session/cancel") == 1
    assert "is stopped" in run.told("Error")[0]


@each_case(
    ("how", "failure"),
    [
        ("done_hang", Failure.CONTEXT),
        ("deadline", Failure.CONTEXT),
        ("idle", Failure.CONTEXT),
        ("asked", Failure.CANCELLED),
    ],
)
def test_who_goes_round_in_circles_and_does_not_listen_is_judged_by_that(how: Any, failure: Failure) -> None:
    assert read("opencode_context").result(ended(-9, how)).failure is failure


def test_a_mode_that_cannot_be_had_is_said_before_anything_is_done() -> None:
    run = read("gemini_shell-untr2", **given("gemini_shell-untr2"))
    assert "untrusted folder" in run.result().detail
    assert not any(one.get("method") == "session/prompt" for one in run.said())


@each_case("name", ["gemini_say-nokey3", "qwen_say-nokey"])
def test_who_is_not_logged_in_is_told_which_ways_there_are(name: str) -> None:
    assert "the option `auth` of agents." in read(name).result().detail


@pytest.mark.capability("C029")
@each_case("name", [name for name in NAMES if expected(name) is None])
@each_case("exit", [ended(1), ended(-11), ended(137)], ids=["1", "-11", "137"])
def test_a_good_end_with_a_bad_exit_is_no_success(name: str, exit: Any) -> None:
    assert read(name, **given(name)).result(exit).failure is Failure.CRASH


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
    assert read("goose_edit").result(ended(0, ended_by)).failure is failure


def test_who_said_done_and_was_then_ended_for_not_leaving_has_claimed_success() -> None:
    assert read("gemini_mcp", **given("gemini_mcp")).result(ended(-15, "done_hang")).claimed
