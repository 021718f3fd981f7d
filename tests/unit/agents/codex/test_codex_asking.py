"""What Codex asks leave for, in the same words as every agent, and how it is answered."""

import json
from typing import Any, ClassVar

from tests.cases import each_case
from tests.unit.agents.codex.codex_messages import AGENT, WORKSPACE, Message, answered, begun, ended, message
from tests.wording_plugin import Wording

from loopwright.adapters.agents.reading import only_reads
from loopwright.core.values.permissions import OWN_TOOL, Access, Permissions
from loopwright.ports import AgentResult, Folded, OutputLine

COMMAND = "item/commandExecution/requestApproval"
CHANGE = "item/fileChange/requestApproval"
TOOL = "mcpServer/elicitation/request"
ACCESS = "item/permissions/requestApproval"


def ask(method: str, *before: OutputLine, may: Permissions | None = None, **params: Any) -> Folded:
    return AGENT.fold(begun(may or Permissions(), *before), message(method, 7, **params))


def result_of(step: Folded) -> Any:
    answer = json.loads(step.writes[0])
    assert answer["id"] == 7
    return answer["result"]


def keys(step: Folded) -> list[str]:
    return [one.wish.key for one in step.state.asked if one.wish]


def command(line: str, cwd: str = WORKSPACE) -> Message:
    return {"command": f"/bin/bash -lc {json.dumps(line)}", "cwd": cwd, "kind": "command"}


def change(*paths: str, moved: str | None = None) -> OutputLine:
    changes = [{"path": path, "kind": {"type": "update", "move_path": moved}} for path in paths]
    return message("item/started", item={"type": "fileChange", "id": "c1", "changes": changes})


def stopped(step: Folded) -> bool:
    return len(step.writes) == 2 and json.loads(step.writes[1])["params"] == {"threadId": "T", "turnId": "U"}


class TestCommands:
    def test_what_is_on_the_list_is_accepted_at_once(self) -> None:
        step = ask(COMMAND, may=Permissions(commands=("make *",)), **command("make dist && make test"))
        assert result_of(step) == {"decision": "accept"}
        assert len(step.writes) == 1
        assert step.events == ()

    def test_what_a_person_refused_is_declined_and_the_turn_goes_on(self) -> None:
        step = ask(COMMAND, may=Permissions(refused=("command:make dist",)), **command("make dist"))
        assert result_of(step) == {"decision": "decline"}
        assert len(step.writes) == 1

    def test_what_nobody_settled_is_refused_for_now_and_the_turn_ended(self, wording: Wording) -> None:
        step = ask(COMMAND, **command("make dist"), reason="It has to be built.")
        assert result_of(step) == {"decision": "cancel"}
        assert stopped(step)
        assert step.stops, "and has to leave"
        (event,) = step.events
        assert event.kind == "Ask"
        wording(event.text)

    def test_the_result_carries_the_question_and_neither_claims_nor_fails(self) -> None:
        step = ask(COMMAND, **command("make dist"))
        state = AGENT.fold(
            step.state, message("turn/completed", turn={"id": "U", "status": "interrupted"})
        ).state
        result: AgentResult = AGENT.result(state, ended(0))
        assert (result.claimed, result.failure) == (False, None)
        (asked,) = result.asked
        assert asked.wish is not None
        assert (asked.kind, asked.options, asked.wish.key) == (
            "permission",
            ("yes", "no"),
            "command:make dist",
        )

    def test_an_answer_that_came_too_late_to_stop_it_is_asked_for_nevertheless(self) -> None:
        step = ask(COMMAND, **command("make dist"))
        state = AGENT.fold(
            step.state, message("turn/completed", turn={"id": "U", "status": "completed"})
        ).state
        assert AGENT.result(state, ended(0)).asked

    def test_the_same_wish_is_one_question_however_often_it_is_made(self) -> None:
        step = ask(COMMAND, **command("make dist"))
        again = AGENT.fold(step.state, message(COMMAND, 8, **command("make dist")))
        assert json.loads(again.writes[0])["result"] == {"decision": "cancel"}
        other = AGENT.fold(again.state, message(COMMAND, 9, **command("make test")))
        assert keys(other) == ["command:make dist", "command:make test"]

    def test_the_shell_around_it_is_left_out_and_other_programs_are_not(self) -> None:
        assert keys(ask(COMMAND, command="/usr/bin/zsh -lc 'make dist'", cwd=WORKSPACE)) == [
            "command:make dist"
        ]
        assert keys(ask(COMMAND, command="python -c 'print(1)'", cwd=WORKSPACE)) == [
            "command:python -c 'print(1)'"
        ]

    def test_a_command_elsewhere_is_another_command(self) -> None:
        granted = Permissions(granted=("command:rm -r build",))
        assert result_of(ask(COMMAND, may=granted, **command("rm -r build"))) == {"decision": "accept"}
        assert result_of(ask(COMMAND, may=granted, **command("rm -r build", cwd=f"{WORKSPACE}/sub"))) == {
            "decision": "accept"
        }
        step = ask(COMMAND, may=granted, **command("rm -r build", cwd=f"{WORKSPACE}/../other"))
        assert keys(step) == ["command:cd /home/x/other && rm -r build"]

    def test_a_long_command_is_decided_by_its_last_word_too(self) -> None:
        line = f"cat {'a' * 10_000} ; rm -r build"
        assert keys(ask(COMMAND, **command(line))) == [f"command:{line}"]

    def test_leave_for_a_command_is_no_leave_for_the_network(self) -> None:
        network = {"host": "example.com", "protocol": "https"}
        may = Permissions(commands=("curl *",))
        step = ask(COMMAND, may=may, **command("curl example.com"), networkApprovalContext=network)
        assert keys(step) == ["tool:network example.com"]

    def test_words_to_a_running_program_need_leave_of_their_own(self) -> None:
        asked = {**command("cat"), "kind": "writeStdin"}
        assert keys(ask(COMMAND, **asked)) == ['tool:writeStdin /bin/bash -lc "cat"']

    def test_the_request_of_an_agent_that_it_started_ends_our_turn(self) -> None:
        step = AGENT.fold(
            begun(Permissions()),
            message(COMMAND, 7, **{**command("make dist"), "threadId": "other", "turnId": "theirs"}),
        )
        assert stopped(step)

    def test_the_words_of_the_older_protocol_are_understood(self, wording: Wording) -> None:
        asked = {"command": ["bash", "-lc", "make dist"], "cwd": WORKSPACE, "callId": "c"}
        step = ask("execCommandApproval", **asked)
        assert keys(step) == ["command:make dist"]
        wording(result_of(step)["decision"]["denied"]["rejection"])
        assert stopped(step)
        listed = ask("execCommandApproval", may=Permissions(commands=("make *",)), **asked)
        assert result_of(listed) == {"decision": "approved"}


