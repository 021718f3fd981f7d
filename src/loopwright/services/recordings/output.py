"""The output of agents, gates and setups: read afterwards, followed while they run, or deleted."""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from loopwright.adapters import registry
from loopwright.adapters.machine.disk import forgotten_since
from loopwright.adapters.machine.host import host_id
from loopwright.adapters.processes.keeper_files import OutputReader
from loopwright.core.rows.model import Run
from loopwright.core.values.errors import UserError
from loopwright.core.values.states import PROCESS_OVER
from loopwright.ports import Agent, OutputLine
from loopwright.services.homes.caller import unheard
from loopwright.services.homes.read_only_home import Look, glancing, looking, wanted
from loopwright.services.recordings.log_runs import Chosen, RoleName, Wish, choose, nothing

if TYPE_CHECKING:
    from loopwright.adapters.processes.keepers import ProcessKeepers

# The output of an agent or a gate as events, one line after the other. Nothing is kept in memory.


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


__all__ = ["Output", "OutputLine", "RunBegins", "RunEnds", "TaskEnds", "followed", "printed"]

_LOOK_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBegins:
    """The output of a run follows."""

    run: Run
    attempt: int | None
    """The number of its attempt."""
    reused: str
    """The run whose verdict was reused instead of a new run of the gate; empty if it ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnds:
    """All recorded output of a run was given."""

    run: Run
    missing: Literal["", "elsewhere", "gone"]
    """Why there is no output: it ran on another machine, or its files are gone."""
    forgotten: str | None
    """Since when its recording is no longer kept, if it was deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnds:
    """How the task ended, after the output of its runs."""

    became: str


Output = RunBegins | OutputLine | RunEnds | TaskEnds


def printed(
    target: str | None = None,
    *,
    role: RoleName | None = None,
    attempt: int | None = None,
    tell: Callable[[str], None] = unheard,
) -> Iterator[Output]:
    """Yield the output so far of a run, of the runs of a task's newest attempt, or of a plan's gate.

    `tell` gets the choice if `target` names nothing.
    """
    with glancing() as look:
        wish = _wish(look, target, role, attempt, tell)
        chosen = look.store.read_sync(lambda tx: choose(tx, wish))
        if not chosen.runs:
            raise look.store.read_sync(lambda tx: nothing(tx, wish))
        for run in chosen.runs:
            yield _begins(run, chosen)
            found = False
            for line in OutputReader(look.paths.run(run.id), 0).all():
                found = True
                yield line
            yield _ends(look, run, found=found)
        if chosen.became:
            yield TaskEnds(became=chosen.became)


async def followed(
    target: str | None = None,
    *,
    role: RoleName | None = None,
    attempt: int | None = None,
    tell: Callable[[str], None] = unheard,
) -> AsyncIterator[Output]:
    """Yield what is printed, run after run as they come, until the target is finished."""
    # Only following waits for processes.
    from loopwright.adapters.processes.keepers import ProcessKeepers

    with looking() as look:
        # Once, by id: while following, a newer plan may have a task of the same name.
        wish = _wish(look, target, role, attempt, tell)
        keepers, given = ProcessKeepers(), set[str]()
        while True:
            chosen = await look.store.read(lambda tx: choose(tx, wish, since=frozenset(given)))
            if not given and not chosen.runs and not chosen.more:
                raise await look.store.read(lambda tx: nothing(tx, wish))
            new = [run for run in chosen.runs if run.id not in given]
            for run in new:
                yield _begins(run, chosen)
                await _until_started(look, keepers, run)
                found = False
                async for line in keepers.follow(look.paths.run(run.id)):
                    found = True
                    yield line
                given.add(run.id)
                yield _ends(look, await _settled(look, run), found=found)
            if not new:
                if not chosen.more:
                    break
                await look.store.changed(_LOOK_S)
        if chosen.became:
            yield TaskEnds(became=chosen.became)


def _wish(
    look: Look[Any],
    target: str | None,
    role: RoleName | None,
    attempt: int | None,
    tell: Callable[[str], None],
) -> Wish:
    found = look.store.read_sync(lambda tx: wanted(tx, target, verb="logs", with_output=True, tell=tell))
    return Wish(target=found.id, role=role, attempt=attempt)


def _begins(run: Run, chosen: Chosen) -> RunBegins:
    return RunBegins(run=run, attempt=chosen.attempts.get(run.id), reused=chosen.reused.get(run.id, ""))


def _ends(look: Look[Any], run: Run, *, found: bool) -> RunEnds:
    directory = look.paths.run(run.id)
    missing: Literal["", "elsewhere", "gone"] = ""
    if not found and not directory.is_dir():
        missing = "elsewhere" if run.host_id not in (None, host_id(look.root)) else "gone"
    return RunEnds(run=run, missing=missing, forgotten=forgotten_since(directory))


async def _until_started(look: Look[Any], keepers: "ProcessKeepers", run: Run) -> None:
    """Wait for the process of a run: its row is written before the process exists."""
    while keepers.look(look.paths.run(run.id)).state == "absent":
        row = await look.store.read(lambda tx: tx.get(Run, run.id))
        if row is None or row.state in PROCESS_OVER or run.host_id not in (None, host_id(look.root)):
            return
        await look.store.changed(_LOOK_S)


async def _settled(look: Look[Any], run: Run) -> Run:
    """Give the worker a moment to record the end of a run that has just ended."""
    row: Run | None = run
    for _ in range(3):
        row = await look.store.read(lambda tx: tx.get(Run, run.id))
        if row is None or row.state in PROCESS_OVER:
            break
        await look.store.changed(_LOOK_S)
    return row or run
