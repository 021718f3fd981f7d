"""How Claude Code is started."""

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from loopwright.adapters.agents.claude import ClaudeAgent
from loopwright.core.errors import BadConfig
from loopwright.core.permissions import Access, Permissions
from loopwright.ports import AgentRequest, Invocation

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


def test_the_prompt_is_in_a_file_and_not_on_the_command_line() -> None:
    invocation = invoked()
    assert not any("secret prompt" in argument for argument in invocation.argv)
    assert invocation.files == {"prompt.md": "a secret prompt"}
    assert "/home-of-ours/runs/run_1/prompt.md" in invocation.argv


@pytest.mark.capability("C034")
def test_by_default_no_permission_is_bypassed() -> None:
    invocation = invoked()
    assert value_after(invocation.argv, "--permission-mode") == "acceptEdits"
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
    for name in ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY"):
        assert env[name] == "1"


@pytest.mark.parametrize(
    "options",
    [
        {"maxturns": 3},
        {"max_turns": 0},
        {"max_turns": "3"},
        {"max_turns": True},
        {"max_retries": 50},
        {"binary": ""},
        {"extra_args": "--effort low"},
        {"extra_args": [1]},
        {"extra_args": ["--dangerously-skip-permissions"]},
        {"extra_args": ["--permission-mode=bypassPermissions"]},
        {"extra_args": ["--output-format", "text"]},
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(BadConfig, match="agent claude"):
        invoked(options=options)


def test_the_version_can_be_asked_for() -> None:
    assert AGENT.probe() == ("claude", "--version")
    assert ClaudeAgent(binary="/opt/claude").probe() == ("/opt/claude", "--version")
