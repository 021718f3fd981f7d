"""Running an agent's real process by its codec: under a real keeper, driven as a leg drives it."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from loopwright.adapters.agents.environment import agent_environment, secret_values
from loopwright.adapters.keepers import ProcessKeepers
from loopwright.core.model import Limits
from loopwright.engine.runs import drive_agent
from loopwright.ports import Agent, AgentEvent, AgentRequest, AgentResult, Exit, RunSpec, Spent


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
        limits: Limits | None = None,
        **request: Any,
    ) -> Ran:
        """With `stop_at` it is asked to stop as soon as an event of that kind was heard."""
        nonlocal number
        number += 1
        directory = tmp_path / f"run-{number}"
        asked = AgentRequest(prompt=prompt, workspace=workspace, run_directory=directory)
        asked = replace(asked, **request)
        invocation = agent.invocation(asked)
        env = agent_environment({**os.environ, **(host_env or {})}, invocation, (), {"HOME": str(user_home)})
        spec = RunSpec(
            run_id=f"run_{directory.parent.name}_{number}",
            directory=directory,
            argv=invocation.argv,
            cwd=workspace,
            env=env,
            stdin=invocation.stdin,
            stdin_data=invocation.stdin_data,
            limits=limits or Limits(hard_s=60.0),
            done_pattern=invocation.done_pattern,
            interrupt=invocation.interrupt,
            secrets=secret_values(env),
            files=invocation.files,
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
