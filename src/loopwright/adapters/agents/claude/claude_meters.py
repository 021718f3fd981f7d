"""What Claude Code tells of tokens and of its service's quota."""

import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

from loopwright.adapters.agents.output import Object, object_in, readable, whole_number
from loopwright.core.rows.model import Usage
from loopwright.core.rows.waiting_rows import QuotaKind
from loopwright.ports import QuotaWindow

_MOST_WINDOWS: Final = 16
_KINDS: Final = (
    ("five_hour", QuotaKind.SUBSCRIPTION),
    ("seven_day", QuotaKind.WEEKLY),
    ("overage", QuotaKind.CREDITS),
)
"""What its windows are, by how their names begin."""
_MODELS: Final = MappingProxyType(
    {"seven_day_opus": "opus", "seven_day_sonnet": "sonnet", "seven_day_overage_included": "fable"}
)
"""The windows that are of one kind of models alone, as the program itself names them."""


def windows(known: tuple[QuotaWindow, ...], info: Object) -> tuple[QuotaWindow, ...]:
    """Return the newest word on each window: the one that is spoken of, and any that are listed with it."""
    listed = object_in(info.get("unifiedWindows"))
    told = {readable(name, 100): object_in(one) for name, one in listed.items()}
    spoken_of = readable(info.get("rateLimitType"), 100)
    told[spoken_of] = {**told.get(spoken_of, {}), **info}
    newest = {window.name: window for window in known}
    for name, one in told.items():
        if name and one:
            earlier = newest.get(name, QuotaWindow(name=name))
            used, resets_at = share(one.get("utilization")), moment(one.get("resetsAt"))
            # Not every word on a window says everything of it.
            newest[name] = QuotaWindow(
                name=name,
                kind=_kind(name),
                used=earlier.used if used is None else used,
                resets_at=resets_at or earlier.resets_at,
                rejected=one.get("status") == "rejected",
                model=_MODELS.get(name, ""),
            )
    return tuple(newest.values())[:_MOST_WINDOWS]


def _kind(name: str) -> QuotaKind:
    return next((kind for start, kind in _KINDS if name.startswith(start)), QuotaKind.UNKNOWN)


def paid_by_key(source: object) -> tuple[QuotaWindow, ...]:
    """Return what the source of its key says of how an account pays: with a key, call by call.

    Without one it says nothing: there may be a subscription, or no login at all.
    """
    name = readable(source, 100)
    return (QuotaWindow(name="api_key", kind=QuotaKind.DOLLARS),) if name not in ("", "none") else ()


def share(value: object) -> float | None:
    """Return how much of a window is used, between 0 and 1; more than all of it is all of it."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1_000:
        return None
    return min(float(value), 1.0)


def usage_of_turn(value: object) -> Usage | None:
    """Read the tokens of one turn, in which those of the program's own helpers are missing."""
    if not isinstance(value, dict):
        return None
    return Usage(
        input_tokens=whole_number(value.get("input_tokens")),
        output_tokens=whole_number(value.get("output_tokens")),
        cache_read_tokens=whole_number(value.get("cache_read_input_tokens")),
        cache_write_tokens=whole_number(value.get("cache_creation_input_tokens")),
    )


def usage_of_all(by_model: object) -> Usage | None:
    """Read the tokens of the whole conversation, its helpers' included."""
    if not isinstance(by_model, dict):
        return None
    total: Usage | None = Usage(input_tokens=0, output_tokens=0, cache_read_tokens=0, cache_write_tokens=0)
    for value in by_model.values():
        used = object_in(value)
        total = added(
            total,
            Usage(
                input_tokens=whole_number(used.get("inputTokens")),
                output_tokens=whole_number(used.get("outputTokens")),
                cache_read_tokens=whole_number(used.get("cacheReadInputTokens")),
                cache_write_tokens=whole_number(used.get("cacheCreationInputTokens")),
            ),
        )
    return total


def added(one: Usage | None, other: Usage | None) -> Usage | None:
    """Add up two of them; a part that one of them does not know is unknown."""
    if one is None or other is None:
        return one or other
    pairs = {name: (count, asdict(other)[name]) for name, count in asdict(one).items()}
    return Usage(**{name: None if None in pair else sum(pair) for name, pair in pairs.items()})


