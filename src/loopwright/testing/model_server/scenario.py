"""What a model does, and what the service around it does, as data that every wire protocol can say."""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args

from loopwright.core.rows.model import Usage
from loopwright.core.values.errors import BadConfig

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
    """A turn that fails some times and then succeeds.

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


# Scenarios from JSON files: the fields of the data, by their names.

T = TypeVar("T")


def load(path: Path) -> Scenario:
    """Read a scenario; an error names the place in the file."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise BadConfig(f"{path} cannot be read as a scenario: {problem}", code="bad_scenario") from problem
    return parse(value, str(path))


def parse(value: Any, source: str) -> Scenario:
    """Read a scenario from its JSON form."""
    known = _mapping(value, source)
    by_prompt = _mapping(known.get("by_prompt", {}), f"{source}: by_prompt")
    given: dict[str, Any] = {
        **known,
        "turns": _turns(known.get("turns"), f"{source}: turns"),
        "by_prompt": {
            text: _turns(turns, f"{source}: by_prompt[{text!r}]") for text, turns in by_prompt.items()
        },
    }
    if "aside" in known:
        given["aside"] = _reply(known["aside"], f"{source}: aside")
    return _made(Scenario, given, source)


def _turns(value: Any, where: str) -> tuple[Turn, ...]:
    turns = tuple(_turn(one, f"{where}[{n}]") for n, one in enumerate(_list(value, where)))
    if not turns:
        raise BadConfig(f"{where}: at least one turn is needed", code="bad_scenario")
    return turns


def _turn(value: Any, where: str) -> Turn:
    given = _mapping(value, where)
    if "fails" not in given:
        return _refusal(given, where) or _reply(given, where)
    fails = _refusal(_mapping(given["fails"], where), f"{where}.fails")
    if fails is None:
        raise BadConfig(f"{where}.fails: it must be a trouble or a rejection", code="bad_scenario")
    then = _reply(given.get("then"), f"{where}.then")
    times = given.get("times")
    if isinstance(times, bool) or not isinstance(times, int) or times < 1:
        raise BadConfig(f"{where}.times: it must be a whole number of at least 1", code="bad_scenario")
    return _made(Flaky, {**given, "fails": fails, "then": then}, where)


def _refusal(given: Mapping[str, Any], where: str) -> Rejection | Trouble | None:
    if "trouble" in given:
        kind = given["trouble"]
        if kind not in get_args(TroubleKind):
            known = ", ".join(get_args(TroubleKind))
            raise BadConfig(
                f"{where}: unknown trouble {kind!r}", code="bad_scenario", hint=f"known are: {known}"
            )
        return _made(Trouble, {**_without(given, "trouble"), "kind": kind}, where)
    return _made(Rejection, given, where) if "status" in given else None


def _reply(value: Any, where: str) -> Reply:
    given = dict(_mapping(value, where))
    for name, read in _PARTS.items():
        if name in given:
            given[name] = read(given[name], f"{where}.{name}")
    return _made(Reply, given, where)


def _tools(value: Any, where: str) -> tuple[ToolCall, ...]:
    return tuple(
        _made(ToolCall, _mapping(one, f"{where}[{n}]"), f"{where}[{n}]")
        for n, one in enumerate(_list(value, where))
    )


def _usage(value: Any, where: str) -> Usage:
    return _made(Usage, _mapping(value, where), where)


_PARTS: Mapping[str, Callable[[Any, str], Any]] = {"tools": _tools, "usage": _usage}


def _made(kind: type[T], given: Mapping[str, Any], where: str) -> T:
    """Make a value of the fields that were given, and refuse those that would do nothing."""
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise BadConfig(
            f"{where}: unknown {', '.join(unknown)}",
            code="bad_scenario",
            hint=f"known are: {', '.join(known)}",
        )
    required = {n for n, one in known.items() if one.default is MISSING and one.default_factory is MISSING}
    if missing := sorted(required - set(given)):
        raise BadConfig(f"{where}: {', '.join(missing)} is missing", code="bad_scenario")
    return kind(**given)


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise BadConfig(f"{where}: it must be an object", code="bad_scenario")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise BadConfig(f"{where}: it must be a list", code="bad_scenario")
    return value


def _without(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key != name}
