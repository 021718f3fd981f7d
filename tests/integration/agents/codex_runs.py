"""Runs of the real Codex program under a keeper, with a private HOME, driven by the engine, with a scripted model."""

import asyncio
import json
import os
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.fakes.agent_binaries import bundled_codex

from loopwright.adapters.agents.codex.agent import CodexAgent
from loopwright.adapters.agents.environment import agent_environment
from loopwright.adapters.home.user_folder import Views
from loopwright.adapters.processes.keepers import ProcessKeepers
from loopwright.core.values.policy import Limits
from loopwright.engine.processes.runs import Ended, agent_spec, drive_agent
from loopwright.ports import AgentEvent, AgentRequest, AgentResult, Exit, RunSpec, Spent
from loopwright.testing.model_server import ModelServer, Scenario
from loopwright.testing.model_server.server import Asked

PROGRAM = bundled_codex()
AGENT = CodexAgent()


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What came of one run."""

    result: AgentResult
    exit: Exit
    events: tuple[AgentEvent, ...]
    lines: tuple[str, ...]
    asked: tuple[Asked, ...]
    """What the model was asked."""

    def kinds(self) -> set[str]:
        return {event.kind for event in self.events}

    def told(self, kind: str) -> list[str]:
        return [event.text for event in self.events if event.kind == kind]

    def spent(self) -> Spent:
        assert self.result.usage is not None
        return Spent(usage=self.result.usage)

    def to_the_model(self) -> str:
        """Everything that the model saw in its last request."""
        return json.dumps(self.asked[-1].body)


@dataclass(kw_only=True)
class Codex:
    """A user's folder, a workspace, and as many runs as wanted."""

    place: Path
    user: Path = field(init=False)
    workspace: Path = field(init=False)
    _runs: int = 0

    def __post_init__(self) -> None:
        self.user, self.workspace = self.place / "user", self.place / "workspace"
        self.user.mkdir()
        self.workspace.mkdir()
        (self.workspace / "hello.txt").write_text("hello world\n")
        (self.workspace / "Makefile").write_text("dist:\n\techo dist > dist.txt\n")
        for line in ("init -q", "add -A", "-c user.name=T -c user.email=t@example.com commit -qm start"):
            subprocess.run(["git", *line.split()], cwd=self.workspace, check=True)

    async def __call__(
        self,
        scenario: Scenario,
        prompt: str = "do it",
        *,
        before: Spent | None = None,
        env: Mapping[str, str] | None = None,
        interrupt_on: Callable[[AgentEvent], bool] = lambda event: False,
        abandon_on: Callable[[AgentEvent], bool] = lambda event: False,
        limits: Limits | None = None,
        **request: Any,
    ) -> Ran:
        """Make one run and judge it; when it is abandoned by who drives it, another one takes it over."""
        self._runs += 1
        directory = self.place / f"run-{self._runs}"
        with ModelServer(scenario) as server:
            provider = (
                f'model_providers.local={{name="local",base_url="{server.url}/v1",env_key="OPENAI_API_KEY",'
                'wire_api="responses",request_max_retries=0,stream_max_retries=0}'
            )
            options = request.pop("options", {})
            config = ["model_provider=local", provider, *options.get("config", [])]
            asked = AgentRequest(
                prompt=prompt,
                workspace=self.workspace,
                run_directory=directory,
                model=request.pop("model", "gpt-5.5"),
                options={"binary": str(PROGRAM), **options, "config": config},
                **request,
            )
            spec = self._spec(asked, env or {}, limits or Limits(hard=60, done_grace=20))
            events: list[AgentEvent] = []
            interrupt = asyncio.Event()

            abandon = asyncio.Event()

            def heard(event: AgentEvent) -> None:
                events.append(event)
                if interrupt_on(event):
                    interrupt.set()
                if abandon_on(event):
                    abandon.set()

            def drive(keepers: ProcessKeepers) -> "asyncio.Future[Ended]":
                spent = before or Spent()
                return asyncio.ensure_future(
                    drive_agent(
                        keepers, AGENT, spec, request=asked, before=spent, interrupt=interrupt, heard=heard
                    )
                )

            keepers = ProcessKeepers()
            try:
                driving, gone = drive(keepers), asyncio.ensure_future(abandon.wait())
                await asyncio.wait((driving, gone), return_when=asyncio.FIRST_COMPLETED)
                gone.cancel()
                if abandon.is_set():
                    driving.cancel()
                    with suppress(asyncio.CancelledError):
                        await driving
                    events.clear()
                    driving = drive(keepers)
                ended = await driving
            finally:
                if keepers.look(spec.directory).state != "absent":
                    await keepers.end(spec.directory, polite=False)
                keepers.close()
            lines = [line.text async for line in keepers.follow(spec.directory)]
        assert ended.result is not None
        return Ran(
            result=ended.result,
            exit=ended.exit,
            events=tuple(events),
            lines=tuple(lines),
            asked=server.asked,
        )

    def _spec(self, asked: AgentRequest, given: Mapping[str, str], limits: Limits) -> RunSpec:
        invocation = AGENT.invocation(asked)
        host = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.user),
            "OPENAI_API_KEY": "no-real-key-0123456789",
            "NO_PROXY": "127.0.0.1",
            **given,
        }
        views = Views(real=self.user, own=(self.place / "runs",))
        env, view = views(agent_environment(host, invocation), invocation, self.place / "users" / "attempt")
        return agent_spec(asked, invocation, run_id=f"run_{uuid4().hex}", env=env, limits=limits, home=view)
