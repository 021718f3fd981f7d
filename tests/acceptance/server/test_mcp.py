"""Other agents drive loops with MCP tools: the official client, and the real Claude Code with our plug-in."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from tests.acceptance.server.conftest import Served
from tests.fakes.agent_binaries import bundled_claude
from tests.waiting import eventually

from loopwright.core.rows.model import Project
from loopwright.core.values.errors import UserError
from loopwright.server.mcp.results import LIMIT
from loopwright.services.access.nesting import is_inside_run
from loopwright.services.daemon.links import daemon_address
from loopwright.testing.model_server import ModelServer, Reply, Scenario, ToolCall

PLUGIN = Path(__file__).parents[3] / "plugins" / "claude-code"
LOOKS, CHANGES = (
    {"list", "progress", "receipt", "wait"},
    {*("create", "plan", "start", "pause", "prioritise", "split", "answer", "undo")},
)
TEMPLATE = """\
description: Write one file
parameters:
  file: {pattern: "[a-z]+"}
plan:
  title: Write {{file}}
  settings: {autonomy: auto, max_attempts: 1}
  tasks:
    - {id: "{{file}}", title: "Write {{file}}", acceptance: "test -s {{file}}"}
"""


def _server(env: Mapping[str, str], *flags: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=["-m", "loopwright.cli", "mcp", *flags], env=dict(env)
    )


class Tools:
    """The tools of a connected client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def __call__(self, name: str, /, **arguments: Any) -> Any:
        """Use a tool that has to work."""
        said = await self.said(name, **arguments)
        assert said.startswith("{"), said
        return json.loads(said)

    async def said(self, name: str, /, **arguments: Any) -> str:
        """Use a tool and return what it says."""
        result = await self._client.call_tool(name, arguments)
        text = "".join(block.text for block in result.content if block.type == "text")
        assert len(text.encode()) <= LIMIT
        return text

    async def names(self) -> set[str]:
        return {one.name for one in (await self._client.list_tools()).tools}


@pytest.mark.skipif(is_inside_run(), reason="inside a run the tools only look")
@pytest.mark.capability("C077")
async def test_an_agent_drives_a_loop_to_its_receipt_with_tools_alone(served: Served) -> None:
    gate = served.gate("agent")
    served.play({"first": [[{"claim": "done"}], [gate.step, {"write": "first", "text": "1\n"}]]})
    assert served("projects", "add").code == 0
    project = served.row(Project).id
    served.serve()
    path = f"/api/projects/{project}/templates/write-file"
    assert served.ask("PUT", path, json={"text": TEMPLATE}).status_code == 200
    async with Client(_server(served.program.env)) as client:
        tools = Tools(client)
        assert await tools.names() == LOOKS | CHANGES
        assert [one["id"] for one in (await tools("list", what="projects"))["projects"]] == [project]
        (template,) = (await tools("list", what="templates", project=project))["templates"]
        assert template["name"] == "write-file"
        assert "project_missing" in await tools.said("list", what="templates")
        wanted = {"project": project, "template": "write-file", "values": {"file": "first"}}
        wanted["reason"] = "It is asked for."
        loop = (await tools("create", **wanted, name="first " * 30))["id"]
        assert "no_plan" in await tools.said("receipt", loop=loop)
        await tools("start", loop=loop, reason="r")
        # Its only attempt fails, which is a question.
        seen = await tools("wait", loop=loop, timeout=150)
        assert (seen["reached"], seen["tasks"][0]["status"]) == (True, "ERROR")
        early = await tools("wait", loop=loop, until="ended", timeout=0)
        assert early["reached"] is False, "a loop with a question has not ended"
        (question,) = (await tools("list", what="questions"))["questions"]
        assert question["id"] == seen["questions"][0]["id"]
        await tools("answer", question=question["id"], text="retry", reason="r")
        eventually(lambda: served.get(f"/api/loops/{loop}")["current_tasks"] == ["first"], timeout=150)
        assert (await tools("pause", loop=loop, reason="r"))["status"] == "paused"
        assert (await tools("wait", loop=loop, timeout=0))["reached"], "a paused loop is at rest"
        assert (await tools("start", loop=loop, reason="r"))["status"] == "running"
        gate.let_go()
        ended = await tools("wait", loop=loop, until="ended", timeout=150)
        assert (ended["reached"], ended["status"]) == (True, "completed")
        receipt = await tools("receipt", loop=loop)
        assert (receipt["outcome"], receipt["tasks"][0]["outcome"]) == ("verified", "verified")
        assert "loop_not_found" in await tools.said("start", loop="loop_0", reason="r")
        assert "pattern" in await tools.said("start", loop="../tokens", reason="r")
    # A token that only reads can look, and the daemon refuses the rest.
    token = served.post("/api/tokens", {"name": "reader", "projects": [project]}).json()["token"]
    file = served.place / "reader.token"
    file.write_text(token + "\n")
    async with Client(_server(served.program.env, "--token-file", str(file))) as client:
        tools = Tools(client)
        assert (await tools("progress", loop=loop))["status"] == "completed"
        assert "scope_missing" in await tools.said("create", **wanted)


