"""The conversation, step by step, and every way in which it can end."""

import json
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from tests.cases import each_case
from tests.unit.agents.acp.recordings import TOOLS, ended, fold, request
from tests.unit.agents.acp.talk import (
    answer,
    begin,
    begun,
    end,
    error,
    line,
    message,
    says,
    start,
    told,
    wants,
)
from tests.wording_plugin import Wording

from loopwright.adapters.agents.acp import rpc
from loopwright.adapters.agents.acp.agent import AcpAgent
from loopwright.adapters.agents.acp.profiles import ACP, COPILOT, GEMINI, GOOSE, OPENCODE, QWEN
from loopwright.core.values.failures import Failure
from loopwright.core.values.permissions import Access, Permissions
from loopwright.ports import Spent

AGENT = AcpAgent(profile=ACP)
COMMAND = {"command": ["agent"]}


def methods(writes: tuple[str, ...]) -> list[str]:
    return [json.loads(text)["method"] for text in writes]


class TestBeginning:
    def test_the_prompt_is_given_once_the_conversation_is_there(self) -> None:
        run = fold(AGENT, start(AGENT), request(prompt="ä\ud800", options=COMMAND))
        new, prompt = run.said()
        assert new["params"] == {"cwd": "/workspace", "mcpServers": []}
        assert prompt["method"] == "session/prompt"
        assert prompt["params"] == {"sessionId": "s", "prompt": [{"type": "text", "text": "ä?"}]}
        assert run.state.session == "s"

    def test_it_works_where_the_project_is(self) -> None:
        run = fold(AGENT, [begin()], request(subfolder="packages/api"))
        assert run.said()[0]["params"]["cwd"] == "/workspace/packages/api"

    def test_instructions_stand_before_the_prompt(self) -> None:
        own = {**COMMAND, "instructions": "Use tabs.\n"}
        run = fold(AGENT, start(AGENT), request(prompt="Do it.", options=own))
        assert run.said()[-1]["params"]["prompt"][0]["text"] == "Use tabs.\n\nDo it."

    def test_tool_servers_are_told_with_their_variables(self) -> None:
        tools = {"toy": replace(TOOLS["loopwright"], env={"A": "1"})}
        (new,) = fold(AGENT, [begin()], request(tools=tools)).said()
        assert new["params"]["mcpServers"] == [
            {
                "name": "toy",
                "command": "/usr/bin/python3",
                "args": ["toy_mcp.py"],
                "env": [{"name": "A", "value": "1"}],
            }
        ]

    def test_who_takes_tool_servers_from_a_file_is_not_told_of_them_twice(self) -> None:
        (new,) = fold(AcpAgent(profile=COPILOT), [begin()], request(tools=TOOLS)).said()
        assert new["params"]["mcpServers"] == []

    def test_it_authenticates_first_where_a_way_is_named(self) -> None:
        run = fold(AGENT, [begin(), answer(rpc.AUTHENTICATE)], request(options={**COMMAND, "auth": "key"}))
        assert methods(run.writes) == ["authenticate", "session/new"]

    def test_a_refused_way_to_authenticate_ends_it(self) -> None:
        refused = error(rpc.AUTHENTICATE, -32603, "Internal error", {"details": "Missing API key"})
        run = fold(AGENT, [begin(), refused], request(options={**COMMAND, "auth": "key"}))
        assert run.closed == 1
        assert run.result().failure is Failure.AUTH
        assert run.result().detail == "Internal error: Missing API key"

    @each_case(
        ("agent", "fork", "method"),
        [
            (AGENT, False, "session/load"),
            (AcpAgent(profile=GOOSE), False, "session/load"),
            (AcpAgent(profile=OPENCODE), False, "session/resume"),
            (AcpAgent(profile=OPENCODE), True, "session/fork"),
            (AcpAgent(profile=GEMINI), False, "session/new"),
        ],
    )
    def test_a_conversation_is_gone_on_with_in_the_way_that_works(
        self, agent: AcpAgent, fork: bool, method: str
    ) -> None:
        assert methods(fold(agent, [begin()], request(session_ref="old", fork=fork)).writes) == [method]

    def test_who_cannot_go_on_with_a_conversation_begins_another(self) -> None:
        lines = [begin(loadSession=False), answer(rpc.SESSION, sessionId="new")]
        run = fold(AGENT, lines, request(session_ref="old"))
        assert methods(run.writes) == ["session/new", "session/prompt"]
        assert run.state.session == "new"

    def test_a_copy_has_a_name_of_its_own(self) -> None:
        agent = AcpAgent(profile=OPENCODE)
        lines = [begin(), answer(rpc.SESSION, sessionId="copy")]
        assert fold(agent, lines, request(session_ref="old", fork=True)).state.session == "copy"

    def test_a_conversation_without_a_name_cannot_be_had(self) -> None:
        run = fold(AGENT, [begin(), answer(rpc.SESSION)], request())
        assert run.closed == 1
        assert run.result().failure is Failure.CANNOT_START

    def test_an_old_conversation_that_is_gone_leaves_it_to_a_fresh_attempt(self) -> None:
        run = fold(
            AGENT, [begin(), error(rpc.SESSION, -32002, "Resource not found")], request(session_ref="old")
        )
        result = run.result()
        assert result.failure is Failure.CRASH
        assert result.session_ref is None

    @each_case("version", [0, 2, "1", None, []])
    def test_another_version_of_the_protocol_is_not_spoken(self, version: Any, wording: Wording) -> None:
        run = fold(AGENT, [answer(rpc.INITIALIZE, protocolVersion=version)], request())
        assert run.writes == ()
        assert run.closed == 1
        assert run.result().failure is Failure.CANNOT_START
        wording(run.result().detail)

    def test_an_error_before_the_conversation_means_that_it_cannot_start(self) -> None:
        run = fold(AGENT, [error(rpc.INITIALIZE, -32600, "no")], request())
        assert run.closed == 1
        assert run.result().failure is Failure.CANNOT_START


