"""Agents: pure codecs for their command lines."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, Protocol, runtime_checkable

from loopwright.core.replies.questions import Asking
from loopwright.core.rows.model import Usage
from loopwright.core.rows.waiting_rows import QuotaWindow
from loopwright.core.values.containment import HomePath
from loopwright.core.values.failures import Failure
from loopwright.core.values.permissions import Permissions
from loopwright.ports.processes import Exit, OutputLine


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolServer:
    """An MCP server on stdio that the agent starts itself."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopTools:
    """The tools with which an agent changes loops."""

    name: str
    server: ToolServer
    file: str
    """The file of the token in the run directory."""
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRequest:
    """What an agent is asked to do."""

    prompt: str
    workspace: Path
    run_directory: Path
    subfolder: str = ""
    """Where in the workspace the project is, and the process is started."""
    model: str | None = None
    permissions: Permissions = field(default_factory=Permissions)
    contained: bool = False
    """Loopwright's sandbox is around it: the agent's own sandbox would not work inside, and is not needed."""
    session_ref: str | None = None
    """The agent's conversation to continue."""
    fork: bool = False
    """Continue a copy of that conversation, and leave the original as it is."""
    schema: Mapping[str, Any] | None = None
    """A JSON Schema that the result has to fit; needs the capability `schema`."""
    tools: Mapping[str, ToolServer] = field(default_factory=dict)
    """MCP servers to give to the agent, by name; needs the capability `tools`."""
    max_cost_micros: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """How to start the agent's process."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables that the adapter sets."""
    inherit: tuple[str, ...] = ()
    """Names of variables that the agent needs from the user's environment."""
    home: tuple[HomePath, ...] = ()
    """What the agent needs of the user's HOME, so that it is never hidden from it."""
    credentials: tuple[str, ...] = ()
    """Those of `inherit` that say whose account it is: a named account does not get the user's own."""
    workspace_settings: tuple[str, ...] = ()
    """Where in the repository the program looks for settings that let it run more than it is asked to, relative to
    where it is started or above; a folder ends in `/`. It is not started with any that an agent may have written."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Variables that it is given, each with the name that the user's environment has it under."""
    stdin: Literal["null", "pipe"] = "null"
    stdin_data: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files to write into the run directory first, by name (for example the prompt)."""
    done_pattern: str | None = None
    done_grace_s: float | None = None
    """How long it may stay after that, for one that is known not to leave by itself; None: as the settings say."""
    interrupt: str | None = None
    session_ref: str | None = None


AgentEventKind = Literal[
    "Started",
    "Text",
    "ToolStart",
    "ToolEnd",
    "FileChange",
    "Retry",
    "RateLimit",
    "Usage",
    "Ask",
    "Error",
    "Finished",
    "Raw",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEvent:
    """One normalised thing that an agent said or did."""

    kind: AgentEventKind
    text: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    """For `Usage`: the tokens that it tells; in `run` those of the whole run so far, and `cost_micros` if known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a conversation had used before this run: some agents count on over all of its runs."""

    cost_micros: int = 0
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResult:
    """What an agent's run came to. `claimed` is only its word; nothing is done because of it."""

    claimed: bool
    summary: str = ""
    failure: Failure | None = None
    """None when `claimed`, and when it `asked`."""
    detail: str = ""
    by_work: bool = False
    """How it ended says nothing about its work: if it changed anything that is checked, that is judged all
    the same. Only the run keeps the failure then."""
    retry_at: datetime | None = None
    """When the service said that it may be asked again."""
    usage: Usage | None = None
    cost_micros: int | None = None
    session_ref: str | None = None
    model: str | None = None
    version: str | None = None
    asked: tuple[Asking, ...] = ()
    """What the run stopped for, because a person has to say it. Then it neither claims nor failed."""
    last_words: str = ""
    """Its last message where the summary has only a part of it; empty where that has all."""
    structured: Mapping[str, Any] | None = None
    """A result that fits the schema of the request."""
    windows: tuple[QuotaWindow, ...] = ()
    """What the service said of its quota, the newest word on each window."""


CAPABILITIES: Final = frozenset(
    {
        "resume",
        "fork",
        "interrupt",
        "permissions",
        "confines",
        "tools",
        "schema",
        "turns",
        "budget",
        "cost",
        "usage",
        "reset_time",
    }
)
"""What an agent may be able to do.

resume and fork a conversation; interrupt a turn in order; ask for permissions while it runs; confine itself to a
permission mode without asking; take tools (MCP); fit a result to a schema; end at a number of turns or at a budget by
itself; tell its cost, its tokens, and when a limit ends.

Policy asks for all but three, by `able`. Nothing is decided by `fork`, `turns` and `reset_time`: no run begins with a
copy, the number of turns is an option that only agents with `turns` know, and any adapter may tell a reset time.
They say what the conformance suite tries with an adapter.
"""

State = Any
"""An adapter's own frozen state; opaque to everyone else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """The effect of one output line."""

    state: State
    events: tuple[AgentEvent, ...] = ()
    writes: tuple[str, ...] = ()
    close: bool = False
    """Close the process's stdin after these writes."""
    stops: bool = False
    """These writes tell it to stop: one that does not leave within the grace time is ended, and judged by what was
    folded."""
    windows: tuple[QuotaWindow, ...] = ()
    """All that is known of the quota by now, if this line said something new of it."""


class Agent(Protocol):
    """A pure codec for one kind of agent CLI: no process, no file, no clock."""

    name: str
    capabilities: frozenset[str]
    """Of `CAPABILITIES`. Policy asks for these, never for the name."""

    def invocation(self, request: AgentRequest) -> Invocation:
        """Return how to start it."""

    def initial(self, request: AgentRequest | None = None, *, before: Spent | None = None) -> State:
        """Return the state before the first line.

        Without a request the output is only read, to show it: what folding wants to write is not needed then.
        """

    def fold(self, state: State, line: OutputLine) -> Folded:
        """Take in one line of output. Never raises: what is not understood becomes a `Raw` event."""

    def interrupt(self, state: State) -> tuple[str, ...]:
        """Return what to write to make it stop in order now; empty where only a signal or a fixed line does."""

    def result(self, state: State, exit: Exit) -> AgentResult:
        """Judge the run from everything folded and how the process ended."""

    def probe(self) -> tuple[str, ...]:
        """Return the command that prints the program's version."""


@runtime_checkable
class AbleByOptions(Protocol):
    """An agent that can do more or less, depending on how it is set up."""

    def able(self, options: Mapping[str, Any]) -> frozenset[str]:
        """Return its capabilities with these options."""


def able(agent: Agent, options: Mapping[str, Any]) -> frozenset[str]:
    """Return what an agent can do with these options."""
    return agent.able(options) if isinstance(agent, AbleByOptions) else agent.capabilities