class TestGitsOwnFiles:
    @each_case(
        "path",
        [f"{WORKSPACE}/.git/config", ".git/config", f"{WORKSPACE}/src/../.git/config", "sub/.GIT/config"],
    )
    def test_a_change_of_them_is_asked_about(self, path: str) -> None:
        step = ask(CHANGE, change(f"{WORKSPACE}/a.py", path), itemId="c1")
        assert result_of(step) == {"decision": "cancel"}
        assert len(keys(step)) == 1
        assert keys(ask("applyPatchApproval", fileChanges={path: {}, "a.py": {}})) == keys(step)
        assert keys(ask(ACCESS, permissions={"fileSystem": {"write": [path]}})) == keys(step)

    def test_a_file_that_becomes_one_of_them_is_asked_about(self) -> None:
        step = ask(CHANGE, change(f"{WORKSPACE}/a.py", moved=f"{WORKSPACE}/.git/config"), itemId="c1")
        assert keys(step) == ["edit:.git/config"]

    def test_a_change_of_more_files_than_are_known_could_be_of_any(self) -> None:
        many = [f"{WORKSPACE}/{n}.py" for n in range(300)]
        assert keys(ask(CHANGE, change(*many, f"{WORKSPACE}/.git/config"), itemId="c1")) == ["edit:/"]


