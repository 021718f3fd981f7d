"""Everything the engine works with, as one value that `app` builds."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from loopwright.core.policy.monitor import Thresholds
from loopwright.core.policy.share import SlotLimits
from loopwright.core.replies.discoveries import Noticed
from loopwright.core.replies.questions import Asking
from loopwright.core.rows.model import Plan, Project
from loopwright.core.values.accounts import Accounts
from loopwright.core.values.containment import HomeView
from loopwright.core.values.errors import Refused
from loopwright.engine.memory.worker_facts import Ledger, OwnWrites, Room
from loopwright.ports import (
    HELD_OUT,
    PATCHES,
    Agent,
    Clock,
    DependencyCache,
    Engine,
    Files,
    Forge,
    Gate,
    Ids,
    Invocation,
    Keepers,
    LoopTools,
    Membership,
    NoSandbox,
    Repository,
    Sandbox,
    Source,
    Store,
    ToolServer,
)

if TYPE_CHECKING:
    from loopwright.engine.memory.slots import GateTurns, Underway


@dataclass(frozen=True, slots=True, kw_only=True)
class HomePaths:
    """The paths of a home's files. Only checked ids become parts of a path."""

    root: Path

    def run(self, run_id: str) -> Path:
        """Return the directory of one run."""
        return self.root / "runs" / run_id

    def workspace(self, attempt_id: str) -> Path:
        """Return the workspace of one attempt."""
        return self.root / "workspaces" / attempt_id

    def tree(self, run_id: str) -> Path:
        """Return the private tree of one gate run or one review."""
        return self.root / "trees" / run_id

    def user(self, subject: str) -> Path:
        """Return the HOME for the runs of one attempt, or for one gate run."""
        return self.root / "users" / subject

    def held_out(self) -> Path:
        """Return the folder with the files of held-out checks, by their hash."""
        return self.root / HELD_OUT

    def cache(self) -> Path:
        """Return the folder of shared dependency caches."""
        return self.root / "cache"

    def gate_cache(self, checkout: Path) -> Path:
        """Return the folder of the compiler caches for gates of one checkout, filled only by runs on landed trees."""
        return self.root / "gate-caches" / sha256(os.fsencode(checkout)).hexdigest()[:16]

    def archive(self, attempt_id: str) -> Path:
        """Return the folder for files of an attempt that git cannot record."""
        return self.root / "archives" / f"{attempt_id}.tar.gz"

    def kept_patches(self) -> Path:
        """Return the folder for diffs that must not be lost."""
        return self.root / PATCHES


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """The identity of this worker."""

    host_id: str
    boot_id: str
    hostname: str
    pid: int
    slots: int
    version: str
    lease_s: float = 15.0
    project_id: str | None = None
    """The only project that it starts work for; None for all of them."""


MakeEnvironment = Callable[[Plan, Invocation | None, Mapping[str, str]], dict[str, str]]
"""Builds a child's complete environment: allow-listed names, the adapter's variables, and the given values."""

MakeView = Callable[[Mapping[str, str], Invocation | None, Path], tuple[dict[str, str], HomeView | None]]
"""Gives a child with this environment its own HOME at a place: returns the changed environment, and the view."""


def the_users_own(
    env: Mapping[str, str],
    invocation: Invocation | None,  # noqa: ARG001 - whatever it needs is there
    place: Path,  # noqa: ARG001
) -> tuple[dict[str, str], None]:
    """Keep the user's own HOME."""
    return dict(env), None


def _no_forge(plan: Plan, address: str) -> Forge:  # noqa: ARG001 - the shape
    raise Refused(
        f"there is no forge for {address}", code="no_forge", hint="this worker was put together without one"
    )


def _nothing_underway() -> "Underway":
    # Not at the top: commands that only read a home are fast because they do not import asyncio.
    from loopwright.engine.memory.slots import Underway

    return Underway()


def _gate_turns() -> "GateTurns":
    # As above: it imports asyncio.
    from loopwright.engine.memory.slots import GateTurns

    return GateTurns()


def no_source(kind: str) -> Source | None:  # noqa: ARG001
    """Know no work source: then no status is written and no edit is followed."""
    return None


def _no_files(folder: Path, files: Files, seen: Files) -> bool:  # noqa: ARG001
    return False


async def _nothing_copied(source: Path, target: Path) -> None:
    """Copy nothing: a world without a disk has no caches."""


