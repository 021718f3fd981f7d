"""Running an agent's real process by its codec, without a keeper."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from loopwright.adapters.agents.environment import agent_environment
from loopwright.ports import Agent, AgentEvent, AgentRequest, AgentResult, Exit, OutputLine, Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What came of one process."""

    result: AgentResult
    events: tuple[AgentEvent, ...]
    code: int
    lines: tuple[str, ...]

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]


Run = Callable[..., Awaitable[Ran]]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    path = tmp_path / "workspace"
    path.mkdir()
    return path


@pytest.fixture
def run_agent(tmp_path: Path, workspace: Path) -> Run:
    """Start an agent in the workspace with a home of its own, fold every line, and judge it."""
    home = tmp_path / "home"
    home.mkdir()
    number = 0

    async def run(
        agent: Agent,
        prompt: str,
        *,
        host_env: Mapping[str, str] | None = None,
        before: Spent | None = None,
        **request: Any,
    ) -> Ran:
        nonlocal number
        number += 1
        directory = tmp_path / f"run-{number}"
        directory.mkdir()
        asked = AgentRequest(prompt=prompt, workspace=workspace, run_directory=directory)
        invocation = agent.invocation(replace(asked, **request))
        for name, text in invocation.files.items():
            (directory / name).write_text(text, encoding="utf-8")
        env = agent_environment(
            {**os.environ, **(host_env or {})}, invocation, (), {"HOME": str(home), "TMPDIR": str(directory)}
        )
        process = await asyncio.create_subprocess_exec(
            *invocation.argv,
            cwd=workspace,
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=64 * 1024 * 1024,
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(), 60)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise
        state, events = agent.initial(before=before), []
        for stream, content in (("out", out), ("err", err)):
            for text in content.decode("utf-8", "replace").splitlines():
                step = agent.fold(state, OutputLine(offset=0, stream=stream, text=text))
                state = step.state
                events.extend(step.events)
        assert process.returncode is not None
        how = Exit(
            code=process.returncode,
            ended_by="itself",
            started_at=None,
            ended_at=datetime.now(UTC),
            output_bytes=len(out),
            output_sha256="",
        )
        lines = tuple(out.decode("utf-8", "replace").splitlines())
        return Ran(
            result=agent.result(state, how), events=tuple(events), code=process.returncode, lines=lines
        )

    return run