class TestModes:
    MODES: ClassVar[Any] = {
        "currentModeId": "yolo",
        "availableModes": [{"id": "default"}, {"id": "yolo"}],
    }

    def begun(self, access: Access, modes: Any) -> tuple[list[str], Any]:
        agent = AcpAgent(profile=GEMINI)
        lines = [begin(), answer(rpc.SESSION, sessionId="s", modes=modes)]
        run = fold(agent, lines, request(permissions=Permissions(access=access)))
        return methods(run.writes), run

    @each_case("access", [Access.READ_ONLY, Access.EDIT])
    def test_a_free_mode_that_the_user_has_set_is_left(self, access: Access) -> None:
        said, run = self.begun(access, self.MODES)
        assert said == ["session/new", "session/set_mode"]
        assert run.said()[-1]["params"] == {"sessionId": "s", "modeId": "default"}

    def test_the_mode_that_it_is_in_is_not_set_again(self) -> None:
        assert self.begun(Access.SANDBOXED_ALL, self.MODES)[0] == ["session/new", "session/prompt"]

    def test_without_its_free_mode_it_asks_and_is_always_allowed(self) -> None:
        modes = {"currentModeId": "plan", "availableModes": [{"id": "plan"}, {"id": "default"}]}
        _, run = self.begun(Access.SANDBOXED_ALL, modes)
        assert run.said()[-1]["params"]["modeId"] == "default"

    @each_case("access", list(Access))
    def test_an_agent_that_lacks_the_mode_is_not_given_the_prompt(
        self, access: Access, wording: Wording
    ) -> None:
        said, run = self.begun(access, {"currentModeId": "plan", "availableModes": [{"id": "plan"}]})
        assert said == ["session/new"]
        assert run.closed == 1
        assert run.result().failure is Failure.CANNOT_START
        wording(run.result().detail)

    def test_a_mode_can_be_chosen_for_any_program(self) -> None:
        lines = [begin(), answer(rpc.SESSION, sessionId="s", modes={"availableModes": [{"id": "ask"}]})]
        run = fold(AGENT, lines, request(options={**COMMAND, "mode": "ask"}))
        assert run.said()[-1]["params"]["modeId"] == "ask"


