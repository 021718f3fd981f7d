"""Processes that outlive us, and what contains them."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

from loopwright.core.values.containment import Containment, HomeView, MadeWith
from loopwright.core.values.policy import Limits

# Containing what a run starts.


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What one process may reach. The rest of the machine it can only read, other people's secrets not even that."""

    directory: Path
    """The run's own directory. Only what is private to the process is seen of it: its TMPDIR and its HOME."""
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    """The programs on its PATH stay in sight."""
    argv: tuple[str, ...] = ()
    """What is started; files that it names stay in sight."""
    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    """In sight, wherever they lie."""
    hidden: tuple[Path, ...] = ()
    """Out of sight, except for what the other fields name inside of them."""
    home: HomeView | None = None
    network: bool = True


class Sandbox(Protocol):
    """Keeps a process from everything that it does not need."""

    @property
    def level(self) -> Containment:
        """How strong it is."""

    @property
    def made_with(self) -> MadeWith | None:
        """What it is made with; None where there is none."""

    def view(self, home: HomeView | None) -> HomeView | None:
        """Return as much of a HOME as is to be seen in here."""

    def prefix(self, reach: Reach) -> tuple[str, ...]:
        """Return the words to put before a command's own, so that it is contained; none where nothing contains it."""

    def denial(self, output: Sequence[str], reach: Reach) -> str | None:
        """Return which refusal of the sandbox a program's last words complain of, and the setting that allows it."""


class NoSandbox:
    """Contains nothing."""

    level = Containment.NONE
    made_with: MadeWith | None = None

    def view(self, home: HomeView | None) -> HomeView | None:
        """Return it as it is."""
        return home

    def prefix(self, reach: Reach) -> tuple[str, ...]:  # noqa: ARG002 - it may reach everything
        """Return nothing to put before it."""
        return ()

    def denial(self, output: Sequence[str], reach: Reach) -> str | None:  # noqa: ARG002
        """Return None: nothing is refused."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """Everything a keeper needs to know about one process."""

    run_id: str
    directory: Path
    """The run's own directory: spec, output, exit status, socket."""
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    stdin: Literal["null", "pipe"] = "null"
    stdin_data: str = ""
    """Written first when stdin is a pipe; the pipe then stays open for numbered writes unless closed by one."""
    limits: Limits = field(default_factory=Limits)
    done_pattern: str | None = None
    """A regular expression on an output line that means "I am done": starts the grace timer."""
    interrupt: str | None = None
    """A line written to stdin (or the name of a signal, `SIGINT`) that asks politely to stop."""
    activity_paths: tuple[Path, ...] = ()
    """Directories whose changes count as a sign of life."""
    secrets: tuple[str, ...] = ()
    """Exact values to redact from the output, besides well-known shapes."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files to write into the run's directory before it starts, by name."""
    contained: bool = False
    """The first process is a sandbox's own, and would take all others with it at once if it were asked to end."""
    home: HomeView | None = None
    """The run's private HOME; without one it has whatever `env` says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a process ended, as its keeper wrote it."""

    code: int | None
    """Exit code; negative for a signal; None when it never started."""
    ended_by: Literal["itself", "deadline", "idle", "done_hang", "asked", "not_started", "lost"]
    started_at: datetime | None
    ended_at: datetime
    output_bytes: int
    output_sha256: str
    dropped_bytes: int = 0
    error: str = ""
    login_renewed: bool = False
    """Another process renewed the agent's login while it ran: what was refused may be allowed now."""
    files_sha256: str = ""
    """One hash for all else that was written down of it; only who drove it to its end knows that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What can be seen of a run from outside."""

    state: Literal["absent", "alive", "exited", "lost"]
    """`lost`: it was started, but there is neither a live keeper nor an exit file."""
    exit: Exit | None = None
    pid: int | None = None
    last_sign_at: datetime | None = None
    """When the agent last showed a sign of life."""
    beat_at: datetime | None = None
    """When its keeper last wrote its heartbeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputLine:
    """One line of a run's output."""

    offset: int
    """Position right after this line: give it to `follow` to continue from here."""
    stream: Literal["out", "err"]
    text: str


class Keepers(Protocol):
    """Starts processes that outlive us, and finds them again."""

    def get_ready(self) -> None:
        """Begin with whatever lets the first process start sooner, without waiting for it."""

    async def start(self, spec: RunSpec) -> None:
        """Start a keeper unless there is a live one or an exit file already."""

    def look(self, directory: Path) -> Sighting:
        """Return what can be seen of a run now."""

    def follow(self, directory: Path, offset: int = 0) -> AsyncIterator[OutputLine]:
        """Yield complete output lines from `offset`, waiting for more, until the run has ended."""

    async def wait(self, directory: Path) -> Exit:
        """Wait for the end of the run."""

    async def write(
        self, directory: Path, n: int, data: str, *, close: bool = False, stops: bool = False
    ) -> None:
        """Write to the process's stdin; the same number twice writes once.

        With `stops` it is told to stop, and is ended like one that says done and stays, after its grace time.
        """

    async def end(self, directory: Path, *, polite: bool = True) -> Exit:
        """End the whole process tree, politely first, and return how it ended."""

    async def sweep(self, *run_ids: str) -> int:
        """Kill every process that carries the marker of one of these runs; return how many there were."""

    def evidence(self, directory: Path) -> str:
        """Return one hash for all that is written down of a run that has ended, its output and its prompt apart."""

    def close(self) -> None:
        """Release what is kept only to start the next process sooner; started processes continue."""
