"""What the engine needs from the world, as Protocols. Adapters fill them; `loopwright.testing` ships fakes."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from loopwright.core.failures import Failure
from loopwright.core.homes import HomePath, HomeView
from loopwright.core.model import Event, GateCommand, Leg, Limits, RecordedEvent, Usage, Verdict

T = TypeVar("T")
R = TypeVar("R")


# --- time and chance -------------------------------------------------------------------------------


class Clock(Protocol):
    """Time, and waiting for it."""

    def now(self) -> datetime:
        """Return the present moment, aware UTC."""

    def monotonic(self) -> float:
        """Return seconds that no clock change touches: for leases and limits within this process."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


Ids = Callable[[str], str]
"""Draws a new id for a prefix of `core.ids.Kind`."""


Failpoint = Callable[[str], None]
"""Called with a name before and after each effect; does nothing outside tests, where it may end the process."""


def no_failpoint(name: str) -> None:
    """Let every effect happen."""


# --- store -----------------------------------------------------------------------------------------


class Tx(Protocol):
    """One transaction over the rows. Everything is committed together with its events, or nothing is."""

    def now(self) -> datetime:
        """Return the database's own clock: the only one that leases and fences trust."""

    def get(self, kind: type[R], id: str) -> R | None:
        """Return one row by id."""

    def find(
        self,
        kind: type[R],
        /,
        *,
        order_by: Sequence[str] = (),
        limit: int | None = None,
        **where: Any,
    ) -> list[R]:
        """Return rows whose columns equal `where`; a list, tuple, set or frozenset means any of them.

        `None` means IS NULL. `order_by` takes column names, with `-` in front for descending; the id is always
        the last tie-breaker.
        """

    def count(self, kind: type[Any], /, **where: Any) -> int:
        """Count rows, with the same `where` as `find`."""

    def insert(self, row: Any) -> None:
        """Add a row; a second one with the same id raises `StaleVersion`."""

    def update(
        self, kind: type[R], id: str, /, *, expect: Mapping[str, Any] | None = None, **changes: Any
    ) -> R:
        """Change a row and return it; raise `StaleVersion` unless it exists and its columns equal `expect`."""

    def delete(self, kind: type[Any], id: str) -> bool:
        """Remove a row and say whether it was there."""

    def append(self, event: Event) -> None:
        """Record an event; it is numbered when the transaction commits."""

    def events(
        self,
        *,
        after: int = 0,
        limit: int = 1000,
        plan: str | None = None,
        task: str | None = None,
        run: str | None = None,
        types: Sequence[str] = (),
        as_stored: bool = False,
    ) -> list[RecordedEvent]:
        """Return committed events with a number above `after`, in order.

        Old versions are brought up to date, unless `as_stored`: a hash fits only what was written.
        """

    def last_event(self) -> int:
        """Return the highest committed event number, 0 when there is none."""


class Store(Protocol):
    """A home's database."""

    async def transact(self, name: str, work: Callable[[Tx], T]) -> T:
        """Run `work` in one writing transaction, named for failpoints and tracing.

        It may be run again after a conflict, so it must have no effect but through its `Tx`.
        """

    async def read(self, work: Callable[[Tx], T]) -> T:
        """Run `work` in one reading transaction."""

    async def changed(self, timeout: float, *, ignoring: Collection[str] = ()) -> bool:
        """Wait until some process committed something, at most `timeout` seconds; say whether it did.

        Transactions of this process with a name in `ignoring` do not count.
        """

    async def close(self) -> None:
        """Let go of connections and sockets."""


# --- dispatch --------------------------------------------------------------------------------------

Execute = Callable[[Leg], Awaitable[None]]
"""Runs one leg to its end; idempotent, because an engine may call it again."""


class Engine(Protocol):
    """Decides where a leg runs, and sees to it that it does."""

    async def launch(self, execute: Execute, *, worker_id: str, slots: int) -> None:
        """Begin taking legs for this worker."""

    async def start(self, leg: Leg) -> None:
        """See to it that the leg runs once on some worker; a second call with the same leg does nothing."""

    async def cancel(self, leg: Leg) -> None:
        """Stop driving the leg here or wherever it runs; its agent lives on until the rows say otherwise."""

    async def in_flight(self, owners: Sequence[str] | None = None) -> list[str]:
        """Return the ids of legs that are waiting or running, all or those owned by these workers."""

    async def owners(self) -> list[str]:
        """Return the workers that have legs; read the leases after this, so that one without is dead and not new."""

    async def recover(self, owners: Sequence[str]) -> list[str]:
        """Make legs of dead workers run again elsewhere; return their ids."""

    async def close(self) -> None:
        """Stop taking legs and drop those running in this process."""


# --- processes -------------------------------------------------------------------------------------


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What can be seen of a run from outside."""

    state: Literal["absent", "alive", "exited", "lost"]
    """`lost`: it was started, but there is neither a live keeper nor an exit file."""
    exit: Exit | None = None
    pid: int | None = None
    last_sign_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputLine:
    """One line of a run's output."""

    offset: int
    """Position right after this line: give it to `follow` to go on from here."""
    stream: Literal["out", "err"]
    text: str


