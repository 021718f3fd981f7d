"""Driving one process: start it or find it again, listen to it, and learn how it ended."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from loopwright.ports import Agent, AgentEvent, AgentResult, Exit, Keepers, RunSpec

Listener = Callable[[AgentEvent], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a driven process ended."""

    exit: Exit
    interrupted: bool
    """It was ended because a person asked for it, not by itself."""
    result: AgentResult | None = None


class Interrupts:
    """Tells the legs of this process that a person wants them to stop what they are doing."""

    def __init__(self) -> None:
        self._events: dict[str, asyncio.Event] = {}

    def event(self, subject: str) -> asyncio.Event:
        """Return the event of one leg's subject."""
        return self._events.setdefault(subject, asyncio.Event())

    def forget(self, subject: str) -> None:
        """Let go of a subject whose leg has ended."""
        self._events.pop(subject, None)

    def subjects(self) -> list[str]:
        """Return whose legs run in this process."""
        return list(self._events)

    def knows(self, subject: str) -> bool:
        """Say whether a leg of this subject runs in this process."""
        return subject in self._events

    def raise_for(self, subject: str) -> None:
        """Wake the leg, if it runs here."""
        if subject in self._events:
            self._events[subject].set()


async def drive_agent(
    keepers: Keepers,
    agent: Agent,
    spec: RunSpec,
    *,
    interrupt: asyncio.Event,
    session_cost_micros: int = 0,
    heard: Listener,
) -> Ended:
    """Start the agent or adopt the one that is running, fold its whole output, and judge its end.

    Folding starts from the first line every time: the codec is pure, so an adopting worker comes to the
    same state, and its numbered answers are written at most once.
    """
    if keepers.look(spec.directory).state == "lost":
        return await _lost(keepers, spec)
    await keepers.start(spec)
    state = agent.initial(session_cost_micros=session_cost_micros)
    written = 0

    async def listen() -> None:
        nonlocal state, written
        async for line in keepers.follow(spec.directory):
            folded = agent.fold(state, line)
            state = folded.state
            for event in folded.events:
                heard(event)
            for text in folded.writes:
                written += 1
                await keepers.write(spec.directory, written, text)

    end, interrupted = await _until_end(keepers, spec.directory, listen, interrupt)
    result = None if end.ended_by == "lost" else agent.result(state, end)
    return Ended(exit=end, interrupted=interrupted, result=result)


async def drive_command(keepers: Keepers, spec: RunSpec, *, interrupt: asyncio.Event) -> Ended:
    """Start a gate or a setup command, or adopt it, and wait for its end."""
    if keepers.look(spec.directory).state == "lost":
        return await _lost(keepers, spec)
    await keepers.start(spec)

    async def listen() -> None:
        await keepers.wait(spec.directory)

    end, interrupted = await _until_end(keepers, spec.directory, listen, interrupt)
    return Ended(exit=end, interrupted=interrupted)


async def _lost(keepers: Keepers, spec: RunSpec) -> Ended:
    """Its keeper died without a word: end what is left. It is never started again under the same id."""
    return Ended(exit=await keepers.end(spec.directory, polite=False), interrupted=False)


async def _until_end(
    keepers: Keepers,
    directory: Path,
    listen: Callable[[], Coroutine[None, None, None]],
    interrupt: asyncio.Event,
) -> tuple[Exit, bool]:
    listening = asyncio.ensure_future(listen())
    stopping = asyncio.ensure_future(interrupt.wait())
    try:
        await asyncio.wait({listening, stopping}, return_when=asyncio.FIRST_COMPLETED)
        interrupted = stopping.done() and not listening.done()
        if interrupted:
            await keepers.end(directory)
        await listening
        end = await keepers.wait(directory)
        # What had ended by itself before it was asked to is finished work, however late we hear of it.
        return end, interrupted and end.ended_by == "asked"
    finally:
        for pending in (listening, stopping):
            pending.cancel()
            with suppress(asyncio.CancelledError):
                await pending


class Progress:
    """Writes what an agent is doing now into its run directory: for people, so it costs no transaction."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "progress.json"
        self._last = ""
        self._tools = 0

    def __call__(self, event: AgentEvent) -> None:
        """Note an event if it says something new."""
        if event.kind == "ToolStart":
            self._tools += 1
        if event.kind in ("Usage", "Raw", "ToolEnd") or not event.text:
            return
        text = " ".join(event.text.split())[:200]
        if text == self._last:
            return
        self._last = text
        draft = self._path.with_suffix(".new")
        try:
            draft.write_text(json.dumps({"kind": event.kind, "text": text, "tools": self._tools}))
            draft.replace(self._path)
        except OSError:
            # Progress is a courtesy: a full disk must not end the run over it.
            return
