"""What is said to Claude Code over its control protocol, line by line."""

import json
import pickle
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright.adapters.agents.claude.claude import ClaudeAgent
from loopwright.core.rows.model import Usage
from loopwright.core.values.failures import Failure
from loopwright.core.values.permissions import Access, Permissions, Wish
from loopwright.ports import AgentEvent, AgentRequest, AgentResult, Exit, OutputLine, Spent, ToolServer

AGENT = ClaudeAgent()
REQUEST = AgentRequest(
    prompt="/clear the @table", workspace=Path("/w"), run_directory=Path("/r"), permissions=Permissions()
)
OPENED = {
    "type": "control_response",
    "response": {"subtype": "success", "request_id": "loopwright-opening", "response": {"commands": []}},
}
INTERRUPTED = {
    "type": "control_response",
    "response": {"subtype": "success", "request_id": "loopwright-interrupt", "response": {}},
}
INIT = {"type": "system", "subtype": "init", "session_id": "s", "model": "m", "cwd": "/real/w"}
GOOD = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "done",
    "terminal_reason": "completed",
    "num_turns": 1,
    "total_cost_usd": 0.5,
}
STOPPED = {**GOOD, "subtype": "error_during_execution", "is_error": True, "terminal_reason": "aborted_tools"}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


def asks(tool: str, id: str = "1", /, **request: Any) -> dict[str, Any]:
    body = {"subtype": "can_use_tool", "tool_name": tool, **request}
    return {"type": "control_request", "request_id": id, "request": body}


class Talk:
    """One conversation, as far as it went."""

    def __init__(self, *lines: dict[str, Any] | str, before: Spent | None = None, **request: Any) -> None:
        self.state = AGENT.initial(replace(REQUEST, **request), before=before)
        self.events: list[AgentEvent] = []
        self.said: list[dict[str, Any]] = []
        self.closed = 0
        self.hear(*lines)

    def hear(self, *lines: dict[str, Any] | str) -> None:
        for text in lines:
            line = OutputLine(
                offset=0, stream="out", text=text if isinstance(text, str) else json.dumps(text)
            )
            folded = AGENT.fold(self.state, line)
            self.state = folded.state
            self.events.extend(folded.events)
            assert not (self.closed and (folded.writes or folded.close)), "nothing is said to who cannot hear"
            for write in folded.writes:
                assert write.endswith("\n")
                self.said.append(json.loads(write))
            self.closed += folded.close
        assert pickle.loads(pickle.dumps(self.state)) == self.state

    def answers(self) -> list[dict[str, Any]]:
        return [one["response"] for one in self.said if one["type"] == "control_response"]

    def result(self, code: int | None = 0, ended_by: str = "itself") -> AgentResult:
        at = datetime(2026, 1, 1, tzinfo=UTC)
        how = Exit(
            code=code,
            ended_by=ended_by,  # type: ignore[arg-type]
            started_at=at,
            ended_at=at,
            output_bytes=0,
            output_sha256="",
        )
        return AGENT.result(self.state, how)


def test_the_prompt_is_said_when_the_program_listens_and_only_once() -> None:
    talk = Talk(INIT)
    assert talk.said == []
    talk.hear(OPENED, OPENED)
    (words,) = talk.said
    assert words["message"]["content"] == [{"type": "text", "text": REQUEST.prompt}]


def test_the_prompt_is_taken_as_it_is_written() -> None:
    """Else `/clear` would be a command that succeeds without a model, and `@table` a file that is read."""
    assert Talk(OPENED).said[0]["client_composed"] is True


def test_after_the_result_stdin_is_closed() -> None:
    talk = Talk(OPENED, INIT, GOOD)
    assert talk.closed == 1
    assert talk.result().claimed
    talk.hear(GOOD, asks("Bash", input={"command": "make"}), asks("Write", input={"file_path": "/w/a"}))
    assert talk.result().claimed, "what it wants behind its result is refused by itself"


def test_a_program_that_does_not_open_is_let_go() -> None:
    refused = {"type": "control_response", "response": {"subtype": "error", "error": "too old"}}
    refused["response"]["request_id"] = "loopwright-opening"  # type: ignore[index]
    talk = Talk(refused)
    assert (talk.said, talk.closed) == ([], 1)
    assert talk.result(code=1).failure is Failure.CANNOT_START
    assert "too old" in talk.result(code=1).detail


