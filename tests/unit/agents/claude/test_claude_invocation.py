"""How Claude Code is started."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.cases import each_case

from loopwright.adapters.agents.claude.claude import ClaudeAgent
from loopwright.core.values.errors import BadConfig
from loopwright.core.values.permissions import Access, Permissions
from loopwright.ports import AgentRequest, Invocation, ToolServer

AGENT = ClaudeAgent()


def invoked(**changes: Any) -> Invocation:
    request: dict[str, Any] = {
        "prompt": "a secret prompt",
        "workspace": Path("/w"),
        "run_directory": Path("/home-of-ours/runs/run_1"),
    }
    return AGENT.invocation(AgentRequest(**{**request, **changes}))


def value_after(argv: tuple[str, ...], flag: str) -> str:
    return argv[argv.index(flag) + 1]


def test_the_prompt_is_not_on_the_command_line_and_not_said_before_the_program_listens() -> None:
    invocation = invoked()
    assert not any("secret prompt" in argument for argument in invocation.argv)
    assert invocation.stdin == "pipe"
    (opening,) = invocation.stdin_data.splitlines()
    assert json.loads(opening)["request"]["subtype"] == "initialize"
    assert "secret prompt" not in opening


def test_it_speaks_json_both_ways_and_asks_us_for_leave() -> None:
    argv = invoked().argv
    for flag, value in (
        ("--input-format", "stream-json"),
        ("--output-format", "stream-json"),
        ("--permission-prompt-tool", "stdio"),
    ):
        assert value_after(argv, flag) == value


def test_whoever_watches_nothing_can_still_interrupt_it_in_its_own_words() -> None:
    line = json.loads(invoked().interrupt or "")
    assert line["request"] == {"subtype": "interrupt"}


def test_settings_that_lie_in_the_workspace_do_not_count() -> None:
    invocation = invoked()
    assert value_after(invocation.argv, "--setting-sources") == "user"
    assert value_after(invocation.argv, "--add-dir") == "/w"
    assert invocation.env["CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD"] == "1"


def test_tools_that_promise_to_go_on_after_the_run_are_taken_away() -> None:
    for access in Access:
        invocation = invoked(permissions=Permissions(access=access))
        assert {"ScheduleWakeup", "EnterPlanMode"} <= set(
            value_after(invocation.argv, "--disallowedTools").split(",")
        )
        assert invocation.env["CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"] == "1"


@pytest.mark.capability("C034")
def test_by_default_no_permission_is_bypassed() -> None:
    invocation = invoked()
    assert value_after(invocation.argv, "--permission-mode") == "default"
    assert "IS_SANDBOX" not in invocation.env
    assert not any("dangerously" in argument for argument in invocation.argv)


@pytest.mark.capability("C034")
def test_only_full_permission_bypasses_and_says_so() -> None:
    full = invoked(permissions=Permissions(access=Access.SANDBOXED_ALL))
    read_only = invoked(permissions=Permissions(access=Access.READ_ONLY))
    assert value_after(full.argv, "--permission-mode") == "bypassPermissions"
    assert full.env["IS_SANDBOX"] == "1"
    assert value_after(read_only.argv, "--permission-mode") == "dontAsk"
    assert "IS_SANDBOX" not in read_only.env
    assert {"Edit", "Write", "NotebookEdit"} <= set(
        value_after(read_only.argv, "--disallowedTools").split(",")
    )
    allowed = value_after(read_only.argv, "--allowedTools")
    assert allowed == "mcp__loopwright__ask,mcp__loopwright__discovered,mcp__loops", (
        "it may still turn to a person"
    )


def test_a_new_conversation_gets_an_id_that_is_the_same_for_the_same_run() -> None:
    first, again = invoked(), invoked()
    other = invoked(run_directory=Path("/home-of-ours/runs/run_2"))
    assert first.session_ref == again.session_ref != other.session_ref
    assert str(UUID(value_after(first.argv, "--session-id"))) == first.session_ref


def test_a_known_conversation_is_resumed() -> None:
    invocation = invoked(session_ref="abc")
    assert value_after(invocation.argv, "--resume") == "abc"
    assert "--session-id" not in invocation.argv
    assert invocation.session_ref == "abc"


def test_a_copy_of_a_conversation_has_an_id_of_its_own() -> None:
    invocation = invoked(session_ref="abc", fork=True)
    assert value_after(invocation.argv, "--resume") == "abc"
    assert "--fork-session" in invocation.argv
    assert value_after(invocation.argv, "--session-id") == invocation.session_ref == invoked().session_ref


def test_what_a_request_limits_reaches_the_program() -> None:
    argv = invoked(options={"max_turns": 5}, max_cost_micros=1_250_000).argv
    assert value_after(argv, "--max-turns") == "5"
    assert value_after(argv, "--max-budget-usd") == "1.250000"
    assert value_after(invoked(max_cost_micros=0).argv, "--max-budget-usd") == "0.000001"
    assert "--max-turns" not in invoked().argv


def test_instructions_and_a_schema_reach_the_program() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    argv = invoked(options={"instructions": "Be brief.\n"}, schema=schema).argv
    assert value_after(argv, "--append-system-prompt") == "Be brief."
    assert "--append-system-prompt" not in invoked().argv
    assert json.loads(value_after(argv, "--json-schema")) == schema


def test_tools_are_given_in_a_file_since_their_variables_may_be_secret() -> None:
    server = ToolServer(command="/bin/tool", args=("-x",), env={"TOKEN": "very-secret"})
    invocation = invoked(tools={"toy": server})
    assert value_after(invocation.argv, "--mcp-config") == "/home-of-ours/runs/run_1/tools.json"
    assert "--strict-mcp-config" in invocation.argv
    assert not any("very-secret" in argument for argument in invocation.argv)
    assert json.loads(invocation.files["tools.json"])["mcpServers"]["toy"] == {
        "type": "stdio", "command": "/bin/tool", "args": ["-x"], "env": {"TOKEN": "very-secret"},
    }  # fmt: skip
    assert "--mcp-config" not in invoked().argv


def test_options_reach_the_program() -> None:
    options = {"binary": "/opt/claude", "max_turns": 7, "max_retries": 0, "extra_args": ["--effort", "low"]}
    invocation = invoked(model="some-model", options=options)
    assert "/opt/claude" in invocation.argv
    assert value_after(invocation.argv, "--max-turns") == "7"
    assert value_after(invocation.argv, "--model") == "some-model"
    assert invocation.argv[-2:] == ("--effort", "low")
    assert invocation.env["CLAUDE_CODE_MAX_RETRIES"] == "0"


def test_the_program_is_kept_from_retrying_for_minutes_and_from_calling_home() -> None:
    env = invoked().env
    assert int(env["CLAUDE_CODE_MAX_RETRIES"]) <= 5
    for name in (
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_AUTOUPDATER",
        "DISABLE_TELEMETRY",
        "DISABLE_ERROR_REPORTING",
    ):
        assert env[name] == "1"


@each_case(
    "options",
    [
        {"maxturns": 3},
        {"max_turns": 0},
        {"max_turns": "3"},
        {"max_turns": True},
        {"instructions": ["Be brief."]},
        {"max_retries": 50},
        {"binary": ""},
        {"extra_args": "--effort low"},
        {"extra_args": [1]},
        {"extra_args": ["--dangerously-skip-permissions"]},
        {"extra_args": ["--permission-mode=bypassPermissions"]},
        {"extra_args": ["--output-format", "text"]},
        {"extra_args": ["--permission-prompt-tool", "mcp__x__y"]},
        {"extra_args": ["--append-system-prompt", "x"]},
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(BadConfig, match="agent claude"):
        invoked(options=options)


def test_the_version_can_be_asked_for() -> None:
    assert AGENT.probe() == ("claude", "--version")
    assert ClaudeAgent(binary="/opt/claude").probe() == ("/opt/claude", "--version")
