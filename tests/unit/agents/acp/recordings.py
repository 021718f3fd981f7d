"""What the real programs said, line by line, and folding it as a worker does."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loopwright.adapters.agents.acp.agent import AcpAgent
from loopwright.adapters.agents.acp.profiles import PROFILES
from loopwright.adapters.agents.acp.state import AcpState
from loopwright.ports import AgentEvent, AgentRequest, AgentResult, Exit, OutputLine, Spent, ToolServer

FOLDER = Path(__file__).parents[3] / "data" / "acp"
NAMES = sorted(path.stem for path in FOLDER.glob("*.jsonl"))

TOOLS = {"loopwright": ToolServer(command="/usr/bin/python3", args=("toy_mcp.py",))}


def agent_of(name: str) -> AcpAgent:
    program = name.partition("_")[0]
    return AcpAgent(profile=PROFILES["claude-acp" if program == "claude" else program])


def request(**given: Any) -> AgentRequest:
    facts = {"prompt": "please do it", "workspace": Path("/workspace"), "run_directory": Path("/run")}
    return AgentRequest(**{**facts, **given})


def ended(code: int | None = 0, ended_by: Any = "itself") -> Exit:
    return Exit(
        code=code,
        ended_by=ended_by,
        started_at=None,
        ended_at=datetime(2026, 11, 15, 20, 50, tzinfo=UTC),
        output_bytes=0,
        output_sha256="",
    )


def rows(name: str) -> list[tuple[str, str]]:
    """Return who said what: `in` is what was said to the program."""
    told = [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()]
    return [next(iter(one.items())) for one in told]


def lines(name: str) -> list[OutputLine]:
    said = [(who, text) for who, text in rows(name) if who != "in"]
    return [OutputLine(offset=n, stream=who, text=text) for n, (who, text) in enumerate(said)]


def answers(name: str) -> list[Any]:
    """Return how the program's own requests were answered."""
    told = [json.loads(text) for who, text in rows(name) if who == "in"]
    return [one for one in told if "method" not in one]


@dataclass(frozen=True, kw_only=True)
class Read:
    """What folding came to."""

    agent: AcpAgent
    state: AcpState
    events: tuple[AgentEvent, ...]
    writes: tuple[str, ...]
    closed: int

    def result(self, exit: Exit | None = None) -> AgentResult:
        return self.agent.result(self.state, exit or ended())

    def said(self) -> list[Any]:
        return [json.loads(text) for text in self.writes]

    def answered(self) -> list[Any]:
        return [one for one in self.said() if "method" not in one]

    def told(self, kind: str) -> list[str]:
        return [event.text for event in self.events if event.kind == kind]


def fold(
    agent: AcpAgent, output: list[OutputLine], asked: AgentRequest | None, *, before: Spent | None = None
) -> Read:
    state, events, writes, closed = agent.initial(asked, before=before), [], [], 0
    for line in output:
        step = agent.fold(state, line)
        state = step.state
        events += step.events
        writes += step.writes
        closed += step.close
    return Read(agent=agent, state=state, events=tuple(events), writes=tuple(writes), closed=closed)


def read(name: str, *, before: Spent | None = None, **given: Any) -> Read:
    return fold(agent_of(name), lines(name), request(**given), before=before)


def wire(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return what was recorded one level above the wire, as kinds with their content."""
    for line in (FOLDER / "recorded" / f"{name}.jsonl").read_text("utf-8").splitlines():
        told = json.loads(line)
        yield told["k"], told["d"]