def test_an_end_before_it_opened_is_an_end() -> None:
    talk = Talk({**STOPPED, "terminal_reason": None, "result": None, "errors": ["No conversation found"]})
    assert (talk.said, talk.closed) == ([], 1)
    assert talk.result(code=1).failure is Failure.CRASH


@each_case(
    ("line", "wish"),
    [
        (asks("Edit", input={"file_path": "/w/src/a.py"}), Wish(kind="edit", what="src/a.py")),
        (asks("Write", input={"file_path": "/w/a/../b.py"}), Wish(kind="edit", what="b.py")),
        (asks("Write", input={"file_path": "/w/../etc"}), Wish(kind="edit", what="/etc", inside=False)),
        (asks("Write", input={"file_path": "b.py"}), Wish(kind="edit", what="b.py")),
        (asks("Write", input={"file_path": "../b.py"}), Wish(kind="edit", what="../b.py", inside=False)),
        (asks("Write", input={"file_path": "/wide/a"}), Wish(kind="edit", what="/wide/a", inside=False)),
        (asks("Write", input={"file_path": "/real/w/a"}), Wish(kind="edit", what="a")),
        (
            asks("Write", input={"file_path": "/w/link/x"}, blocked_path="/etc/x"),
            Wish(kind="edit", what="/etc/x", inside=False),
        ),
        (
            asks("Write", input={"file_path": "/w/link/x"}, decision_reason_type="workingDir"),
            Wish(kind="edit", what="/w/link/x", inside=False),
        ),
        (asks("NotebookEdit", input={"notebook_path": "/w/n.ipynb"}), Wish(kind="edit", what="n.ipynb")),
        (
            asks("Bash", input={"command": "make dist"}, blocked_path="/w"),
            Wish(kind="command", what="make dist"),
        ),
        (asks("Read", input={"file_path": "/etc/hosts"}), Wish(kind="read", what="/etc/hosts", inside=False)),
        (asks("Grep", input={"pattern": "x"}), Wish(kind="read", what=".")),
        (asks("WebFetch", input={"url": "http://x"}), Wish(kind="tool", what="WebFetch")),
        (asks("mcp__toy__add", input={"a": 1}), Wish(kind="tool", what="mcp__toy__add")),
        (asks("Edit", input={}), Wish(kind="tool", what="Edit")),
        (asks("Bash", input=[]), Wish(kind="tool", what="Bash")),
    ],
    ids=str,
)
def test_what_it_wants_leave_for_is_put_into_the_words_of_all_agents(
    line: dict[str, Any], wish: Wish
) -> None:
    """A person refuses exactly this wish: so whether it was understood is seen from the answer."""
    refusing = Permissions(access=Access.EDIT, refused=(wish.key,))
    (answer,) = Talk(OPENED, INIT, line, permissions=refusing).answers()
    assert answer["response"]["behavior"] == "deny"
    if wish.kind != "read" and not (wish.kind == "edit" and wish.inside):
        asked = Talk(OPENED, INIT, line)
        assert [one.wish for one in asked.state.asked] == [wish]


def test_an_edit_in_the_workspace_is_allowed_as_it_is() -> None:
    talk = Talk(OPENED, INIT, asks("Write", "7", input={"file_path": "/w/a", "content": "sk-[redacted]"}))
    (answer,) = talk.answers()
    assert answer == {"subtype": "success", "request_id": "7", "response": {"behavior": "allow"}}
    assert "Ask" not in [event.kind for event in talk.events]


@each_case("path", ["/w/.git/config", ".git/config", "/w/src/../.git/config", "/real/w/.Git/config"])
@each_case("tool", ["Edit", "MultiEdit", "Write"])
def test_an_edit_of_gits_own_files_is_asked_about(tool: str, path: str) -> None:
    talk = Talk(OPENED, INIT, asks(tool, input={"file_path": path}))
    (answer,) = talk.answers()
    assert answer["response"]["behavior"] == "deny"
    assert [one.wish.kind for one in talk.state.asked if one.wish] == ["edit"]


