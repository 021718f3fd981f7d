"""Everything that is known about a run from its lines so far."""

from dataclasses import dataclass, field, replace
from typing import Final, Literal

from loopwright.adapters.agents.acp import rpc
from loopwright.adapters.agents.output import readable
from loopwright.core.replies.questions import Asking
from loopwright.core.rows.model import Usage
from loopwright.core.values.failures import Failure
from loopwright.core.values.permissions import Permissions
from loopwright.ports import ToolServer

LAST_WORDS: Final = 16_000
"""So much is kept of the agent's last message, from its end."""

OPEN_CALLS: Final = 64
_DENIED: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What is to be said to the agent, and what it may do."""

    prompt: str
    workspace: str
    cwd: str
    permissions: Permissions
    model: str | None
    """Only where it is told in the conversation."""
    session_ref: str | None
    fork: bool
    tools: tuple[tuple[str, ToolServer], ...]
    """Only where they are told in the conversation."""
    servers: tuple[str, ...]
    """Names of all tool servers."""
    modes: tuple[str, ...]
    """The first one that the agent offers is to be its mode; empty where its mode does not matter."""
    auth: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call: it is remembered until it ends, because later messages tell only what is new about it."""

    id: str
    name: str = ""
    kind: str = ""
    title: str = ""
    command: str = ""
    cwd: str = ""
    url: str = ""
    paths: tuple[str, ...] = ()
    told: bool = False
    """Whether the beginning was reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An error as the agent told it."""

    message: str
    code: int | None = None
    kind: str = ""
    """The name that the agent itself has for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalled:
    """A call that it would have tried again and again."""

    failure: Failure
    message: str
    pause_s: float | None
    """How long it would have paused, where the service had said that."""
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How the conversation came to its end."""

    step: int
    """Our last request."""
    going_on: bool = False
    """A conversation of before was to be continued."""
    stop_reason: str = ""
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AcpState:
    """Where the conversation stands."""

    aim: Aim | None = None
    """None when the output is only read."""
    before_micros: int = 0
    waiting: int = rpc.INITIALIZE
    """Our request that is not answered yet."""
    version: str | None = None
    can_load: bool = False
    auth_methods: tuple[str, ...] = ()
    session: str | None = None
    model: str | None = None
    model_option: str = ""
    """The id of the setting by which a model is chosen in the conversation."""
    models: tuple[str, ...] = ()
    """What that setting can be."""
    calls: tuple[Call, ...] = ()
    """The ones that have not ended."""
    saying: str = ""
    """What the agent said since the last report."""
    thinking: bool = False
    """Whether that is a thought."""
    said: str = ""
    """The last message."""
    message_id: str = ""
    messages_in_a_row: int = 0
    """Without a tool call between them."""
    did_something: bool = False
    """It said a word or used a tool, after what it was `stalled` by."""
    complaint: tuple[Literal["error", "turns", "refused"], str] | None = None
    """What came last in place of the model's words: words of the program, or one of our refusals."""
    circling: bool = False
    """It was stopped because it went round in circles."""
    tries: int = 0
    """How often in a row a call has failed that it tried again by itself."""
    stalled: Stalled | None = None
    """It was stopped because it got no further."""
    asked: tuple[Asking, ...] = ()
    denied: tuple[str, ...] = ()
    usage: Usage | None = None
    cost_micros: int | None = None
    """Of the whole conversation."""
    plan: str = ""
    ending: Ending | None = None
    tail: tuple[str, ...] = field(default=())
    """The last lines that were not JSON: this is where the program complains before it can talk."""
    in_own_log: bool = False
    """The last line on stderr was noise; indented lines after it belong to it."""

    @property
    def is_working(self) -> bool:
        """Whether the prompt was given and is not answered yet: before it, an old conversation may be repeated."""
        return self.waiting == rpc.PROMPT and self.ending is None

    @property
    def is_stopping(self) -> bool:
        """Whether we have told it to stop."""
        return bool(self.asked) or self.circling or self.stalled is not None

    def call(self, id: str) -> Call | None:
        """Return a call that has not ended."""
        return next((one for one in self.calls if one.id == id), None)

    def with_call(self, call: Call) -> "AcpState":
        """Return the state in which a call is known as it is now."""
        others = tuple(one for one in self.calls if one.id != call.id)
        return replace(self, calls=(*others, call)[-OPEN_CALLS:])

    def without_call(self, id: str) -> "AcpState":
        """Return the state in which a call has ended."""
        return replace(self, calls=tuple(one for one in self.calls if one.id != id))

    def with_denied(self, what: str) -> "AcpState":
        """Return the state in which something was refused."""
        return replace(self, denied=(*self.denied, readable(what, 200))[-_DENIED:])