class TestModels:
    OPTION: ClassVar[Any] = {
        "id": "the-model",
        "category": "model",
        "currentValue": "a",
        "options": [{"value": "a"}, {"value": "b"}],
    }

    def begun(self, model: str) -> Any:
        agent = AcpAgent(profile=OPENCODE)
        lines = [begin(), answer(rpc.SESSION, sessionId="s", configOptions=[{"id": "mode"}, self.OPTION])]
        return fold(agent, lines, request(model=model))

    def test_it_is_chosen_in_the_conversation(self) -> None:
        run = self.begun("b")
        assert run.said()[-1]["method"] == "session/set_config_option"
        assert run.said()[-1]["params"] == {"sessionId": "s", "configId": "the-model", "value": "b"}

    def test_the_one_that_is_there_already_is_not_chosen_again(self) -> None:
        assert self.begun("a").said()[-1]["method"] == "session/prompt"

    def test_one_that_is_not_there_is_never_silently_replaced(self) -> None:
        run = self.begun("c")
        assert methods(run.writes) == ["session/new"]
        assert run.result().failure is Failure.MODEL
        assert "'c', only a, b" in run.result().detail

    def test_an_agent_without_a_choice_is_told_on_its_command_line(self) -> None:
        agent = AcpAgent(profile=GOOSE)
        run = fold(agent, start(agent), request(model="x"))
        assert run.said()[-1]["method"] == "session/prompt"


class TestRequests:
    @each_case(
        "method",
        [
            "fs/read_text_file",
            "fs/write_text_file",
            "terminal/create",
            "terminal/output",
            "elicitation/create",
            "_their/own",
        ],
    )
    @each_case("id", [0, 6, "a-b-c", None])
    def test_what_is_not_ours_to_do_gets_the_protocols_own_error(self, method: str, id: object) -> None:
        step = AGENT.fold(begun(AGENT), message(id=id, method=method, params={}))
        (refused,) = [json.loads(text) for text in step.writes]
        assert refused["id"] == id
        assert refused["error"]["code"] == -32601
        assert [event.kind for event in step.events] == ["Raw"]

    def test_a_request_that_is_too_long_to_be_read_is_not_left_waiting(self) -> None:
        text = '{"jsonrpc":"2.0","id":"a-1","method":"session/request_permission","params":{"x":"' + "x" * 50
        (refused,) = [json.loads(one) for one in AGENT.fold(begun(AGENT), line(text)).writes]
        assert refused["id"] == "a-1"
        assert "too long" in refused["error"]["message"]

    def test_a_note_that_is_too_long_needs_no_answer(self) -> None:
        text = '{"jsonrpc":"2.0","method":"session/update","params":{"x":"' + "x" * 50
        assert AGENT.fold(begun(AGENT), line(text)).writes == ()

    def test_nothing_is_said_after_the_end(self) -> None:
        cut = line('{"jsonrpc":"2.0","id":3,"method":"session/request_permission","params":{"x')
        late = [wants(1, {"kind": "edit"}), message(id=2, method="fs/read_text_file"), cut, end()]
        run = fold(AGENT, [*start(AGENT), says("hi"), end(), *late], request())
        assert run.closed == 1
        assert methods(run.writes) == ["session/new", "session/prompt"]


