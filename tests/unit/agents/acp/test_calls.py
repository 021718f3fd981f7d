"""What calls of tools need leave for, in the same words as for every agent, and how the request is answered."""

import json
from typing import Any, ClassVar

from tests.cases import each_case
from tests.unit.agents.acp.talk import OPTIONS, begun, told, wants
from tests.wording_plugin import Wording

from loopwright.adapters.agents.acp.agent import AcpAgent
from loopwright.adapters.agents.acp.profiles import ACP, COPILOT, GEMINI, GOOSE, OPENCODE, QWEN, Profile
from loopwright.adapters.agents.acp.state import AcpState
from loopwright.core.values.permissions import OWN_TOOL, Access, Permissions
from loopwright.ports import Folded, OutputLine, ToolServer

AGENT = AcpAgent(profile=ACP)
READ_ONLY = Permissions(access=Access.READ_ONLY)
ALL = Permissions(access=Access.SANDBOXED_ALL)
TOOLS = {"toy": ToolServer(command="toy"), "loopwright": ToolServer(command="ask")}
YES = {"outcome": {"outcome": "selected", "optionId": "yes"}}
NO = {"outcome": {"outcome": "selected", "optionId": "no"}}
STOP = {"outcome": {"outcome": "cancelled"}}


def ask(
    call: dict[str, Any],
    *before: OutputLine,
    may: Permissions | None = None,
    agent: AcpAgent = AGENT,
    options: Any = OPTIONS,
) -> Folded:
    return agent.fold(begun(agent, *before, may=may, tools=TOOLS, subfolder="sub"), wants(7, call, options))


def answer(step: Folded) -> Any:
    message = json.loads(step.writes[-1])
    assert message["id"] == 7
    return message["result"]


def keys(step: Folded) -> list[str]:
    state: AcpState = step.state
    return [asking.wish.key for asking in state.asked if asking.wish]


class TestFiles:
    @each_case(
        "call",
        [
            {"kind": "edit", "locations": [{"path": "/workspace/a.py"}]},
            {"kind": "edit", "rawInput": {"filePath": "a.py"}},
            {"kind": "edit", "content": [{"type": "diff", "path": "/workspace/a.py", "newText": ""}]},
            {"kind": "delete", "rawInput": {"file_path": "/workspace/sub/../a.py"}},
            {"kind": "edit", "rawInput": {"changes": {"/workspace/a.py": {}, "/workspace/b.py": {}}}},
        ],
    )
    def test_files_of_the_workspace_may_be_changed(self, call: dict[str, Any]) -> None:
        assert answer(ask(call)) == YES

    @each_case(
        ("call", "key"),
        [
            ({"kind": "edit", "locations": [{"path": "/workspace/.git/config"}]}, "edit:.git/config"),
            ({"kind": "edit", "rawInput": {"filePath": "../.git/config"}}, "edit:.git/config"),
            (
                {"kind": "edit", "rawInput": {"changes": {"a.py": {}, ".GIT/config": {}}}},
                "edit:sub/.GIT/config",
            ),
            ({"kind": "delete", "rawInput": {"path": "/workspace/.git"}}, "edit:.git"),
            (
                {"kind": "move", "rawInput": {"source": "a", "destination": "/workspace/src/../.git/config"}},
                "edit:.git/config",
            ),
        ],
    )
    @each_case("profile", [ACP, COPILOT, GEMINI, GOOSE, OPENCODE, QWEN], ids=lambda one: one.name)
    def test_gits_own_files_are_asked_about(self, profile: Profile, call: dict[str, Any], key: str) -> None:
        step = ask(call, agent=AcpAgent(profile=profile))
        assert answer(step) == STOP
        assert keys(step) == [key]

    def test_who_may_only_read_changes_nothing_and_asks_nobody(self) -> None:
        step = ask({"kind": "edit", "locations": [{"path": "/workspace/a.py"}]}, may=READ_ONLY)
        assert answer(step) == NO
        assert keys(step) == []

    @each_case(
        ("path", "key"),
        [
            ("/etc/hosts", "edit:/etc/hosts"),
            ("/workspace-2/a.py", "edit:/workspace-2/a.py"),
            ("/workspace/../b.py", "edit:/b.py"),
            ("../../b.py", "edit:/b.py"),
            ("/workspace/" + "a/" * 3000 + "../" * 3001 + "etc/hosts", "edit:/etc/hosts"),
        ],
    )
    def test_files_elsewhere_are_asked_for_by_their_whole_path(self, path: str, key: str) -> None:
        assert keys(ask({"kind": "edit", "locations": [{"path": path}]})) == [key]

    def test_a_relative_path_is_one_from_where_it_works(self) -> None:
        granted = Permissions(access=Access.EDIT, refused=("edit:sub/a.py",))
        assert answer(ask({"kind": "edit", "rawInput": {"path": "a.py"}}, may=granted)) == NO

    def test_one_path_elsewhere_among_many_is_seen(self) -> None:
        inside = [{"path": f"/workspace/{n}.py"} for n in range(500)]
        step = ask({"kind": "edit", "locations": [*inside, {"path": "/etc/hosts"}]})
        assert keys(step) == ["edit:/etc/hosts"]

    @each_case("told_in", ["locations", "content", "input"])
    def test_a_path_counts_wherever_it_is_told(self, told_in: str) -> None:
        call: dict[str, Any] = {"kind": "edit", "locations": [{"path": "/workspace/a.py"}]}
        match told_in:
            case "locations":
                call["locations"].append({"path": "/etc/hosts"})
            case "content":
                call["content"] = [{"type": "diff", "path": "/etc/hosts", "newText": "x"}]
            case _:
                call["rawInput"] = {"path": "/workspace/a.py", "destination": "/etc/hosts"}
        assert keys(ask(call)) == ["edit:/etc/hosts"]

    def test_one_refused_file_refuses_the_change(self) -> None:
        may = Permissions(refused=("edit:/etc/hosts",))
        step = ask({"kind": "edit", "locations": [{"path": "/etc/hosts"}, {"path": "/etc/passwd"}]}, may=may)
        assert answer(step) == NO
        assert keys(step) == []

    def test_a_change_of_nobody_knows_what_is_asked_for(self) -> None:
        assert keys(ask({"kind": "edit", "title": "Change things"})) == ["tool:edit: Change things"]

    def test_a_folder_is_not_asked_for_beside_the_file_in_it(self) -> None:
        call = {"kind": "other", "locations": [{"path": "/etc/x/hosts"}, {"path": "/etc/x"}]}
        known = told("tool_call", toolCallId="c", kind="edit", title="write")
        step = ask(call, known, agent=AcpAgent(profile=OPENCODE))
        assert keys(step) == ["edit:/etc/x/hosts"]

    @each_case("kind", ["read", "search", "think"])
    def test_looking_needs_no_leave(self, kind: str) -> None:
        assert answer(ask({"kind": kind, "locations": [{"path": "/etc/hosts"}]}, may=READ_ONLY)) == YES