class Keepers(Protocol):
    """Starts processes that outlive us, and finds them again."""

    async def start(self, spec: RunSpec) -> None:
        """Start a keeper unless there is a live one or an exit file already."""

    def look(self, directory: Path) -> Sighting:
        """Say what can be seen of a run now."""

    def follow(self, directory: Path, offset: int = 0) -> AsyncIterator[OutputLine]:
        """Yield complete output lines from `offset`, waiting for more, until the run has ended."""

    async def wait(self, directory: Path) -> Exit:
        """Wait for the end of the run."""

    async def write(self, directory: Path, n: int, data: str, *, close: bool = False) -> None:
        """Write to the process's stdin; the same number twice writes once."""

    async def end(self, directory: Path, *, polite: bool = True) -> Exit:
        """End the whole process tree, politely first, and return how it ended."""

    async def sweep(self, run_id: str) -> int:
        """Kill every process that carries this run's marker; return how many there were."""

    def close(self) -> None:
        """Let go of what is kept only to start the next process sooner; what was started goes on."""


# --- agents ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRequest:
    """What an agent is asked to do."""

    prompt: str
    workspace: Path
    run_directory: Path
    model: str | None = None
    permission_mode: str = "edit"
    session_ref: str | None = None
    """A conversation of the agent's own to go on with."""
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """How to start the agent's process."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables that the adapter sets."""
    inherit: tuple[str, ...] = ()
    """Names of variables that the agent needs from the user's environment."""
    home: tuple[HomePath, ...] = ()
    """What the agent needs of the user's HOME, so that it is never hidden from it."""
    stdin: Literal["null", "pipe"] = "null"
    stdin_data: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files to write into the run directory first, by name (for example the prompt)."""
    done_pattern: str | None = None
    interrupt: str | None = None
    session_ref: str | None = None


AgentEventKind = Literal[
    "Started",
    "Text",
    "ToolStart",
    "ToolEnd",
    "FileChange",
    "Retry",
    "RateLimit",
    "Usage",
    "Error",
    "Finished",
    "Raw",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEvent:
    """One normalised thing that an agent said or did."""

    kind: AgentEventKind
    text: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResult:
    """What an agent's run came to. `claimed` is only its word; nothing is done because of it."""

    claimed: bool
    summary: str = ""
    failure: Failure | None = None
    """None exactly when `claimed`."""
    detail: str = ""
    retry_at: datetime | None = None
    """When the service said that it may be asked again."""
    usage: Usage | None = None
    cost_micros: int | None = None
    session_ref: str | None = None
    model: str | None = None
    version: str | None = None


State = Any
"""An adapter's own frozen state; opaque to everyone else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """The effect of one output line."""

    state: State
    events: tuple[AgentEvent, ...] = ()
    writes: tuple[str, ...] = ()


class Agent(Protocol):
    """A pure codec for one kind of agent CLI: no process, no file, no clock."""

    name: str
    capabilities: frozenset[str]
    """Of: resume, interrupt, cost, reset_time, permissions, schema, budget."""

    def invocation(self, request: AgentRequest) -> Invocation:
        """Say how to start it."""

    def initial(self, *, session_cost_micros: int = 0) -> State:
        """Return the state before the first line."""

    def fold(self, state: State, line: OutputLine) -> Folded:
        """Take in one line of output. Never raises: what is not understood becomes a `Raw` event."""

    def result(self, state: State, exit: Exit) -> AgentResult:
        """Judge the run from everything folded and how the process ended."""

    def probe(self) -> tuple[str, ...]:
        """Return the command that prints the program's version."""


# --- git -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """Where a plan starts."""

    ref: str
    sha: str
    dirty: tuple[str, ...] = ()
    """Changed paths in the user's checkout: named, not included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """An attempt's work, committed and pinned by the harness."""

    sha: str
    tree: str
    changed: tuple[str, ...]
    """Paths that differ from the attempt's base."""
    insertions: int = 0
    deletions: int = 0
    agent_sha: str | None = None
    """Tip of the commits that the agent made itself, if any; pinned too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Tip of the plan branch merged with an attempt: the tree that is gated and that lands."""

    parent: str
    sha: str
    tree: str
    empty: bool
    """The merge changes nothing against the tip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tripwire:
    """A fingerprint of the user's own checkout."""

    head: str
    refs: Mapping[str, str]
    status: Mapping[str, str]
    """Changed and untracked paths with a hash of their content."""
    config: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trailers:
    """Who a commit belongs to."""

    plan: str
    task: str
    attempt: str
    run: str


