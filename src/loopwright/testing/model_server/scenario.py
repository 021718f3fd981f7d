"""What a model does, and what the service around it does, as data that every wire protocol can say."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from loopwright.core.rows.model import Usage

USAGE: Final = Usage(input_tokens=120, output_tokens=25, cache_read_tokens=50, cache_write_tokens=10)
"""What a turn uses unless it says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool that the model wants to have run."""

    name: str
    input: Mapping[str, Any] | str
    """By name; a text for tools that take one as it is, such as codex's `apply_patch`: only OpenAI has such tools."""
    namespace: str = ""
    """Where the tool comes from, for example `mcp__toy`. A protocol without namespaces says `mcp__toy__add`."""

    @property
    def full_name(self) -> str:
        """The name where there are no namespaces."""
        return f"{self.namespace}__{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A turn in which the model answers."""

    text: str = ""
    tools: tuple[ToolCall, ...] = ()
    stop_reason: Literal["max_tokens", "refusal"] | None = None
    """Why it stopped, where that is neither the end of its turn nor a tool that it waits for."""
    usage: Usage = USAGE
    """Input is what came from no cache, whatever the protocol counts together."""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    """Silence before the answer begins."""
    pace_s: float = 0.0
    """Time between two pieces of a streamed answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A turn in which the service refuses, exactly so."""

    status: int
    kind: str
    """What the protocol calls the type of the error; its status with Gemini."""
    message: str
    code: str | None = None
    """With OpenAI: the finer name of the error."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the error."""
    headers: Mapping[str, str] = field(default_factory=dict)
    in_stream: bool = False
    """The request is taken, and the stream that answers it fails; nothing else for who wants no stream."""


TroubleKind = Literal[
    "auth", "forbidden", "model", "rate_limit", "usage_limit", "billing", "overloaded", "context"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A turn in which the service refuses, as each protocol's own service says it."""

    kind: TroubleKind
    resets_at: int | None = None
    """When a usage limit ends, as an epoch time."""
    resets_in_s: int = 3600
    """Or how many seconds after the request."""
    window: str = "five_hour"
    """Which window of an Anthropic subscription a usage limit is of: one of `seven_day_opus` is of that model alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaky:
    """A turn that fails some times and then succeeds, for whoever asks.

    This alone needs a memory: requests are counted over all conversations, those without tools apart. To have each of
    several tasks refused, give each its own turns with `by_prompt`.
    """

    fails: Rejection | Trouble
    times: int
    then: Reply


Turn = Reply | Rejection | Trouble | Flaky


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What the model does. The last turn is repeated for as long as it is asked."""

    turns: tuple[Turn, ...]
    by_prompt: Mapping[str, tuple[Turn, ...]] = field(default_factory=dict)
    """Other turns for conversations whose last user words contain a text."""
    aside: Reply | None = None
    """What requests get that offer the model no tools, if that is something else.

    Some programs ask beside the conversation for its title or a summary.
    """

    def turn(self, prompt: str, answered: int, *, has_tools: bool = True) -> Turn:
        """Return the turn that is due after so many rounds of tool results."""
        if self.aside is not None and not has_tools:
            return self.aside
        special = (turns for text, turns in self.by_prompt.items() if text in prompt)
        turns = next(special, self.turns)
        return turns[min(answered, len(turns) - 1)]