class TestAnswers:
    @each_case("id", [True, 1.0, "6", -1, 7, 99, None, [], {}])
    def test_an_answer_to_nothing_that_was_asked_is_kept_and_does_nothing(self, id: object) -> None:
        state = begun(AGENT)
        step = AGENT.fold(state, message(id=id, result={"stopReason": "end_turn"}))
        assert step.state == state
        assert step.writes == ()
        assert [event.kind for event in step.events] == ["Raw"]

    def test_an_answer_that_comes_twice_asks_for_nothing_twice(self) -> None:
        first = answer(rpc.SESSION, sessionId="s")
        run = fold(AGENT, [begin(), first, first], request())
        assert methods(run.writes) == ["session/new", "session/prompt"]

    def test_an_end_that_comes_too_early_is_none(self) -> None:
        run = fold(AGENT, [begin(), end()], request())
        assert run.closed == 0
        assert run.result().failure is Failure.CRASH

    def test_words_of_another_conversation_are_not_its_own(self) -> None:
        other = message(
            method="session/update",
            params={
                "sessionId": "sub",
                "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}},
            },
        )
        run = fold(AGENT, [*start(AGENT), says("mine"), other, end()], request())
        assert run.result().summary == "mine"


class TestEnds:
    @pytest.mark.capability("C028")
    @each_case(
        ("reason", "failure"),
        [
            ("end_turn", None),
            ("max_tokens", Failure.CONTEXT),
            ("max_turn_requests", Failure.TURNS),
            ("refusal", Failure.REFUSAL),
            ("cancelled", Failure.CANCELLED),
            ("something_new", Failure.AGENT_ERROR),
            ("", Failure.AGENT_ERROR),
        ],
    )
    def test_a_reason_to_stop_is_taken_for_what_it_is(self, reason: str, failure: Failure | None) -> None:
        run = fold(AGENT, [*start(AGENT), says("hi"), end(reason)], request())
        assert run.closed == 1
        assert run.result().failure is failure
        assert run.result().claimed is (failure is None)

    def test_a_turn_without_a_word_is_no_success(self) -> None:
        run = fold(AGENT, [*start(AGENT), end()], request())
        assert run.result().failure is Failure.AGENT_ERROR

    def test_a_turn_without_a_word_but_with_a_deed_is_one(self) -> None:
        lines = [*start(AGENT), told("tool_call", toolCallId="c", title="x", status="completed"), end()]
        assert fold(AGENT, lines, request()).result().claimed

    @each_case(
        ("code", "failure"),
        [(0, Failure.CRASH), (1, Failure.CRASH), (-9, Failure.CRASH), (143, Failure.CRASH)],
    )
    def test_an_exit_in_the_middle_is_a_crash(self, code: int, failure: Failure, wording: Wording) -> None:
        result = fold(AGENT, [*start(AGENT), says("hi")], request()).result(ended(code))
        assert result.failure is failure
        wording(result.detail)

    @each_case(
        ("said", "failure"),
        [
            ("unknown option --acp", Failure.CANNOT_START),
            ("Invalid auth method selected.", Failure.AUTH),
            ("", Failure.CANNOT_START),
        ],
    )
    @each_case("code", [41, 147])
    def test_an_exit_at_the_start_says_why_in_its_last_words(
        self, said: str, failure: Failure, code: int
    ) -> None:
        result = fold(AGENT, [line(said, "err")] if said else [], request()).result(ended(code))
        assert result.failure is failure
        assert said in result.detail

    def test_copilot_ends_well_with_an_error_in_words(self) -> None:
        agent = AcpAgent(profile=COPILOT)
        lines = [*start(agent), says("Error: Authentication failed (HTTP 401)."), end()]
        assert fold(agent, lines, request()).result().failure is Failure.AUTH

    def test_an_error_in_words_that_it_got_over_is_none(self) -> None:
        agent = AcpAgent(profile=COPILOT)
        lines = [*start(agent), says("Error: Failed (HTTP 500)."), says("Done."), end()]
        result = fold(agent, lines, request()).result()
        assert result.claimed
        assert result.summary == "Done."

    @each_case(
        ("more", "failure"),
        [
            ([], Failure.TOOL),
            ([told("tool_call_update", toolCallId="c", status="failed")], Failure.TOOL),
            ([says("Then not.")], None),
            ([told("tool_call", toolCallId="other", title="x", status="completed")], None),
        ],
    )
    def test_a_turn_that_ends_at_a_refusal_is_no_success(self, more: Any, failure: Failure | None) -> None:
        asked = wants(1, {"kind": "execute", "rawInput": {"command": "make"}})
        lines = [*start(AGENT), says("I build."), asked, *more, end()]
        run = fold(AGENT, lines, request(permissions=Permissions(access=Access.READ_ONLY)))
        assert run.result().failure is failure
        assert "make" in run.result().detail

    def test_an_agent_of_another_kind_may_begin_with_such_words(self) -> None:
        assert fold(AGENT, [*start(AGENT), says("Error: is the title."), end()], request()).result().claimed

    def test_a_version_that_nobody_tried_is_named_when_something_went_wrong(self, wording: Wording) -> None:
        agent = AcpAgent(profile=GOOSE)
        lines = [*start(agent), end("something_new")]
        wording(fold(agent, lines, request()).result().detail)
        assert fold(agent, [*start(agent), says("hi"), end()], request()).result().detail == ""
        assert "tried was" not in fold(AGENT, lines, request()).result().detail

    def test_a_question_in_its_last_words_is_asked(self) -> None:
        words = 'I wonder.\n```loopwright-ask\n{"question": "Which one?", "options": ["a", "b"]}\n```\n'
        result = fold(AGENT, [*start(AGENT), says(words), end()], request()).result()
        assert not result.claimed
        assert result.failure is None
        assert [one.text for one in result.asked] == ["Which one?"]


