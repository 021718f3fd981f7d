"""Agents that their codec tells to stop, and that continue all the same: they are ended, and judged by why."""

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.cli.program import executable

from loopwright.adapters.agents.acp import agent as acp
from loopwright.adapters.agents.claude.claude import ClaudeAgent
from loopwright.core.values.failures import Failure

DEAF = """
import json, signal, sys, time
for polite in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(polite, signal.SIG_IGN)

def say(**facts):
    print(json.dumps(facts), flush=True)

def hear():
    return json.loads(sys.stdin.readline())

"""
"""It hears what it waits for, and nothing else."""

ASKS = """
opening = hear()
say(type="control_response", response={"subtype": "success", "request_id": opening["request_id"], "response": {}})
hear()
say(type="system", subtype="init", session_id="s", model="m", claude_code_version="2.1.325", mcp_servers=[])
wish = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "make dist"}, "tool_use_id": "t"}
say(type="control_request", request_id="1", request=wish)
while True:
    say(type="assistant", message={"id": "a", "content": [{"type": "text", "text": "going on"}]}, session_id="s")
    time.sleep(0.05)
"""

CIRCLES = """
def answers(**result):
    say(jsonrpc="2.0", id=hear()["id"], result=result)

about = {"name": "OpenCode", "version": "1.18.33"}
answers(protocolVersion=1, agentCapabilities={"loadSession": True}, agentInfo=about)
modes = [{"id": "build", "name": "build"}]
answers(sessionId="s", modes={"currentModeId": "build", "availableModes": modes})
hear()
for n in range(10**9):
    content = {"type": "text", "text": "I will do it."}
    update = {"sessionUpdate": "agent_message_chunk", "messageId": str(n), "content": content}
    say(jsonrpc="2.0", method="session/update", params={"sessionId": "s", "update": update})
    time.sleep(0.02)
"""


@pytest.fixture
def program(tmp_path: Path) -> Any:
    """Make a program of these lines of Python."""

    def make(lines: str) -> Path:
        script = tmp_path / "agent.py"
        script.write_text(DEAF + lines)
        return executable(tmp_path / "agent", f'exec {sys.executable} -S -I {script} "$@"')

    return make


@pytest.mark.more
@pytest.mark.timeout(300)
async def test_one_that_asks_and_does_not_wait_is_ended_and_has_asked(run_agent: Any, program: Any) -> None:
    ran = await run_agent(ClaudeAgent(), "do it", options={"binary": str(program(ASKS))})
    assert ran.exit.ended_by == "done_hang", "not by a person, nor by the limit on its time"
    assert [one.wish.key for one in ran.result.asked] == ["command:make dist"]
    assert ran.result.failure is None


@pytest.mark.more
@pytest.mark.timeout(300)
async def test_one_that_goes_round_in_circles_is_ended_and_does_not_fit_its_model(
    run_agent: Any, program: Any
) -> None:
    ran = await run_agent(acp.opencode(), "do it", options={"binary": str(program(CIRCLES))})
    assert (ran.exit.ended_by, ran.result.failure) == ("done_hang", Failure.CONTEXT)