def test_what_a_person_has_to_say_stops_the_turn(wording: Wording) -> None:
    talk = Talk(OPENED, INIT, asks("Bash", "7", input={"command": "make dist"}))
    (answer,) = talk.answers()
    assert answer["request_id"] == "7"
    assert answer["response"]["behavior"] == "deny"
    assert answer["response"]["interrupt"] is True
    wording(answer["response"]["message"])
    (event,) = [event for event in talk.events if event.kind == "Ask"]
    wording(event.text)
    json.dumps(dict(event.data))
    talk.hear(STOPPED)
    assert talk.closed == 1
    result = talk.result(code=1)
    assert (result.claimed, result.failure) == (False, None)
    assert [(one.kind, one.options, one.wish) for one in result.asked] == [
        ("permission", ("yes", "no"), Wish(kind="command", what="make dist"))
    ]
    assert result.cost_micros == 500_000


def test_who_was_stopped_for_something_else_did_not_ask() -> None:
    talk = Talk(OPENED, INIT, asks("Bash", input={"command": "make dist"}), STOPPED)
    result = talk.result(code=-15, ended_by="asked")
    assert (result.failure, result.asked) == (Failure.CANCELLED, ())


def test_a_granted_wish_is_allowed() -> None:
    granted = Permissions(granted=("command:make dist",))
    (answer,) = Talk(
        OPENED, INIT, asks("Bash", input={"command": "make dist"}), permissions=granted
    ).answers()
    assert answer["response"] == {"behavior": "allow"}


def test_a_refusal_says_so_and_the_turn_goes_on() -> None:
    only_reads = Permissions(access=Access.READ_ONLY)
    talk = Talk(OPENED, INIT, asks("Bash", input={"command": "make dist"}), permissions=only_reads)
    (answer,) = talk.answers()
    assert answer["response"]["behavior"] == "deny"
    assert "interrupt" not in answer["response"]
    assert [event.data["class"] for event in talk.events if event.kind == "Error"] == ["permission_denied"]
    talk.hear(GOOD)
    assert talk.result().claimed


@each_case("access", [Access.EDIT, Access.SANDBOXED_ALL])
def test_its_own_tool_to_ask_a_person_asks_a_person(access: Access) -> None:
    questions = [
        {"question": "Which colour?", "options": [{"label": "red"}, {"label": "blue"}, {"odd": 1}]},
        {"question": "Which size?"},
        "odd",
    ]
    talk = Talk(
        OPENED,
        INIT,
        asks("AskUserQuestion", input={"questions": questions}),
        STOPPED,
        permissions=Permissions(access=access),
    )
    assert [(one.kind, one.text, one.options) for one in talk.result(code=1).asked] == [
        ("question", "Which colour?", ("red", "blue")),
        ("question", "Which size?", ()),
    ]


@each_case("subtype", ["hook_callback", "mcp_message", "elicitation", "", 5])
def test_a_request_that_is_not_understood_gets_an_error_and_nobody_waits(subtype: object) -> None:
    line = {"type": "control_request", "request_id": "9", "request": {"subtype": subtype}}
    (answer,) = Talk(OPENED, INIT, line).answers()
    assert (answer["subtype"], answer["request_id"]) == ("error", "9")


def test_a_request_too_long_to_be_kept_gets_an_error_and_nobody_waits() -> None:
    whole = json.dumps(
        asks("Write", "9-a", input={"file_path": "/w/a", "content": "x" * 5_000}), separators=(",", ":")
    )
    (answer,) = Talk(OPENED, INIT, whole[:3_000] + " [loopwright: this line was too long]").answers()
    assert (answer["subtype"], answer["request_id"]) == ("error", "9-a")


def test_an_interrupt_is_asked_for_only_while_there_is_a_turn() -> None:
    talk = Talk(INIT)
    assert AGENT.interrupt(talk.state) == ()
    talk.hear(OPENED)
    (line,) = AGENT.interrupt(talk.state)
    assert json.loads(line)["request"] == {"subtype": "interrupt"}
    talk.hear(GOOD)
    assert AGENT.interrupt(talk.state) == ()