class TestStopping:
    def test_there_is_nothing_to_interrupt_before_the_turn_and_after_it(self) -> None:
        asked = request()
        for lines in ([], [begin()], [*start(AGENT), says("hi"), end()]):
            assert AGENT.interrupt(fold(AGENT, lines, asked).state) == ()

    def test_a_turn_is_interrupted_in_the_protocols_words(self) -> None:
        (text,) = AGENT.interrupt(begun(AGENT))
        assert json.loads(text) == {
            "jsonrpc": "2.0",
            "method": "session/cancel",
            "params": {"sessionId": "s"},
        }

    def test_a_question_stays_open_although_the_agent_did_not_listen_when_it_was_told_to_stop(self) -> None:
        lines = [*start(AGENT), wants(1, {"kind": "execute", "rawInput": {"command": "make"}})]
        run = fold(AGENT, lines, request())
        for how in ("deadline", "idle", "done_hang", "itself"):
            result = run.result(ended(-9, how))
            assert (result.failure, result.claimed) == (None, False)
            assert len(result.asked) == 1

    def test_a_person_who_stops_a_run_is_not_asked_for_it_as_well(self) -> None:
        lines = [*start(AGENT), wants(1, {"kind": "execute", "rawInput": {"command": "make"}})]
        result = fold(AGENT, lines, request()).result(ended(0, "asked"))
        assert result.failure is Failure.CANCELLED
        assert result.asked == ()


