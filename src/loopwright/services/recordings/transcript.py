"""What an agent or a gate printed as events, one line after the other. Nothing is kept in memory."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from loopwright.adapters import registry
from loopwright.core.rows.model import Run
from loopwright.core.values.errors import UserError
from loopwright.ports import Agent, OutputLine


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One event of a run, or one line of its output."""

    kind: str
    """The kind of an agent's event, or `Line` for a line of output."""
    text: str
    data: dict[str, Any] = field(default_factory=dict)


class Transcript:
    """Turns recorded lines into events with the agent's codec. Other lines stay as they are."""

    def __init__(self, run: Run) -> None:
        self._codec = _codec(run)
        self._state = self._codec.initial() if self._codec else None

    def take(self, line: OutputLine) -> Iterator[Shown]:
        """Yield the events of one recorded line."""
        if self._codec is None:
            yield Shown(kind="Line", text=line.text, data={"stream": line.stream})
            return
        folded = self._codec.fold(self._state, line)
        self._state = folded.state
        for event in folded.events:
            yield Shown(kind=event.kind, text=event.text, data=dict(event.data))


def _codec(run: Run) -> Agent | None:
    """Return the codec of an agent's run; None for a gate, and for an agent that is no longer registered."""
    if run.agent is None:
        return None
    try:
        return registry.agent(run.agent)
    except UserError:
        return None
