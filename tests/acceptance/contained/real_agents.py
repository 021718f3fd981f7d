"""The real Claude Code and Codex, and a model on this machine that they talk to."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from tests.acceptance.control.workshop import Workshop
from tests.fakes.agent_binaries import bundled_claude, bundled_codex

from loopwright.testing.model_server import ModelServer, Reply, Scenario, ToolCall

CLAUDE, CODEX = bundled_claude(), bundled_codex()
KEY = "sk-no-real-key-0123456789"


@contextmanager
def model(shop: Workshop, agent: str, scenario: Scenario) -> Iterator[ModelServer]:
    """Let an agent talk to a model that follows a script, and to nobody else."""
    with ModelServer(scenario) as server:
        provider = (
            f'model_providers.local={{name="local",base_url="{server.url}/v1",env_key="OPENAI_API_KEY",'
            'wire_api="responses",request_max_retries=0,stream_max_retries=0}'
        )
        shop.program.env |= {
            "LOOPWRIGHT_AGENT": agent,
            "LOOPWRIGHT_AGENTS__CLAUDE__BINARY": str(CLAUDE),
            "LOOPWRIGHT_AGENTS__CLAUDE__MAX_RETRIES": "0",
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": KEY,
            "LOOPWRIGHT_AGENTS__CODEX__BINARY": str(CODEX),
            "LOOPWRIGHT_AGENTS__CODEX__CONFIG": json.dumps(["model_provider=local", provider]),
            "OPENAI_API_KEY": KEY,
            "NO_PROXY": "127.0.0.1",
        }
        if agent == "codex":
            shop.program.env["LOOPWRIGHT_MODEL"] = "gpt-5.5"
        yield server


def discovering(title: str, reason: str) -> Scenario:
    """Return what a model says that makes made.txt and notes, by the tool for it, work that is not its own."""
    note = ToolCall(name="mcp__loopwright__discovered", input={"title": title, "reason": reason})
    make = ToolCall(name="Bash", input={"command": "echo made > made.txt", "description": "Make it"})
    return Scenario(turns=(Reply(tools=(note,)), Reply(tools=(make,)), Reply(text="Made.")))
