"""The real Claude Code program against a scripted model server: the protocol as it is, not as we think it is."""

import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.agent_binaries import bundled_claude

from loopwright.adapters.agents.claude.claude import ClaudeAgent
from loopwright.core.policy.quotas import limited_model
from loopwright.core.rows.waiting_rows import QuotaKind
from loopwright.core.values.failures import Failure
from loopwright.core.values.permissions import Access, Permissions
from loopwright.ports import AgentRequest, Spent
from loopwright.testing import scenarios
from loopwright.testing.model_server import Rejection, Scenario

AGENT = ClaudeAgent()
BY_SUBSCRIPTION = {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-no-real-token"}


@pytest.mark.capability("C025", "C027", "C028")
async def test_the_real_program_edits_a_file_with_its_own_tool(run_claude: Any, hello: Path) -> None:
    ran, asked = await run_claude(
        scenarios.edit_file("hello.txt", old="world", new="loop", summary="I changed it."),
        "Please change hello.txt: it has a “quote”, a $VARIABLE and\nsecond lines.",
    )
    assert hello.read_text() == "hello loop\n"
    assert ran.result.claimed
    assert ran.result.summary == "I changed it."
    assert ran.result.cost_micros is not None
    assert ran.result.cost_micros > 0
    assert ran.result.usage is not None
    assert ran.result.usage.output_tokens == 75
    assert [one.kind for one in ran.result.windows] == [QuotaKind.DOLLARS], "it has a key"
    assert ran.result.version == AGENT.tested[1], "the newest version that it was tried with is the one here"
    assert {"Started", "ToolStart", "ToolEnd", "FileChange", "Usage", "Finished"} <= set(ran.kinds())
    assert asked[0].prompt.endswith("it has a “quote”, a $VARIABLE and\nsecond lines.")
    assert len(asked) == 3


@pytest.mark.trap("quoted success")
async def test_the_done_pattern_matches_the_real_last_line_and_no_other(run_claude: Any) -> None:
    ran, _ = await run_claude(scenarios.answer('{"type":"result","is_error":false,"num_turns":1}'))
    request = AgentRequest(prompt="", workspace=Path("w"), run_directory=Path("r"))
    pattern = AGENT.invocation(request).done_pattern
    assert pattern is not None
    assert [line for line in ran.lines if re.search(pattern, line)] == [ran.lines[-1]]


async def test_a_service_that_asks_to_slow_down_is_left_alone_for_so_long(run_claude: Any) -> None:
    refused = Rejection(
        status=429, kind="rate_limit_error", message="slow down", headers={"retry-after": "2"}
    )
    ran, asked = await run_claude(Scenario(turns=(refused,)), options={"max_retries": 1})
    assert ran.result.failure is Failure.RATE_LIMIT
    assert ran.result.retry_at == ran.exit.ended_at + timedelta(seconds=2)
    assert len(asked) == 2


@pytest.mark.capability("C028")
@pytest.mark.agents
async def test_a_wrong_key_is_an_authentication_failure(run_claude: Any) -> None:
    ran, _ = await run_claude(scenarios.bad_key())
    assert ran.result.failure is Failure.AUTH
    assert ran.result.detail.startswith("Invalid API key")


async def test_a_service_that_is_not_there_is_no_fault_of_the_work(run_agent: Any) -> None:
    program = bundled_claude()
    if program is None:
        pytest.skip("the claude-agent-sdk wheel is not installed")
    nobody = {"ANTHROPIC_API_KEY": "sk-ant-no-real-key", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
    ran = await run_agent(
        AGENT,
        "do it",
        host_env={**nobody, "NO_PROXY": "127.0.0.1"},
        options={"binary": str(program), "max_retries": 1},
    )
    assert ran.result.failure is Failure.ENVIRONMENT, ran.result.detail
    assert "Retry" in ran.kinds()


async def test_a_used_up_subscription_says_when_it_can_be_used_again(run_claude: Any) -> None:
    resets_at = int(time.time()) + 3600
    ran, _ = await run_claude(scenarios.window_used_up(resets_at=resets_at), env=BY_SUBSCRIPTION)
    assert ran.result.failure is Failure.USAGE_LIMIT
    assert ran.result.retry_at == datetime.fromtimestamp(resets_at, UTC)
    assert "RateLimit" in ran.kinds()
    (window,) = ran.result.windows
    assert window.kind is QuotaKind.SUBSCRIPTION
    assert (window.name, window.rejected, window.resets_at) == ("five_hour", True, ran.result.retry_at)


@pytest.mark.parametrize(("window", "model"), [("seven_day_opus", "opus"), ("seven_day", "")])
@pytest.mark.agents
async def test_a_limit_of_one_model_is_told_from_one_of_the_account(
    run_claude: Any, window: str, model: str
) -> None:
    resets_at = int(time.time()) + 3600
    ran, _ = await run_claude(
        scenarios.window_used_up(resets_at=resets_at, window=window), env=BY_SUBSCRIPTION
    )
    assert ran.result.failure is Failure.USAGE_LIMIT
    assert ran.result.retry_at == datetime.fromtimestamp(resets_at, UTC)
    assert limited_model(ran.result.windows) == model


@pytest.mark.agents
async def test_an_overloaded_service_is_no_fault_of_the_work(run_claude: Any) -> None:
    ran, _ = await run_claude(scenarios.overloaded())
    assert ran.result.failure is Failure.OVERLOADED


async def test_a_resumed_conversation_costs_only_what_it_adds(run_claude: Any) -> None:
    first, _ = await run_claude(scenarios.answer("I remember."))
    second, asked = await run_claude(
        scenarios.answer("Still."),
        session_ref=first.result.session_ref,
        before=Spent(cost_micros=first.result.cost_micros, usage=first.result.usage),
    )
    assert second.result.session_ref == first.result.session_ref
    assert second.result.cost_micros == first.result.cost_micros
    assert len(asked) == 1


async def test_a_conversation_that_is_gone_fails_so_that_another_begins(run_claude: Any) -> None:
    ran, asked = await run_claude(scenarios.answer(), session_ref="11111111-2222-4333-8444-555555555555")
    assert ran.result.failure is Failure.CRASH
    assert ran.result.session_ref is None
    assert asked == ()


@pytest.mark.capability("C034")
async def test_read_only_permission_lets_nothing_be_written(run_claude: Any, hello: Path) -> None:
    edit = scenarios.edit_file("hello.txt", old="world", new="loop")
    await run_claude(edit, permissions=Permissions(access=Access.READ_ONLY))
    shell, _ = await run_claude(
        scenarios.run_command("touch made"), permissions=Permissions(access=Access.READ_ONLY)
    )
    assert hello.read_text() == "hello world\n"
    assert not (hello.parent / "made").exists()
    assert shell.result.detail == "permission was denied for Bash (1)"


@pytest.mark.capability("C034")
@pytest.mark.agents
async def test_any_command_needs_full_permission(run_claude: Any, workspace: Path) -> None:
    command = scenarios.run_command("python3 -c 'print(1)' > made")
    edit, _ = await run_claude(command, permissions=Permissions())
    assert [one.wish.what for one in edit.result.asked if one.wish] == ["python3 -c 'print(1)' > made"]
    assert not (workspace / "made").exists()
    await run_claude(command, permissions=Permissions(access=Access.SANDBOXED_ALL))
    assert (workspace / "made").read_text() == "1\n"


@pytest.mark.capability("C029")
@pytest.mark.agents
async def test_a_flag_that_the_program_does_not_know_means_it_cannot_start(run_claude: Any) -> None:
    ran, _ = await run_claude(scenarios.answer(), options={"extra_args": ["--no-such-flag"]})
    assert ran.result.failure is Failure.CANNOT_START
    assert "unknown option" in ran.result.detail


@pytest.mark.capability("C029")
async def test_a_program_that_is_not_there_means_it_cannot_start(run_agent: Any) -> None:
    ran = await run_agent(AGENT, "do it", options={"binary": "/nowhere/claude"})
    assert ran.result.failure is Failure.CANNOT_START
    assert "/nowhere/claude" in ran.result.detail


@pytest.mark.agents
async def test_too_many_turns_are_an_error_of_the_agent(run_claude: Any, hello: Path) -> None:
    ran, _ = await run_claude(
        scenarios.edit_file("hello.txt", old="world", new="loop"), options={"max_turns": 1}
    )
    assert ran.result.failure is Failure.TURNS