async def _nothing_borrowed(project: Project) -> tuple[Path, ...]:  # noqa: ARG001
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The ports of one worker."""

    me: Me
    paths: HomePaths
    store: Store
    clock: Clock
    ids: Ids
    chance: Callable[[], float]
    keepers: Keepers
    repository: Callable[[Project], Repository]
    agent: Callable[[str], Agent]
    gate: Gate
    engine: Engine
    membership: Membership
    environment: MakeEnvironment
    secrets: Callable[[Mapping[str, str], Sequence[str]], tuple[str, ...]]
    """Finds the values in an environment that must never be printed, including those that the user listed."""
    workspace_values: Callable[[Path], Mapping[str, str]]
    """Variables that restrict git to a workspace."""
    may_act: Callable[[], bool]
    """False once this worker's lease has lapsed by its own clock: then it changes nothing outside any more."""
    own_sources: Callable[[Mapping[str, str], Path, Path], Mapping[str, str]] = lambda env, _checkout, _tree: (
        env
    )
    """Returns an environment that loads a workspace's modules instead of those of the checkout."""
    asked: Callable[[Path, Sequence[str]], tuple[Asking, ...]] = lambda _directory, _secrets: ()
    """Reads a run's questions from the tool's file in its directory, without these secrets."""
    discovered: Callable[[Path, Sequence[str]], tuple[Noticed, ...]] = lambda _directory, _secrets: ()
    """Reads a run's discoveries from the tool's file, in the same way."""
    forget_noted: Callable[[Path], None] = lambda _directory: None
    """Removes the tools' files from a run's directory."""
    redact: Callable[[str, Sequence[str]], str] = lambda text, _secrets: text
    """Removes these secrets, and what looks like one, from a text that will be stored."""
    tools: Callable[[Path], Mapping[str, ToolServer]] = lambda _directory: {}
    """Returns the tools of a run, for its directory."""
    loop_tools: Callable[[str, Path], LoopTools | None] = lambda _name, _directory: None
    """Returns the tools for loops of a run, by the file with their token and by the run's directory."""
    home_view: MakeView = the_users_own
    settings_in: Callable[[Path, Sequence[str]], Mapping[str, str | None]] = lambda _folder, _names: {}
    """Reads the files at these places below a folder; None for anything but a plain text file."""
    carry_transcript: Callable[[HomeView, str, Path], None] = lambda _view, _session, _cwd: None
    """Gives the user a copy of a conversation that a run had in a folder."""
    forget_sessions: Callable[[Path], None] = lambda _place: None
    """Removes the conversations of runs that had their HOME at this place."""
    accounts: Accounts = field(default_factory=dict)
    """The accounts of each agent that has more than its usual one, in the order of the settings."""
    sandbox: Callable[[], Sandbox] = NoSandbox
    """Returns the sandbox of agents and gates; called when the first of them starts, because it is tried then."""
    network: str = "on"
    """Who may use the network in a sandbox: `on`, `agents` or `off`."""
    borrowed: Callable[[Project], Awaitable[tuple[Path, ...]]] = _nothing_borrowed
    """Returns the folders outside a workspace that its git reads objects from."""
    forge: Callable[[Plan, str], Forge] = _no_forge
    """Returns the repository on a forge for a remote's address.

    The plan's submitter may lend its token. Raises `Refused` with what to do.
    """
    source: Callable[[str], Source | None] = no_source
    """Returns the reader and writer of a kind of work source; None if this worker does not know it."""
    put_files: Callable[[Path, Files, Files], bool] = _no_files
    """Replaces files in a folder atomically; writes nothing if one of them has changed since it was read."""
    own_writes: OwnWrites = field(default_factory=OwnWrites)
    """The files that were written like that: no agent is blamed for them."""
    ledger: Ledger = field(default_factory=Ledger)
    underway: "Underway" = field(default_factory=_nothing_underway)
    gate_turns: "GateTurns" = field(default_factory=_gate_turns)
    slot_limits: SlotLimits = field(default_factory=SlotLimits)
    """How many agents may run at once, by agent, account and project."""
    served: dict[str, int] = field(default_factory=dict)
    """By plan, the number of the last slot that it got from this worker."""
    look_s: float = 30.0
    """How often the monitor observes."""
    thresholds: Thresholds = field(default_factory=Thresholds)
    """What the monitor reports."""
    room: Room = field(default_factory=Room)
    """The disk space of the home."""
    dependencies: DependencyCache | None = None
    """Cached dependencies; None if every workspace installs its own."""
    caches: bool = True
    """Whether dependency caches are shared among workspaces."""
    copy_folder: Callable[[Path, Path], Awaitable[None]] = _nothing_copied
    """Copies a folder to a new place, if it has any files; raises `OSError` and leaves nothing there if that fails."""
    project_ids: dict[str, str] = field(default_factory=dict)
    """The project of each plan that was asked for: it never changes."""