async def test_inside_a_run_the_tools_only_look_and_a_missing_daemon_is_named(served: Served) -> None:
    # The program that starts the tools was started by a run, and takes the mark of it out of their environment.
    shell = f"env -u LOOPWRIGHT_RUN {sys.executable} -m loopwright.cli mcp; exit $?"
    env = {**served.program.env, "LOOPWRIGHT_RUN": "run_0"}
    async with Client(StdioServerParameters(command="sh", args=["-c", shell], env=env)) as client:
        tools = Tools(client)
        assert await tools.names() == LOOKS
        said = await tools.said("list")
        assert "daemon_missing" in said
        assert "loopwright up" in said


def test_a_token_of_this_home_is_sent_to_no_other_address(served: Served) -> None:
    with pytest.raises(UserError, match="--token-file"):
        daemon_address(served.home, url="http://example.com")


@pytest.mark.more
@pytest.mark.skipif(is_inside_run(), reason="inside a run the tools only look")
@pytest.mark.skipif(bundled_claude() is None, reason="the claude-agent-sdk wheel is not installed")
def test_the_real_claude_creates_a_loop_with_the_plugin(served: Served) -> None:
    assert served("projects", "add").code == 0
    project = served.row(Project).id
    served.serve()
    served.ask("PUT", f"/api/projects/{project}/templates/write-file", json={"text": TEMPLATE})
    wanted = {"project": project, "template": "write-file", "values": {"file": "first"}, "reason": "r"}
    create = ToolCall(name="create", namespace="mcp__plugin_loopwright_loopwright", input=wanted)
    programs = served.place / "programs"
    programs.mkdir()
    (programs / "loopwright").write_text(f'#!/bin/sh\nexec {sys.executable} -m loopwright.cli "$@"\n')
    (programs / "loopwright").chmod(0o755)
    with ModelServer(Scenario(turns=(Reply(tools=(create,)), Reply(text="Created.")))) as model:
        env = {
            **served.program.env,
            "PATH": f"{programs}:{served.program.env['PATH']}",
            "ANTHROPIC_API_KEY": "sk-ant-no-real-key",
            "ANTHROPIC_BASE_URL": model.url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            # It waits five seconds for its tools and then goes on without them, which is short on a busy machine.
            "MCP_CONNECTION_NONBLOCKING": "0",
            "MCP_CONNECT_TIMEOUT_MS": "100000",
            "MCP_TIMEOUT": "100000",
        }
        words = ["-p", "do it", "--plugin-dir", str(PLUGIN), "--allowedTools", create.full_name]
        done = subprocess.run(
            [str(bundled_claude()), *words],
            cwd=served.repository,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=240,
        )
        asked = json.dumps(model.asked[-1].body)
    (loop,) = served.get("/api/loops")["loops"]
    assert done.returncode == 0, done.stderr
    assert loop["id"] in asked
    assert "loopwright:loopwright" in asked, "it knows the skill"