class TestTelling:
    def test_pieces_of_a_message_are_one_event(self) -> None:
        lines = [
            *start(AGENT),
            says("a "),
            says("b"),
            told("tool_call", toolCallId="c", title="t"),
            says("c"),
            end(),
        ]
        assert fold(AGENT, lines, request()).told("Text") == ["a b", "c"]

    def test_another_message_is_another_event(self) -> None:
        lines = [
            *start(AGENT),
            says("a", messageId="1"),
            says("b", messageId="1"),
            says("c", messageId="2"),
            end(),
        ]
        run = fold(AGENT, lines, request())
        assert run.told("Text") == ["ab", "c"]
        assert run.result().summary == "c"

    def test_thoughts_are_told_as_such_and_are_no_last_words(self) -> None:
        thought = told("agent_thought_chunk", content={"type": "text", "text": "hm"})
        run = fold(AGENT, [*start(AGENT), says("a"), thought, end()], request())
        texts = [
            (event.text, event.data.get("thinking", False)) for event in run.events if event.kind == "Text"
        ]
        assert texts == [("a", False), ("hm", True)]
        assert run.result().summary == "a"

    def test_long_words_are_told_while_they_come(self) -> None:
        lines = [*start(AGENT), says("x" * 500), says("\n"), says("y")]
        assert fold(AGENT, lines, request()).told("Text") == ["x" * 500 + "\n"]

    def test_a_plan_is_told_when_it_changes(self) -> None:
        first = told("plan", entries=[{"content": "one", "status": "in_progress"}, {"content": "two"}])
        second = told("plan", entries=[{"content": "one", "status": "completed"}, {"content": "two"}])
        run = fold(AGENT, [*start(AGENT), first, first, second], request())
        assert run.told("Text") == ["[>] one\n[ ] two", "[x] one\n[ ] two"]

    def test_the_fill_of_the_context_is_told(self) -> None:
        used = told("usage_update", used=10, size=100, cost={"amount": 0.5, "currency": "USD"})
        (event,) = AGENT.fold(begun(AGENT), used).events
        assert event.data == {"context_used": 10, "context_size": 100, "conversation_cost_micros": 500_000}

    def test_an_agent_that_tells_its_cost_tells_what_this_run_has_cost_so_far(self) -> None:
        agent = AcpAgent(profile=OPENCODE)
        used = told("usage_update", used=10, size=100, cost={"amount": 0.5, "currency": "USD"})
        run = fold(agent, [*start(agent), used], request(), before=Spent(cost_micros=200_000))
        (event,) = (event for event in run.events if event.kind == "Usage")
        assert event.data["run"]["cost_micros"] == 300_000

    def test_tokens_that_come_with_words_are_told_as_a_sum(self) -> None:
        agent = AcpAgent(profile=QWEN)
        some = {"usage": {"inputTokens": 100, "outputTokens": 10, "totalTokens": 110}}
        lines = [*start(agent), says("a", _meta=some), says("b"), says("c", _meta=some)]
        events = [event for event in fold(agent, lines, request()).events if event.kind == "Usage"]
        sums = [(event.data["run"]["input_tokens"], event.data["run"]["output_tokens"]) for event in events]
        assert sums == [(100, 10), (200, 20)]

    def test_another_currency_is_no_dollars(self) -> None:
        used = told("usage_update", used=10, size=100, cost={"amount": 0.5, "currency": "EUR"})
        assert AGENT.fold(begun(AGENT), used).state.cost_micros is None

    @each_case(
        "update", ["available_commands_update", "current_mode_update", "session_info_update", "novelty", None]
    )
    def test_what_concerns_nobody_is_kept(self, update: Any) -> None:
        step = AGENT.fold(begun(AGENT), told(update))
        assert [event.kind for event in step.events] == ["Raw"]

    def test_a_call_is_told_once_it_is_known_what_it_does(self) -> None:
        lines = [
            *start(AGENT),
            told("tool_call", toolCallId="c", title="edit", kind="edit", status="pending", rawInput={}),
            told("tool_call_update", toolCallId="c", rawInput={"filePath": "/workspace/a.py"}),
            told("tool_call_update", toolCallId="c", status="in_progress"),
            told("tool_call_update", toolCallId="c", status="failed", content=[
                {"type": "content", "content": {"type": "text", "text": "no such file"}}]),
        ]  # fmt: skip
        run = fold(AGENT, lines, request())
        assert run.told("ToolStart") == ["edit /workspace/a.py"]
        assert run.told("ToolEnd") == ["no such file"]
        assert run.told("FileChange") == [], "it failed"
        assert run.state.calls == ()