def test_a_turn_that_we_interrupted_is_cancelled_and_one_that_others_did_is_a_crash() -> None:
    ours = Talk(OPENED, INIT, INTERRUPTED, STOPPED)
    assert ours.closed == 1
    assert ours.result(code=1).failure is Failure.CANCELLED
    assert ours.result(code=1).cost_micros == 500_000
    assert Talk(OPENED, INIT, STOPPED).result(code=1).failure is Failure.CRASH


def test_work_that_was_finished_before_the_interrupt_is_finished() -> None:
    assert Talk(OPENED, INIT, INTERRUPTED, GOOD).result().claimed


def test_a_result_that_fits_its_schema_is_handed_on() -> None:
    talk = Talk(OPENED, INIT, {**GOOD, "structured_output": {"n": 3}}, schema=SCHEMA)
    assert talk.closed == 1
    assert talk.result().structured == {"n": 3}


def test_a_result_that_is_missing_is_asked_for_once_in_the_same_process() -> None:
    talk = Talk(OPENED, INIT, GOOD, schema=SCHEMA)
    assert talk.closed == 0
    assert [one["type"] for one in talk.said] == ["user", "user"]
    assert talk.result().failure is Failure.CRASH, "what was said is no longer its last word"
    assert talk.result().cost_micros == 500_000, "but it has cost what it has cost"
    talk.hear(INIT, {**GOOD, "structured_output": {"n": 3}, "total_cost_usd": 0.75})
    assert talk.closed == 1
    result = talk.result()
    assert result.claimed
    assert result.structured == {"n": 3}
    assert result.cost_micros == 750_000


def test_a_result_that_stays_missing_is_the_agents_error() -> None:
    talk = Talk(OPENED, INIT, GOOD, INIT, {**GOOD, "structured_output": [3]}, schema=SCHEMA)
    assert talk.closed == 1
    result = talk.result()
    assert result.failure is Failure.AGENT_ERROR
    assert "schema" in result.detail
    assert result.structured is None


def test_a_failed_turn_is_not_asked_for_its_result() -> None:
    talk = Talk(OPENED, INIT, {**GOOD, "is_error": True, "api_error_status": 401}, schema=SCHEMA)
    assert talk.closed == 1
    assert talk.result(code=1).failure is Failure.AUTH


@each_case(
    "line",
    [
        asks("Bash", input={"command": "make dist"}),
        INTERRUPTED,
        {**INIT, "mcp_servers": [{"name": "toy", "status": "failed", "source": "dynamic"}]},
    ],
    ids=["asked", "interrupted", "no tools"],
)
def test_who_was_stopped_is_not_asked_for_a_result(line: dict[str, Any]) -> None:
    talk = Talk(OPENED, INIT, line, GOOD, schema=SCHEMA)
    assert talk.closed == 1
    assert sum(one["type"] == "user" for one in talk.said) == 1


@each_case(
    ("server", "works"),
    [
        ({"name": "toy", "status": "connected"}, True),
        ({"name": "toy", "status": "failed"}, False),
        ({"name": "toy", "status": "pending"}, False),
        ({"name": "other", "status": "failed"}, True),
        ({"name": "other", "status": "failed", "source": "dynamic"}, False),
        ({"name": "other", "status": "failed", "source": "user"}, True),
        ({"name": ["toy"], "status": "failed"}, True),
        ("toy", True),
    ],
    ids=str,
)
def test_a_run_without_a_tool_server_that_it_was_given_is_stopped_at_once(
    server: object, works: bool
) -> None:
    tools = {"toy": ToolServer(command="toy")}
    talk = Talk(OPENED, {**INIT, "mcp_servers": [server]}, tools=tools)
    stops = [one["request"]["subtype"] for one in talk.said if one["type"] == "control_request"]
    assert stops == ([] if works else ["interrupt"])
    talk.hear(INTERRUPTED, STOPPED)
    assert talk.result(code=1).failure is (Failure.CANCELLED if works else Failure.TOOL)
    talk.hear(GOOD)
    assert talk.result().claimed is works, "whatever it says: it had no tools"