class TestCommands:
    @each_case(
        "given",
        [
            {"command": "make dist"},
            {"cmd": "make dist"},
            {"command": ["/bin/bash", "-lc", "make dist"]},
            {"command": ["make", "dist"]},
            {"command": "make dist", "cwd": "/workspace/sub"},
        ],
    )
    def test_a_command_is_asked_for_as_it_would_be_run(self, given: dict[str, Any]) -> None:
        assert keys(ask({"kind": "execute", "title": "Build it", "rawInput": given})) == ["command:make dist"]

    def test_a_command_elsewhere_is_another_command(self) -> None:
        given = {"command": "make dist", "cwd": "/etc"}
        assert keys(ask({"kind": "execute", "rawInput": given})) == ["command:cd /etc && make dist"]

    def test_what_is_on_the_list_is_allowed_at_once(self) -> None:
        call = {"kind": "execute", "rawInput": {"command": "make dist"}}
        assert answer(ask(call, may=Permissions(commands=("make *",)))) == YES

    def test_a_command_that_only_looks_needs_no_leave(self) -> None:
        assert answer(ask({"kind": "execute", "rawInput": {"command": "cat a | head"}}, may=READ_ONLY)) == YES

    def test_a_title_is_no_command(self) -> None:
        step = ask({"kind": "execute", "title": "cat a"}, may=Permissions(commands=("cat *",)))
        assert keys(step) == ["tool:execute: cat a"]

    def test_but_it_is_with_gemini_which_tells_nothing_else(self) -> None:
        step = ask({"kind": "execute", "title": "make dist"}, agent=AcpAgent(profile=GEMINI))
        assert keys(step) == ["command:make dist"]

    def test_the_input_may_have_been_told_before(self) -> None:
        before = told("tool_call", toolCallId="c", kind="execute", rawInput={"command": "make dist"})
        assert keys(ask({"title": "do it"}, before)) == ["command:make dist"]

    def test_what_a_request_is_about_does_not_change_what_the_call_is(self) -> None:
        """Copilot asks leave to look at a file first that it then wants to change."""
        agent = AcpAgent(profile=COPILOT)
        before = told("tool_call", toolCallId="c", kind="edit", locations=[{"path": "/etc/hosts"}])
        first = ask({"kind": "read", "locations": [{"path": "/etc/hosts"}]}, before, agent=agent)
        assert answer(first) == YES
        assert first.state.call("c").kind == "edit"


