"""Plays one behaviour: the adapter's own invocation, a real keeper, and the engine's own driving."""

import asyncio
import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGTERM
from typing import Any, Final
from uuid import uuid4

from loopwright.adapters.agents.environment import agent_environment
from loopwright.adapters.processes.keeper_files import read_status
from loopwright.adapters.processes.keepers import ProcessKeepers
from loopwright.core.rows.model import Usage
from loopwright.engine.processes.runs import Ended, agent_spec, drive_agent
from loopwright.keeper import places
from loopwright.ports import Agent, AgentEvent, AgentRequest, OutputLine, RunSpec, Spent, able
from loopwright.testing.conformance.behaviours import BEHAVIOURS, NO_STAND_IN, Behaviour

PROGRAM: Final = "{program}"
"""In a subject's options, means the path of the program to start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An adapter with a program that plays its agent."""

    name: str
    agent: Agent
    stand_in: Path
    """A Python program of the standard library only. Its first argument is what to play, the rest the adapter's own."""
    cannot: Mapping[str, str] = field(default_factory=dict)
    """Behaviours that the protocol cannot express, each with the reason."""
    options: Mapping[str, Any] = field(default_factory=lambda: {"binary": PROGRAM})
    """The options that make the adapter start a certain program."""

    def __post_init__(self) -> None:
        """Refuse a name that would leave nothing out."""
        unknown = sorted(set(self.cannot) - set(BEHAVIOURS))
        if unknown:
            raise ValueError(f"unknown behaviour {', '.join(unknown)}; known are: {', '.join(BEHAVIOURS)}")

    def excuse(self, behaviour: str) -> str:
        """Return why this subject is not asked for a behaviour; empty when it is."""
        needs = BEHAVIOURS[behaviour].needs
        if behaviour not in self.cannot and needs and needs not in self.can:
            return f"it does not have the capability `{needs}`"
        return self.cannot.get(behaviour, "")

    @property
    def can(self) -> frozenset[str]:
        """What its agent can do, set up as it is here."""
        return able(self.agent, self.options)

    def behaviours(self) -> tuple[str, ...]:
        """Return what this subject is asked for."""
        return tuple(name for name in BEHAVIOURS if not self.excuse(name))


def filled(value: Any, program: str) -> Any:
    """Put the program's path into options."""
    match value:
        case str():
            return value.replace(PROGRAM, program)
        case list() | tuple():
            return [filled(one, program) for one in value]
        case Mapping():
            return {name: filled(one, program) for name, one in value.items()}
        case _:
            return value


PROMPT = "Task: conformance\nAttempt: 1\n\nPlay your part.\n"
"""With the lines that each prompt of Loopwright has."""
KEEPERS = ProcessKeepers()
"""For all plays of this process: what it has loaded to start a keeper from need not be loaded for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What came of one run."""

    request: AgentRequest
    spec: RunSpec
    before: Spent
    ended: Ended
    events: tuple[AgentEvent, ...]
    lines: tuple[OutputLine, ...]
    files: frozenset[str]
    """What was in its workspace when it had ended."""
    seconds: float

    def writes(self) -> list[dict[str, Any]]:
        """Return what was written to the process, as its keeper logged it."""
        log = self.spec.directory / places.WRITES
        return [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else []


async def play(subject: Subject, name: str, place: Path) -> tuple[Played, ...]:
    """Let the subject's stand-in play a behaviour in its own folder: one run, or several of one conversation."""
    behaviour = BEHAVIOURS[name]
    for folder in ("workspace", "home"):
        (place / folder).mkdir(parents=True)
    program = place / "agent"
    if name not in NO_STAND_IN:
        command = shlex.join((sys.executable, "-S", "-I", str(subject.stand_in), behaviour.plays or name))
        program.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
    first = await _run(KEEPERS, subject, behaviour, place, number=1)
    if behaviour.copied:
        copy = await _run(KEEPERS, subject, behaviour, place, number=2, earlier=first, fork=True)
        return (first, copy, await _run(KEEPERS, subject, behaviour, place, number=3, earlier=first))
    if behaviour.twice:
        return (first, await _run(KEEPERS, subject, behaviour, place, number=2, earlier=first))
    return (first,)


async def _run(
    keepers: ProcessKeepers,
    subject: Subject,
    behaviour: Behaviour,
    place: Path,
    *,
    number: int,
    earlier: Played | None = None,
    fork: bool = False,
) -> Played:
    result = earlier.ended.result if earlier else None
    request = AgentRequest(
        prompt=PROMPT,
        workspace=place / "workspace",
        run_directory=place / f"run-{number}",
        permissions=behaviour.permissions,
        session_ref=result.session_ref if result else None,
        fork=fork,
        options=filled(subject.options, str(place / "agent")),
    )
    for name in behaviour.expected.makes:
        # What an earlier run has made would stand for what this one is to make.
        (request.workspace / name).unlink(missing_ok=True)
    before = Spent()
    if result is not None:
        before = Spent(cost_micros=result.cost_micros or 0, usage=result.usage or Usage())
    spec = _spec(subject, behaviour, request, place)
    events: list[AgentEvent] = []
    interrupt, first_word = asyncio.Event(), asyncio.Event()

    def heard(event: AgentEvent) -> None:
        events.append(event)
        first_word.set()
        _stop_if_due(behaviour, event, interrupt, spec)

    def drive(kept_by: ProcessKeepers, heard: Callable[[AgentEvent], None]) -> "asyncio.Future[Ended]":
        return asyncio.ensure_future(
            drive_agent(
                kept_by, subject.agent, spec, request=request, before=before, interrupt=interrupt, heard=heard
            )
        )

    began = time.monotonic()
    driving = drive(keepers, heard)
    try:
        if behaviour.adopted:
            await asyncio.wait(
                (driving, asyncio.ensure_future(first_word.wait())), return_when=asyncio.FIRST_COMPLETED
            )
            driving.cancel()
            with suppress(asyncio.CancelledError):
                await driving
            events.clear()
            driving = drive(ProcessKeepers(), heard)
        ended = await driving
    finally:
        if not driving.done():
            driving.cancel()
        if keepers.look(spec.directory).state != "absent":
            await keepers.end(spec.directory, polite=False)
    return Played(
        request=request,
        spec=spec,
        before=before,
        ended=ended,
        events=tuple(events),
        lines=tuple([line async for line in keepers.follow(spec.directory)]),
        files=frozenset(path.name for path in request.workspace.iterdir()),
        seconds=time.monotonic() - began,
    )


def _spec(subject: Subject, behaviour: Behaviour, request: AgentRequest, place: Path) -> RunSpec:
    invocation = subject.agent.invocation(request)
    env = agent_environment(os.environ, invocation, (), {"HOME": str(place / "home")})
    return agent_spec(request, invocation, run_id=f"run_{uuid4().hex}", env=env, limits=behaviour.limits)


def _stop_if_due(behaviour: Behaviour, event: AgentEvent, interrupt: asyncio.Event, spec: RunSpec) -> None:
    works, done = event.kind in ("Text", "ToolStart"), event.kind == "Finished"
    match behaviour.stop:
        case "when working" if works:
            interrupt.set()
        case "when done" if done:
            interrupt.set()
        case "by a signal from elsewhere" if works:
            child = (read_status(spec.directory) or {})["child"]
            os.kill(child["pid"], SIGTERM)
        case _:
            return