def test_tokens_are_those_of_all_turns_and_models_less_what_was_used_before() -> None:
    def result(n: int) -> dict[str, Any]:
        used = {"inputTokens": 10 * n, "outputTokens": n, "cacheReadInputTokens": 0}
        return {**GOOD, "usage": {"input_tokens": 1}, "modelUsage": {"a": used, "b": used}}

    before = Spent(usage=Usage(input_tokens=15, output_tokens=None))
    talk = Talk(OPENED, INIT, result(1), result(2), before=before)
    assert talk.result().usage == Usage(input_tokens=25, output_tokens=4, cache_read_tokens=0)


def test_a_version_that_counts_each_run_anew_is_not_charged_less() -> None:
    used = {"inputTokens": 10, "outputTokens": 2}
    line = {**GOOD, "usage": {"input_tokens": 10, "output_tokens": 2}, "modelUsage": {"a": used}}
    before = Spent(cost_micros=500_000, usage=Usage(input_tokens=10, output_tokens=2))
    result = Talk(OPENED, INIT, line, before=before).result()
    assert result.cost_micros == 500_000
    assert result.usage == Usage(input_tokens=10, output_tokens=2)


def test_without_totals_the_turns_are_added_up() -> None:
    talk = Talk(OPENED, INIT, *[{**GOOD, "usage": {"input_tokens": 5, "output_tokens": None}}] * 2)
    assert talk.result().usage == Usage(input_tokens=10)


def test_whoever_only_reads_says_nothing() -> None:
    state = AGENT.initial()
    for line in (OPENED, INIT, asks("Bash", input={"command": "make"}), GOOD):
        folded = AGENT.fold(state, OutputLine(offset=0, stream="out", text=json.dumps(line)))
        state = folded.state
        assert (folded.writes, folded.close) == ((), False)


def test_what_is_said_of_a_window_in_two_places_is_put_together() -> None:
    """Older versions do not repeat the status in their list of windows."""
    listed = {"five_hour": {"utilization": 1, "resetsAt": 1794804903}, "seven_day": {"utilization": 0.5}}
    info = {"status": "rejected", "rateLimitType": "five_hour", "unifiedWindows": listed}
    windows = Talk(OPENED, INIT, {"type": "rate_limit_event", "rate_limit_info": info}).result().windows
    assert [(one.name, one.used, one.rejected) for one in windows] == [
        ("five_hour", 1.0, True),
        ("seven_day", 0.5, False),
    ]
    assert windows[0].resets_at == datetime.fromtimestamp(1794804903, UTC)


def test_a_request_that_looks_like_a_result_does_not_start_the_clock_for_leaving() -> None:
    pattern = AGENT.invocation(REQUEST).done_pattern
    assert pattern is not None
    for line in (asks("mcp__toy__add", input=GOOD), {**OPENED, "response": GOOD}):
        assert not re.search(pattern, json.dumps(line, separators=(",", ":")))
    assert re.search(pattern, json.dumps({**GOOD, "structured_output": GOOD}, separators=(",", ":")))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)
TOOLS = st.sampled_from(["Bash", "Edit", "Read", "AskUserQuestion", "mcp__x__y"])
REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "subtype": st.just("can_use_tool") | JSON,
        "tool_name": TOOLS | JSON,
        "blocked_path": JSON,
        "input": JSON
        | st.dictionaries(
            st.sampled_from(["command", "file_path", "path", "questions"]),
            JSON | st.lists(st.fixed_dictionaries({"question": JSON, "options": JSON})),
        ),
    },
)
LINES = st.one_of(
    st.sampled_from([OPENED, INTERRUPTED, INIT, GOOD, STOPPED]),
    st.builds(
        lambda number, request: {"type": "control_request", "request_id": number, "request": request},
        st.text(max_size=5) | JSON,
        REQUESTS | JSON,
    ),
    st.builds(lambda response: {"type": "control_response", "response": response}, JSON),
)


@settings(deadline=None)
@given(st.lists(LINES.map(json.dumps) | st.text(max_size=30), max_size=8), st.booleans())
def test_no_output_at_all_makes_it_raise_or_speak_out_of_turn(lines: list[str], schema: bool) -> None:
    talk = Talk(*lines, schema=SCHEMA if schema else None)
    assert talk.closed <= 1
    assert sum(one["type"] == "user" for one in talk.said) <= (2 if schema else 1)
    result = talk.result()
    assert (result.claimed, bool(result.failure), bool(result.asked)).count(True) == 1