class TestGoose:
    AGENT = AcpAgent(profile=GOOSE)

    def known(self, name: str, **given: Any) -> OutputLine:
        meta = {"goose": {"toolCall": {"toolName": name}}}
        return told("tool_call", toolCallId="c", title=f"{name} · x", rawInput=given, _meta=meta)

    @each_case(
        ("name", "given", "key"),
        [
            ("shell", {"command": "make dist"}, "command:make dist"),
            ("write", {"path": "/etc/hosts"}, "edit:/etc/hosts"),
            ("delegate", {"task": "x"}, "tool:delegate"),
            ("toy__add", {"command": "cat a"}, "tool:mcp__toy__add"),
        ],
    )
    def test_the_kind_of_a_tool_is_known_by_its_name(self, name: str, given: Any, key: str) -> None:
        step = ask({"kind": "other", "title": "x"}, self.known(name, **given), agent=self.AGENT)
        assert keys(step) == [key]

    def test_a_tree_is_only_looked_at(self) -> None:
        step = ask({"kind": "other"}, self.known("tree", path="/"), agent=self.AGENT, may=READ_ONLY)
        assert answer(step) == YES


class TestTools:
    @each_case(
        "call",
        [
            {"kind": "other", "name": "mcp__toy__add"},
            {"kind": "other", "title": "toy_add"},
            {"kind": "other", "title": "toy-add"},
            {"kind": "other", "title": "toy: add"},
            {"kind": "other", "title": "add (toy MCP Server)"},
            {"kind": "other", "_meta": {"toolName": "mcp__toy__add"}},
            {"kind": "other", "_meta": {"claudeCode": {"toolName": "mcp__toy__add"}}},
        ],
    )
    def test_a_tool_is_asked_for_by_the_name_that_all_agents_give_it(self, call: dict[str, Any]) -> None:
        assert keys(ask(call)) == ["tool:mcp__toy__add"]

    def test_the_tool_to_ask_with_needs_no_leave(self) -> None:
        assert answer(ask({"kind": "other", "title": "loopwright-ask"}, may=READ_ONLY)) == YES
        assert OWN_TOOL == "mcp__loopwright__ask"

    @each_case("title", ["my-loopwright-ask", "run loopwright-ask now", "loopwright ask"])
    def test_but_only_that_one(self, title: str) -> None:
        assert answer(ask({"kind": "other", "title": title}, may=READ_ONLY)) == NO

    def test_a_tool_of_qwen_is_named_in_the_options(self) -> None:
        options = [
            {"optionId": "p", "name": "Always Allow in project: add", "kind": "allow_always"},
            *OPTIONS,
        ]
        call = {"kind": "other", "title": '{"a":2}'}
        assert keys(ask(call, agent=AcpAgent(profile=QWEN), options=options)) == ["tool:add"]

    def test_an_address_is_asked_for_as_such(self) -> None:
        call = {"kind": "fetch", "title": "Fetch", "rawInput": {"url": "https://example.org/a"}}
        assert keys(ask(call)) == ["tool:fetch https://example.org/a"]

    def test_leaving_a_mode_is_asked_for(self) -> None:
        assert keys(ask({"kind": "switch_mode", "title": "Ready?"})) == ["tool:switch_mode: Ready?"]

    def test_a_kind_that_nobody_knows_yet_is_a_tool(self) -> None:
        assert keys(ask({"kind": "teleport", "title": "Beam"})) == ["tool:Beam"]


class TestAnswers:
    CALL: ClassVar[Any] = {"kind": "execute", "rawInput": {"command": "make dist"}}

    def test_what_may_be_done_in_a_sandbox_is_allowed_just_once_each_time(self) -> None:
        assert answer(ask(self.CALL, may=ALL)) == YES

    def test_never_for_always(self, wording: Wording) -> None:
        step = ask(self.CALL, may=ALL, options=OPTIONS[:1])
        assert answer(step) == STOP
        wording(step.events[-1].text)

    def test_a_refusal_takes_what_there_is(self) -> None:
        always = [{"optionId": "never", "name": "Never", "kind": "reject_always"}]
        step = ask(self.CALL, may=READ_ONLY, options=always)
        assert answer(step) == {"outcome": {"outcome": "selected", "optionId": "never"}}
        assert answer(ask(self.CALL, may=READ_ONLY, options=[])) == STOP

    def test_further_requests_of_a_turn_that_is_to_stop_are_cancelled_and_asked_too(self) -> None:
        first = ask(self.CALL)
        again = AGENT.fold(first.state, wants(8, self.CALL))
        other = AGENT.fold(again.state, wants(9, {"kind": "execute", "rawInput": {"command": "make test"}}))
        allowed = AGENT.fold(other.state, wants(10, {"kind": "read"}))
        assert [json.loads(text)["method"] for text in first.writes if "method" in text] == ["session/cancel"]
        for step in (again, other, allowed):
            (text,) = step.writes
            assert json.loads(text)["result"] == STOP
        assert keys(allowed) == ["command:make dist", "command:make test"]

    def test_the_question_is_in_the_same_words_as_every_agents(self, wording: Wording) -> None:
        (asking,) = ask(self.CALL).state.asked
        assert asking.kind == "permission"
        wording(asking.text)
        assert asking.options == ("yes", "no")