class TestReading:
    @each_case(
        "line",
        [
            "cat hello.txt",
            "rg -n 'def (a|b)\\(' src | head -20",
            "sed -n '1,200p' src/a.py",
            "sed -n '1,20p;40,$p' 'a b.py'",
            "cd src && ls -la && git status --short",
            "find . -name '*.py' -type f | sort | uniq -c",
            "git --no-pager diff HEAD~1 -- src",
            "grep -rn TODO . 2>/dev/null | wc -l",
            "rg --pretty x",
        ],
    )
    def test_looking_needs_no_leave(self, line: str) -> None:
        assert only_reads(line)
        assert result_of(ask(COMMAND, **command(line))) == {"decision": "accept"}

    @each_case(
        "line",
        [
            "",
            "cat a > b",
            "cat a | tee b",
            "cat $(make dist)",
            "find . -name x -delete",
            "find . -type f -exec rm {} +",
            "rg --pre ./evil x",
            "rg --pre=./evil x",
            "rg -lz x",
            "fd -x rm",
            "fd . -X rm",
            "sort -uo out in",
            "sort --output=out in",
            "uniq in out",
            "tree -o out",
            "sed -i s/a/b/ x",
            "sed -n '1w out' x",
            "sed -n 1p -i x",
            "sed s/a/b/e x",
            "git -c core.pager=./evil log",
            "git diff --output=x",
            "git diff --ext-diff",
            "git grep -O./evil x",
            "git grep -nO./evil x",
            "git grep --op=./evil x",
            "git diff --ext",
            "git commit -m x",
            "git checkout .",
            "FOO=1 cat x",
            "cat x; make dist",
            "awk 'BEGIN{system(1)}'",
            "cat x & make dist",
        ],
    )
    def test_what_may_do_more_than_look_is_a_command(self, line: str) -> None:
        assert not only_reads(line)


class TestChanges:
    def test_files_of_the_workspace_may_be_changed(self) -> None:
        step = ask(CHANGE, change(f"{WORKSPACE}/src/a.py", "b.py"), itemId="c1")
        assert result_of(step) == {"decision": "accept"}

    def test_files_elsewhere_are_asked_for_by_their_whole_path(self) -> None:
        step = ask(CHANGE, change(f"{WORKSPACE}/a.py", f"{WORKSPACE}/../b.py", "/etc/hosts"), itemId="c1")
        assert result_of(step) == {"decision": "cancel"}
        assert keys(step) == ["edit:/home/x/b.py", "edit:/etc/hosts"]

    def test_a_folder_that_only_begins_like_the_workspace_is_not_in_it(self) -> None:
        assert keys(ask(CHANGE, change(f"{WORKSPACE}-2/a.py"), itemId="c1")) == [f"edit:{WORKSPACE}-2/a.py"]

    def test_a_way_out_at_the_end_of_a_very_long_path_is_seen(self) -> None:
        path = f"{WORKSPACE}/{'a/' * 3000}{'../' * 3003}etc/hosts"
        assert keys(ask(CHANGE, change(path), itemId="c1")) == ["edit:/etc/hosts"]

    def test_where_a_file_is_moved_to_counts(self) -> None:
        step = ask(CHANGE, change(f"{WORKSPACE}/a.py", moved="/etc/hosts"), itemId="c1")
        assert keys(step) == ["edit:/etc/hosts"]

    def test_a_change_that_was_not_told_before_could_be_of_any_file(self) -> None:
        assert keys(ask(CHANGE, itemId="c9")) == ["edit:/"]

    def test_leave_to_write_below_a_folder_is_asked_for_too(self) -> None:
        assert keys(ask(CHANGE, change("a.py"), itemId="c1", grantRoot="/etc")) == ["edit:/etc"]

    def test_one_refused_file_refuses_the_change(self) -> None:
        may = Permissions(refused=("edit:/etc/hosts",))
        step = ask(CHANGE, change("/etc/hosts", "/etc/passwd"), may=may, itemId="c1")
        assert result_of(step) == {"decision": "decline"}
        assert step.state.asked == ()

    def test_who_may_only_read_changes_nothing_and_asks_nobody(self) -> None:
        step = ask(CHANGE, change("a.py"), may=Permissions(access=Access.READ_ONLY), itemId="c1")
        assert result_of(step) == {"decision": "decline"}

    def test_the_workspace_is_known_by_the_path_that_codex_knows_it_by_too(self) -> None:
        state = begun(Permissions(), answered("thread", thread={"id": "T"}, cwd="/private/x/workspace"))
        state = AGENT.fold(state, change("/private/x/workspace/a.py")).state
        step = AGENT.fold(state, message(CHANGE, 7, itemId="c1"))
        assert result_of(step) == {"decision": "accept"}

    def test_the_words_of_the_older_protocol_are_understood(self) -> None:
        files = {f"{WORKSPACE}/a.py": {"type": "add"}, "/etc/hosts": {"type": "update"}}
        assert keys(ask("applyPatchApproval", fileChanges=files)) == ["edit:/etc/hosts"]


