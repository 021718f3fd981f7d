"""The real programs that everyone has, because they come with the tests' packages: how each is set up for a test."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.acceptance.control.workshop import Workshop
from tests.fakes.agent_binaries import bundled_claude, bundled_codex

from loopwright.testing.model_server import ModelServer, Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One agent program, and what makes it talk to a model on this machine and to nobody else."""

    name: str
    binary: Path | None
    package: str
    """Whose wheel brings it."""
    key: str
    environment: Callable[[str], Mapping[str, str]]
    """By the address of the model server."""
    subscribed: Mapping[str, str | None] = field(default_factory=dict)
    """What else is set, or not set, for one that has a subscription and not a key."""
    estimated: bool = False
    """It tells only its tokens."""

    @contextmanager
    def model(self, shop: Workshop, scenario: Scenario, *, subscribed: bool = False) -> Iterator[ModelServer]:
        """Let the program talk to a model that follows a script."""
        with ModelServer(scenario) as server:
            shop.program.env |= {
                "LOOPWRIGHT_AGENT": self.name,
                f"LOOPWRIGHT_AGENTS__{self.name.upper()}__BINARY": str(self.binary),
                "NO_PROXY": "127.0.0.1",
                **self.environment(server.url),
            }
            for name, value in self.subscribed.items() if subscribed else ():
                shop.program.env.pop(name, None)
                shop.program.env |= {name: value} if value is not None else {}
            yield server


_CLAUDE_KEY = "sk-ant-no-real-key-0123456789"
_CODEX_KEY = "sk-no-real-key-0123456789"


def _claude(url: str) -> dict[str, str]:
    return {
        "LOOPWRIGHT_MODEL": "claude-sonnet-4-5",
        "LOOPWRIGHT_AGENTS__CLAUDE__MAX_RETRIES": "0",
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": _CLAUDE_KEY,
        # As if an agent had started us: its markers must not reach the agents that we start.
        "CLAUDECODE": "1",
        "CLAUDE_CODE_ENTRYPOINT": "cli",
    }


def _codex(url: str) -> dict[str, str]:
    provider = (
        f'model_providers.local={{name="local",base_url="{url}/v1",env_key="OPENAI_API_KEY",'
        'wire_api="responses",request_max_retries=0,stream_max_retries=0}'
    )
    return {
        "LOOPWRIGHT_MODEL": "gpt-5.5",
        "LOOPWRIGHT_AGENTS__CODEX__CONFIG": json.dumps(["model_provider=local", provider]),
        "OPENAI_API_KEY": _CODEX_KEY,
    }


CLAUDE = Program(
    name="claude",
    binary=bundled_claude(),
    package="claude-agent-sdk",
    key=_CLAUDE_KEY,
    environment=_claude,
    subscribed={"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat-no-real-token", "ANTHROPIC_API_KEY": None},
)
CODEX = Program(
    name="codex",
    binary=bundled_codex(),
    package="openai-codex",
    key=_CODEX_KEY,
    environment=_codex,
    estimated=True,
)
