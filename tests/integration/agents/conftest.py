"""Running an agent's real process by its codec: under a real keeper, driven as a leg drives it."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.fakes.agent_binaries import bundled_claude

from loopwright.adapters.agents.asked import ask_tool
from loopwright.adapters.agents.claude.claude import ClaudeAgent
from loopwright.adapters.agents.environment import agent_environment, secret_values
from loopwright.adapters.processes.keepers import ProcessKeepers
from loopwright.core.values.policy import Limits
from loopwright.engine.processes.runs import agent_spec, drive_agent
from loopwright.ports import Agent, AgentEvent, AgentRequest, AgentResult, Exit, Spent
from loopwright.testing.model_server import ModelServer, Scenario

BY_KEY = {"ANTHROPIC_API_KEY": "sk-ant-no-real-key"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What came of one process."""

    result: AgentResult
    exit: Exit
    interrupted: bool
    events: tuple[AgentEvent, ...]
    lines: tuple[str, ...]
    """What it printed on stdout."""
    directory: Path

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]


Run = Callable[..., Awaitable[Ran]]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    path = tmp_path / "workspace"
    path.mkdir()
    return path


@pytest.fixture
def user_home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture
def keepers() -> Iterator[ProcessKeepers]:
    keepers = ProcessKeepers()
    yield keepers
    keepers.close()


@pytest.fixture
def run_agent(tmp_path: Path, workspace: Path, user_home: Path, keepers: ProcessKeepers) -> Run:
    """Run an agent in the workspace with a home of its own, and judge it."""
    number = 0

    async def run(
        agent: Agent,
        prompt: str,
        *,
        host_env: Mapping[str, str] | None = None,
        before: Spent | None = None,
        stop_at: str = "",
        may_ask: bool = False,
        **request: Any,
    ) -> Ran:
        """With `stop_at` it is stopped when an event of that kind was heard; with `may_ask` it has our tool."""
        nonlocal number
        number += 1
        directory = tmp_path / f"run-{number}"
        asked = AgentRequest(prompt=prompt, workspace=workspace, run_directory=directory)
        tools = ask_tool(directory) if may_ask else {}
        asked = replace(asked, **{"tools": tools, **request})
        invocation = agent.invocation(asked)
        env = agent_environment({**os.environ, **(host_env or {})}, invocation, (), {"HOME": str(user_home)})
        spec = agent_spec(
            asked,
            invocation,
            # A keeper ends whatever carries its run's id: two tests at once must not share one.
            run_id=f"run_{uuid4().hex}",
            env=env,
            limits=Limits(hard=60.0),
            secrets=secret_values(env),
        )
        events: list[AgentEvent] = []
        stop = asyncio.Event()

        def heard(event: AgentEvent) -> None:
            events.append(event)
            if event.kind == stop_at:
                stop.set()

        ended = await drive_agent(
            keepers, agent, spec, request=asked, before=before or Spent(), interrupt=stop, heard=heard
        )
        assert ended.result is not None
        lines = [line.text async for line in keepers.follow(directory) if line.stream == "out"]
        return Ran(
            result=ended.result,
            exit=ended.exit,
            interrupted=ended.interrupted,
            events=tuple(events),
            lines=tuple(lines),
            directory=directory,
        )

    return run


@pytest.fixture
def hello(workspace: Path) -> Path:
    path = workspace / "hello.txt"
    path.write_text("hello world\n")
    return path


@pytest.fixture
def run_claude(run_agent: Run) -> Any:
    """Run the real Claude Code against a scenario; return what came of it, and what the model heard."""
    program = bundled_claude()
    if program is None:
        pytest.skip("the claude-agent-sdk wheel is not installed")

    async def run(scenario: Scenario, prompt: str = "do it", *, env: Any = BY_KEY, **request: Any) -> Any:
        options = {"binary": str(program), "max_retries": 0, **request.pop("options", {})}
        with ModelServer(scenario) as server:
            host_env = {**env, "ANTHROPIC_BASE_URL": server.url, "NO_PROXY": "127.0.0.1"}
            ran = await run_agent(ClaudeAgent(), prompt, host_env=host_env, options=options, **request)
            return ran, server.asked

    return run
