"""What Claude Code has used so far, from the answers of its models as they come: an estimate until its result tells.

An answer comes in several messages with the same id, one for each block, each with what it took as input. What it cost
as output is told only at the end, in the result: until then the length of what was said stands for it.
"""

import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from loopwright.adapters.agents.claude import claude_meters
from loopwright.adapters.agents.output import Object, object_in, readable
from loopwright.core.rows.model import Usage

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
        usage = claude_meters.usage_of_turn(message.get("usage"))
        # The program writes messages of its own, too: no model has said them.
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
            total = claude_meters.added(total, usage) or total
        return {"run": asdict(total), "models": {model: asdict(usage) for model, usage in models.items()}}


def _add(models: dict[str, Usage], call: _Call) -> None:
    if call.model in models or len(models) < _MOST_MODELS:
        used = replace(
            call.used,
            cache_read_tokens=call.used.cache_read_tokens or 0,
            cache_write_tokens=call.used.cache_write_tokens or 0,
        )
        models[call.model] = claude_meters.added(models.get(call.model), used) or used


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