class Repository(Protocol):
    """All git work on one project. Every method is idempotent: called again after a crash it finds its own work."""

    async def base(self, ref: str | None = None) -> Base:
        """Resolve where a plan starts; raise `NotARepository` with what to do."""

    async def ensure_branch(self, branch: str, sha: str) -> str:
        """Create the plan branch at `sha` unless it exists; return its tip."""

    async def tip(self, branch: str) -> str:
        """Return the tip of a branch of ours."""

    async def make_workspace(
        self, path: Path, sha: str, *, copy_files: Sequence[str] = (), marker: str = ""
    ) -> None:
        """Make a private clone at `sha` with no hooks and no way back; an unfinished one is made anew."""

    def has_workspace(self, path: Path) -> bool:
        """Say whether there is a workspace, or what is left of one."""

    async def snapshot(
        self, path: Path, *, base_sha: str, ref: str, subject: str, trailers: Trailers, at: datetime
    ) -> Snapshot:
        """Commit whatever the workspace holds with a git dir and index of our own, and pin it at `ref`."""

    async def candidate(
        self, *, tip: str, attempt_sha: str, subject: str, trailers: Trailers, at: datetime
    ) -> Candidate:
        """Merge in memory; raise `MergeConflict`."""

    async def checkout(self, path: Path, sha: str, *, copy_files: Sequence[str] = ()) -> None:
        """Make a private tree of `sha` to run gates in."""

    async def landed(self, branch_tip: str, *, since: str, task_id: str) -> str | None:
        """Find the landing commit of a task on the first-parent line since `since`."""

    async def advance(self, branch: str, *, new: str, old: str) -> bool:
        """Compare-and-swap the branch; False when it had moved."""

    async def is_ancestor(self, sha: str, of: str) -> bool:
        """Say whether `sha` is contained in `of`."""

    async def proven(self, sha: str, target: str) -> bool:
        """Say whether the work of `sha` is in `target`: as its ancestor, or change by change after a squash."""

    async def drop_quarantine(self, older_than: datetime) -> Sequence[Any]:
        """Let go of what was put in quarantine before a moment, and return it."""

    async def diff_hash(self, old: str, new: str) -> str:
        """Return the SHA-256 of the full binary diff between two commits."""

    async def tree_of(self, sha: str) -> str:
        """Return the tree id of a commit."""

    async def tripwire(self) -> Tripwire:
        """Take a fingerprint of the user's checkout."""

    def stray(self, before: Tripwire, after: Tripwire) -> tuple[str, ...]:
        """Say in plain words what differs between two fingerprints."""

    async def stray_patch(self, dest: Path) -> bool:
        """Save the checkout's uncommitted differences as a patch; False when there are none."""

    async def remove_workspace(self, path: Path) -> None:
        """Delete a workspace or gate tree of ours; refuses any path that is not one."""

    async def file_at(self, sha: str, path: str) -> str | None:
        """Return a file's text at a commit."""


# --- gates -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRequest:
    """One gate run on one tree."""

    run_id: str
    directory: Path
    tree: Path
    commands: tuple[GateCommand, ...]
    env: Mapping[str, str]
    secrets: tuple[str, ...] = ()
    """Exact values to redact from the output, besides well-known shapes."""
    home: HomeView | None = None


class Gate(Protocol):
    """Runs commands on a tree and says what was found."""

    def spec(self, request: GateRequest) -> RunSpec:
        """Say how to run the commands under a keeper."""

    def verdict(self, request: GateRequest, exit: Exit) -> Verdict:
        """Compute the verdict outside the sandbox, from what the keeper recorded."""


# --- work sources ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTask:
    """A task as a source gives it."""

    key: str
    title: str
    description: str = ""
    criteria: tuple[str, ...] = ()
    acceptance: tuple[GateCommand, ...] = ()
    depends_on: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    priority: int = 50
    max_attempts: int | None = None
    agent: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWork:
    """A plan as a source gives it."""

    title: str
    tasks: tuple[PlannedTask, ...]
    gates: tuple[GateCommand, ...] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    sha256: str
    """Of the source's bytes."""


class Source(Protocol):
    """Reads work in one format."""

    kind: str

    def read(self, path: Path) -> PlannedWork:
        """Return the work, or raise `BadPlan` with located problems."""


# --- being the worker of a home ----------------------------------------------------------------------


class Membership(Protocol):
    """Who may work in a home at the same time."""

    exclusive: bool
    """True: one worker at a time, known by a held lock. False: many, known by their leases."""

    def acquire(self, note: Mapping[str, Any]) -> bool:
        """Become a worker, leaving a note for others; False when one is there already."""

    def holder(self) -> Mapping[str, Any] | None:
        """Return the note of the live holder, None when nobody holds it."""

    def release(self) -> None:
        """Let others in."""


# --- the project's own state directory -----------------------------------------------------------------


class StateFiles(Protocol):
    """Files in a project's `.loopwright/`: an export of the rows, never read back as the truth."""

    def put(self, project: Path, kind: str, id: str, document: Mapping[str, Any]) -> Path:
        """Write one document atomically; an unsafe id is refused."""

    def append_events(self, project: Path, events: Sequence[RecordedEvent]) -> None:
        """Append events to the day's file; those that are there already are not written again."""
