"""What holds for every codec, whatever the agent does: it is pure, and nothing makes it raise."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, get_args

from loopwright.engine.processes.runs import INTERRUPT
from loopwright.ports import (
    CAPABILITIES,
    Agent,
    AgentEvent,
    AgentEventKind,
    AgentResult,
    OutputLine,
    QuotaWindow,
    State,
)
from loopwright.testing.conformance.playing import Played

_ODD: Final[tuple[Any, ...]] = (None, True, -1, 1e308, "", "\ud800\0", [], [None], {}, {"type": []})
"""What may stand where something else was expected."""

_SHAPE: Final = 40
_MOST_SHAPES: Final = 60
"""Lines that begin alike are one shape; so many shapes of a run are bent."""

_MOST_READ: Final = 2000
"""So many lines are read without a request; more of them tell nothing."""


def broken(agent: Agent, run: Played) -> Iterator[str]:
    """Return which laws do not hold for a run."""
    if unknown := agent.capabilities - CAPABILITIES:
        yield f"unknown capability {', '.join(sorted(unknown))}"
    if agent.invocation(run.request) != agent.invocation(run.request):
        yield "the same request gives another invocation the second time"
    yield from _of_folding_again(agent, run)
    yield from _of_reading(agent, run)


def _of_folding_again(agent: Agent, run: Played) -> Iterator[str]:
    """Fold as a worker does that adopts the run, and bend each kind of line on the way."""
    state = agent.initial(run.request, before=run.before)
    events: list[AgentEvent] = []
    writes: list[tuple[str, bool]] = []
    told: tuple[QuotaWindow, ...] = ()
    shapes: set[str] = set()
    for line in run.lines:
        shape = line.text[:_SHAPE]
        if shape not in shapes and len(shapes) < _MOST_SHAPES:
            shapes.add(shape)
            yield from _of_odd_lines(agent, run, state, line)
        step = agent.fold(state, line)
        state = step.state
        events += step.events
        told = step.windows or told
        writes += [(text, False) for text in step.writes] + ([("", True)] if step.close else [])
    if tuple(events) != run.events:
        yield f"folding again tells {len(events)} events, and there were {len(run.events)}, or others"
    if (result := agent.result(state, run.ended.exit)) != run.ended.result:
        yield f"folding again comes to another result: {_difference(result, run.ended.result)}"
    # What refused may be in the words of its end alone: then nothing was to be told before.
    heard, known = {one.name for one in told}, {one.name: one for one in result.windows}
    if heard - known.keys() or any(not one.rejected for name, one in known.items() if name not in heard):
        yield f"of its quota it tells {told} while it runs, and {result.windows} at the end"
    yield from _of_writes(run, writes)


def _of_writes(run: Played, folded: list[tuple[str, bool]]) -> Iterator[str]:
    """What was written must be what folding again would write: then no number is ever used for two things."""
    for entry in run.writes():
        if entry["n"] >= INTERRUPT:
            continue
        again = folded[entry["n"] - 1] if entry["n"] <= len(folded) else None
        if again != (entry["data"], entry["close"]):
            yield f"write {entry['n']} was {entry['data']!r}, and folding again would write {again!r}"


def _of_reading(agent: Agent, run: Played) -> Iterator[str]:
    """A reader that only shows the output has no request."""
    state = agent.initial()
    for line in run.lines[:_MOST_READ]:
        try:
            step = agent.fold(state, line)
        except Exception as problem:  # noqa: BLE001 - this is what is looked for
            yield f"reading the line {line.text[:200]!r} without a request raises {problem!r}"
            return
        state = step.state
        for event in step.events:
            yield from _of_event(event)


def _of_event(event: AgentEvent) -> Iterator[str]:
    if event.kind not in get_args(AgentEventKind):
        yield f"unknown kind of event {event.kind!r}"
    try:
        stored = json.dumps([event.text, dict(event.data)]).encode()
        event.text.encode()
    except (TypeError, ValueError) as problem:
        yield f"an event {event.kind} cannot be stored: {problem}"
        return
    if b"\\u0000" in stored:
        yield f"an event {event.kind} has a NUL, which not every database can store"


def _of_odd_lines(agent: Agent, run: Played, state: State, line: OutputLine) -> Iterator[str]:
    """Bend a line in every place, and fold that instead of it."""
    for odd in _bent(line.text):
        try:
            bent = agent.fold(state, OutputLine(offset=line.offset, stream=line.stream, text=odd))
            agent.interrupt(bent.state)
            agent.result(bent.state, run.ended.exit)
        except Exception as problem:  # noqa: BLE001 - this is what is looked for
            yield f"the line {odd[:200]!r} makes it raise {problem!r}"
            return


def _bent(text: str) -> Iterator[str]:
    yield text[: len(text) // 2]
    yield text * 2
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    for bent in _variants(value):
        yield json.dumps(bent)


def _variants(value: Any) -> Iterator[Any]:
    """Yield the value with one place in it replaced by something odd, for every place."""
    yield from _ODD
    if isinstance(value, Mapping):
        for name, inner in value.items():
            rest = {key: other for key, other in value.items() if key != name}
            yield rest
            yield from ({**rest, name: variant} for variant in _variants(inner))
    elif isinstance(value, list):
        for place, inner in enumerate(value[:3]):
            yield from ([*value[:place], variant, *value[place + 1 :]] for variant in _variants(inner))


def _difference(ours: AgentResult, theirs: AgentResult | None) -> str:
    if theirs is None:
        return "there was none"
    names = [name for name in AgentResult.__slots__ if getattr(ours, name) != getattr(theirs, name)]
    return ", ".join(f"{name} {getattr(ours, name)!r}, not {getattr(theirs, name)!r}" for name in names)
