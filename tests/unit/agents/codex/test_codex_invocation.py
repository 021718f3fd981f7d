"""How Codex is started, over both of its protocols."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.cases import each_case
from tests.refusals import raises_code

from loopwright.adapters.agents.codex import starting
from loopwright.adapters.agents.codex.agent import CodexAgent
from loopwright.core.values.errors import BadConfig
from loopwright.core.values.permissions import OWN_TOOLS, Access, Permissions
from loopwright.ports import AgentRequest, Invocation, ToolServer

AGENT = CodexAgent()
ALL = Permissions(access=Access.SANDBOXED_ALL)
EXEC = {"protocol": "exec"}


def request(**changes: Any) -> AgentRequest:
    values: dict[str, Any] = {
        "prompt": "a secret prompt",
        "workspace": Path("/w"),
        "run_directory": Path("/home-of-ours/runs/run_1"),
    }
    return AgentRequest(**{**values, **changes})


def invoked(**changes: Any) -> Invocation:
    return AGENT.invocation(request(**changes))


def settings(invocation: Invocation) -> dict[str, Any]:
    """Return what `-c` says, read as Codex reads it."""
    entries = [invocation.argv[at + 1] for at, word in enumerate(invocation.argv) if word == "-c"]
    found: dict[str, Any] = {}
    # The first `-c` belongs to the shell that redirects stdin.
    for entry in entries[1:] if invocation.argv[0] == "/bin/sh" else entries:
        key, _, value = entry.partition("=")
        found[key] = tomllib.loads(f"value = {value}")["value"]
    return found


class TestBoth:
    @each_case("options", [{}, EXEC])
    def test_the_prompt_is_not_on_the_command_line(self, options: dict[str, str]) -> None:
        invocation = invoked(options=options)
        assert not any("secret" in argument for argument in invocation.argv)
        assert "secret" not in invocation.stdin_data

    @each_case("options", [{}, EXEC])
    def test_its_login_and_its_conversations_are_in_reach(self, options: dict[str, str]) -> None:
        invocation = invoked(options=options)
        (home,) = invocation.home
        assert (home.path, home.moved_by, home.sessions) == (".codex/", "CODEX_HOME", ("sessions",))
        assert "auth.json" in [login.file for login in home.logins]
        assert "CODEX_HOME" in invocation.inherit

    @each_case("options", [{}, EXEC])
    def test_it_is_to_go_nowhere_but_to_its_model(self, options: dict[str, str]) -> None:
        found = settings(invoked(options=options))
        assert found["check_for_update_on_startup"] is False
        assert found["analytics.enabled"] is False

    def test_a_conversation_has_its_name_only_when_it_goes_on_as_it_is(self) -> None:
        assert invoked().session_ref is None
        assert invoked(session_ref="t1").session_ref == "t1"
        assert invoked(session_ref="t1", fork=True).session_ref is None

    def test_settings_of_its_own_are_handed_on(self) -> None:
        given = {"config": ["model_reasoning_effort=high", "model_provider=local"]}
        argv = invoked(options=given).argv
        assert argv[-4:] == ("-c", "model_reasoning_effort=high", "-c", "model_provider=local")

    def test_another_program_can_be_named(self) -> None:
        assert invoked(options={"binary": "/opt/codex"}).argv[0] == "/opt/codex"
        assert "/opt/codex" in invoked(options={"binary": "/opt/codex", **EXEC}).argv

    @each_case(
        ("given", "words"),
        [
            ({"colour": "red"}, "unknown option colour"),
            ({"binary": ""}, "option binary must be a text"),
            ({"protocol": "carrier pigeon"}, "option protocol must be one of app-server, exec"),
            ({"ask": "never"}, "option ask must be one of commands, escalations"),
            ({"ask": "commands", "protocol": "exec"}, "option ask needs protocol = app-server"),
            ({"config": "a=b"}, "option config must be a list of texts"),
            ({"config": ["effort"]}, "config must be a list of texts like"),
            ({"config": ["approval_policy=never"]}, "must not contain approval_policy"),
            ({"config": ["sandbox_mode = 'danger-full-access'"]}, "must not contain sandbox_mode"),
            ({"config": ["projects.x.trust_level=trusted"]}, "must not contain projects.x.trust_level"),
        ],
    )
    def test_an_option_that_is_wrong_is_named(self, given: dict[str, Any], words: str) -> None:
        with pytest.raises(BadConfig, match=words) as caught:
            invoked(options=given)
        assert caught.value.options


class TestAppServer:
    def test_it_is_greeted_first_and_told_the_rest_when_it_is_ready(self) -> None:
        invocation = invoked()
        assert invocation.argv[:2] == ("codex", "app-server")
        assert (invocation.stdin, invocation.interrupt) == ("pipe", "SIGINT")
        (hello,) = map(json.loads, invocation.stdin_data.splitlines())
        assert (hello["id"], hello["method"]) == ("initialize", "initialize")
        assert "jsonrpc" not in hello
        assert hello["params"]["clientInfo"]["name"] == "loopwright"

    @pytest.mark.capability("C034")
    @each_case(
        ("access", "ask", "policy", "sandbox"),
        [
            (Access.READ_ONLY, "commands", "on-request", "read-only"),
            (Access.READ_ONLY, "escalations", "on-request", "read-only"),
            (Access.EDIT, "commands", "untrusted", "workspace-write"),
            (Access.EDIT, "escalations", "on-request", "workspace-write"),
            (Access.SANDBOXED_ALL, "commands", "on-request", "danger-full-access"),
            (Access.SANDBOXED_ALL, "escalations", "on-request", "danger-full-access"),
        ],
    )
    def test_what_it_may_do_is_its_policy_and_its_sandbox(
        self, access: Access, ask: str, policy: str, sandbox: str
    ) -> None:
        method, params = starting.thread(
            request(permissions=Permissions(access=access), options={"ask": ask})
        )
        assert method == "thread/start"
        assert (params["approvalPolicy"], params["sandbox"]) == (policy, sandbox)
        assert params["approvalsReviewer"] == "user", "we are asked, and no other model"
        given = request(permissions=Permissions(access=access), options={"ask": ask}, contained=True)
        _, params = starting.thread(given)
        asked_and_open = (params["approvalPolicy"], params["sandbox"])
        assert asked_and_open == (policy, "danger-full-access"), "in our sandbox it has none of its own"

    def test_in_our_sandbox_exec_makes_none_of_its_own(self) -> None:
        for access in Access:
            permissions = Permissions(access=access)
            argv = invoked(permissions=permissions, contained=True, options={"protocol": "exec"}).argv
            assert "--dangerously-bypass-approvals-and-sandbox" in argv
            assert "--sandbox" not in argv

    def test_no_folder_is_named_because_codex_would_trust_it_from_then_on(self) -> None:
        for changes in ({}, {"session_ref": "t1"}, {"session_ref": "t1", "fork": True}):
            assert "cwd" not in starting.thread(request(**changes))[1]

    def test_a_conversation_goes_on_or_is_copied(self) -> None:
        assert starting.thread(request(session_ref="t1"))[0] == "thread/resume"
        method, params = starting.thread(request(session_ref="t1", fork=True))
        assert (method, params["threadId"], params["excludeTurns"]) == ("thread/fork", "t1", True)

    def test_model_instructions_and_tools_are_for_the_conversation(self) -> None:
        tools = {"toy": ToolServer(command="toy", args=("-v",), env={"TOKEN": "secret"})}
        own = {"instructions": "Use tabs."}
        _, params = starting.thread(request(model="gpt-5.5", options=own, tools=tools))
        assert (params["model"], params["developerInstructions"]) == ("gpt-5.5", "Use tabs.")
        assert "developerInstructions" not in starting.thread(request())[1]
        assert any("Use tabs." in word for word in invoked(options={**EXEC, **own}).argv)
        assert params["config"] == {
            "sandbox_workspace_write.writable_roots": ["/w"],
            "mcp_servers": {
                "toy": {"command": "toy", "args": ["-v"], "env": {"TOKEN": "secret"}, "required": True}
            },
        }
        assert not any("secret" in argument for argument in invoked(tools=tools).argv)

    def test_prompt_and_schema_are_for_the_turn(self) -> None:
        assert starting.turn(request()) == {"input": [{"type": "text", "text": "a secret prompt"}]}
        assert starting.turn(request(schema={"type": "object"}))["outputSchema"] == {"type": "object"}


class TestExec:
    def test_the_prompt_is_a_file_on_its_stdin_so_that_it_never_waits_for_more(self) -> None:
        invocation = invoked(options=EXEC)
        assert invocation.stdin == "null"
        assert invocation.files["prompt.md"] == "a secret prompt"
        assert invocation.argv[:2] == ("/bin/sh", "-c")
        assert invocation.argv[5:8] == ("codex", "exec", "--json")
        assert invocation.argv[-1] == "-"

    @pytest.mark.capability("C034")
    def test_what_it_may_do_is_its_sandbox(self) -> None:
        assert "workspace-write" in invoked(options=EXEC).argv
        read_only = invoked(options=EXEC, permissions=Permissions(access=Access.READ_ONLY)).argv
        assert "read-only" in read_only
        bypass = "--dangerously-bypass-approvals-and-sandbox"
        assert bypass not in (*read_only, *invoked(options=EXEC).argv)
        assert bypass in invoked(options=EXEC, permissions=ALL).argv

    def test_going_on_comes_after_everything_else(self) -> None:
        assert invoked(options=EXEC, session_ref="t1").argv[-3:] == ("resume", "t1", "-")
        assert invoked(options=EXEC, session_ref="t1", fork=True).argv[-3:] == ("fork", "t1", "-")

    def test_the_schema_is_a_file(self) -> None:
        invocation = invoked(options=EXEC, schema={"type": "object"})
        assert json.loads(invocation.files["schema.json"]) == {"type": "object"}
        assert "/home-of-ours/runs/run_1/schema.json" in invocation.argv

    def test_what_it_is_told_survives_every_sign(self) -> None:
        odd = 'Say "yes"\nor \\no\\ 😀 \t \x7f'
        found = settings(invoked(options={**EXEC, "instructions": odd}))
        assert found["developer_instructions"].endswith(odd)
        assert found["sandbox_workspace_write.writable_roots"] == ["/w"]

    def test_the_workspace_is_not_trusted_so_that_no_settings_are_taken_from_it(self) -> None:
        found = settings(invoked(options=EXEC))
        assert found["projects"] == {"/w": {"trust_level": "untrusted"}}
        assert "AGENTS.md" in found["developer_instructions"], "its rules would not be read either"

    def test_only_tools_that_are_settled_can_be_used_because_nobody_can_be_asked(self) -> None:
        tools = {"toy": ToolServer(command="toy"), "loopwright": ToolServer(command="ask")}
        granted = Permissions(
            granted=("tool:mcp__toy__add", "tool:mcp__other__x", "command:mcp__toy__evil"),
            refused=("tool:mcp__toy__drop",),
        )
        found = settings(invoked(options=EXEC, tools=tools, permissions=granted))
        assert found["mcp_servers.toy"] == {
            "command": "toy",
            "args": [],
            "env_vars": [],
            "required": True,
            "tools": {"add": {"approval_mode": "approve"}},
        }
        assert set(found["mcp_servers.loopwright"]["tools"]) == {
            tool.rpartition("__")[2] for tool in OWN_TOOLS
        }

    def test_what_a_tool_server_is_told_in_its_environment_is_on_no_command_line(self) -> None:
        tools = {
            "one": ToolServer(command="one", env={"TOKEN": "secret", "A": "1"}),
            "two": ToolServer(command="two", env={"TOKEN": "secret"}),
        }
        invocation = invoked(options=EXEC, tools=tools)
        assert invocation.env == {"TOKEN": "secret", "A": "1"}
        assert settings(invocation)["mcp_servers.one"]["env_vars"] == ["TOKEN", "A"]
        assert not any("secret" in argument for argument in invocation.argv)
        differently = {**tools, "two": ToolServer(command="two", env={"TOKEN": "another"})}
        with raises_code("agent_option_wrong"):
            invoked(options=EXEC, tools=differently)