def counts_on(total: Usage | None, turns: Usage | None, before: Usage) -> bool:
    """Return whether totals continue over the runs of a conversation: older versions begin again with each process.

    If they do, they are at least what was used before and in this run's turns together.
    """
    if total is None or turns is None:
        return True
    parts = ((asdict(total)[name], count, asdict(before)[name]) for name, count in asdict(turns).items())
    return all(known is None or known >= (count or 0) + (earlier or 0) for known, count, earlier in parts)


def since(total: int, before: int) -> int:
    """Return what was added; a total below what was known before was counted again all the same."""
    return total - before if total >= before else total


def usage_since(total: Usage, before: Usage) -> Usage:
    """Return the tokens that were added."""
    parts = ((name, count, asdict(before)[name] or 0) for name, count in asdict(total).items())
    return Usage(**{name: None if count is None else since(count, earlier) for name, count, earlier in parts})


def moment(epoch: object) -> datetime | None:
    """Return a time that was given in seconds."""
    seconds = whole_number(epoch)
    # Year 2001 to 2286: anything else is not a time in seconds.
    return datetime.fromtimestamp(seconds, UTC) if seconds and 10**9 <= seconds < 10**10 else None


# What Claude Code has used so far, from the answers of its models as they come: an estimate until its result tells.

_OPEN_CALLS: Final = 16
"""So many answers may still grow at the same time: helpers of the program have theirs side by side."""
_LETTERS_OF_A_TOKEN: Final = 4
_MOST_MODELS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    id: str
    model: str
    usage: Usage
    letters: int

    @property
    def used(self) -> Usage:
        said = -(-self.letters // _LETTERS_OF_A_TOKEN)
        return replace(self.usage, output_tokens=max(self.usage.output_tokens or 0, said))


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The answers so far, each counted once."""

    still_open: tuple[_Call, ...] = ()
    settled: tuple[tuple[str, Usage], ...] = ()
    """By model, what older answers used."""

    def heard(self, message: Object) -> "Calls":
        """Take in one message of an answer; one that tells nothing changes nothing."""
        call, model = readable(message.get("id"), 200), readable(message.get("model"), 200)
        usage = usage_of_turn(message.get("usage"))
        # The program writes its own messages, too: no model has said them.
        if usage is None or usage.input_tokens is None or not call or not model or model.startswith("<"):
            return self
        earlier = next((one.letters for one in self.still_open if one.id == call), 0)
        newest = _Call(id=call, model=model, usage=usage, letters=earlier + _letters(message))
        rest = tuple(one for one in self.still_open if one.id != call)
        over = (*rest, newest)[:-_OPEN_CALLS]
        settled = dict(self.settled)
        for one in over:
            _add(settled, one)
        return Calls(still_open=(*rest, newest)[-_OPEN_CALLS:], settled=tuple(settled.items()))

    def told(self) -> dict[str, Any]:
        """Return what the run has used so far as an event tells it: in all, and by model."""
        models = dict(self.settled)
        for one in self.still_open:
            _add(models, one)
        total = Usage(input_tokens=0, output_tokens=0, cache_read_tokens=0, cache_write_tokens=0)
        for usage in models.values():
            total = added(total, usage) or total
        return {"run": asdict(total), "models": {model: asdict(usage) for model, usage in models.items()}}


def _add(models: dict[str, Usage], call: _Call) -> None:
    if call.model in models or len(models) < _MOST_MODELS:
        used = replace(
            call.used,
            cache_read_tokens=call.used.cache_read_tokens or 0,
            cache_write_tokens=call.used.cache_write_tokens or 0,
        )
        models[call.model] = added(models.get(call.model), used) or used


def _letters(message: Object) -> int:
    content = message.get("content")
    return sum(_length(object_in(block)) for block in content) if isinstance(content, list) else 0


def _length(block: Object) -> int:
    match block.get("type"):
        case "text" | "thinking" as kind:
            said = block.get(kind)
            return len(said) if isinstance(said, str) else 0
        case "tool_use":
            return len(json.dumps(block.get("input"), ensure_ascii=False))
        case _:
            return 0