class TestTools:
    def asked(self, tool: str, *, may: Permissions | None = None, words: str | None = None) -> Folded:
        call = {"type": "mcpToolCall", "id": "m1", "server": "toy", "tool": tool, "arguments": {"a": 1}}
        return ask(
            TOOL,
            message("item/started", item=call),
            may=may,
            serverName=(words and "other") or "toy",
            mode="form",
            message=words or f'Allow the toy MCP server to run tool "{tool}"?',
            _meta={"codex_approval_kind": "mcp_tool_call", "tool_params": {"a": 1}},
        )

    def test_a_tool_is_asked_for_by_the_name_that_all_agents_give_it(self) -> None:
        step = self.asked("add")
        assert result_of(step) == {"action": "cancel"}
        assert keys(step) == ["tool:mcp__toy__add"]
        assert stopped(step)

    def test_a_granted_tool_is_used(self) -> None:
        step = self.asked("add", may=Permissions(granted=("tool:mcp__toy__add",)))
        assert result_of(step) == {"action": "accept", "content": {}}

    def test_a_tool_whose_call_was_not_told_is_known_by_the_words(self) -> None:
        assert keys(self.asked("add", words='Allow the other MCP server to run tool "sub"?')) == [
            "tool:mcp__other__sub"
        ]

    def test_a_tool_that_nobody_can_name_is_asked_for_as_such(self) -> None:
        assert keys(self.asked("add", words="Allow it?")) == ["tool:mcp__other__?"]

    def test_the_tool_to_ask_with_needs_no_leave(self) -> None:
        _, server, tool = OWN_TOOL.split("__")
        step = ask(
            TOOL,
            serverName=server,
            message=f'Allow the server to run tool "{tool}"?',
            _meta={"codex_approval_kind": "mcp_tool_call"},
        )
        assert result_of(step)["action"] == "accept"

    def test_a_form_is_declined_because_nobody_can_fill_it_in(self) -> None:
        step = ask(TOOL, serverName="toy", mode="form", message="Your name?", requestedSchema={})
        assert result_of(step) == {"action": "decline"}
        assert step.state.asked == ()


class TestAccess:
    WANTED: ClassVar[Message] = {
        "network": {"enabled": True},
        "fileSystem": {
            "read": ["/etc/hosts"],
            "write": ["/var/x", "/var/y"],
            "entries": [
                {"path": {"type": "path", "path": "/var/y"}, "access": "write"},
                {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"},
                {"path": {"type": "path", "path": "/var/z"}, "access": "deny"},
            ],
        },
    }  # fmt: skip

    def test_everything_that_is_wanted_is_asked_for(self) -> None:
        step = ask(ACCESS, permissions=self.WANTED)
        assert result_of(step) == {"permissions": {}, "scope": "turn"}
        assert keys(step) == [
            "edit:/var/x",
            "edit:/var/y",
            "tool:files [('type', 'special'), ('value', {'kind': 'root'})]",
            "tool:network",
        ]
        assert stopped(step)

    def test_what_may_be_done_is_given_for_this_turn(self) -> None:
        step = ask(ACCESS, may=Permissions(access=Access.SANDBOXED_ALL), permissions=self.WANTED)
        assert result_of(step) == {"permissions": self.WANTED, "scope": "turn"}

    def test_who_may_only_read_gets_nothing(self) -> None:
        step = ask(ACCESS, may=Permissions(access=Access.READ_ONLY), permissions=self.WANTED)
        assert result_of(step) == {"permissions": {}, "scope": "turn"}
        assert step.state.asked == ()


def test_a_question_is_passed_on_to_a_person() -> None:
    options = [{"label": "Left", "description": "l"}, {"label": "Right", "description": "r"}]
    step = ask(
        "item/tool/requestUserInput",
        itemId="i",
        questions=[{"id": "q", "header": "Way", "question": "Which way?", "options": options}],
    )
    answers = result_of(step)["answers"]
    assert answers == {"q": {"answers": ["A person has the question. Stop here; you will get the answer."]}}
    (asked,) = step.state.asked
    assert (asked.kind, asked.text, asked.options) == ("question", "Which way?", ("Left", "Right"))
    assert stopped(step)


@each_case("method", ["item/tool/call", "account/chatgptAuthTokens/refresh", "novelty/ask"])
def test_a_request_that_nobody_can_answer_gets_the_protocols_own_error(method: str) -> None:
    step = ask(method)
    answer = json.loads(step.writes[0])
    assert (answer["id"], answer["error"]["code"]) == (7, -32601)
    assert [event.kind for event in step.events] == ["Raw"]
