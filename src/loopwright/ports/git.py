"""The user's repository."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from loopwright.core.integrity.gate_reach import Line
from loopwright.core.values.patches import Patch
from loopwright.ports.ends import Ends


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
    refused: str = ""
    """What in the agent's git dir leads out of it, in words: its own commits were not read then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracked:
    """How to ask git about a private tree: by our own git dir and index, which nothing in the tree can write."""

    top: Path
    git: tuple[str, ...]
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What stands at a path of a tree."""

    mode: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One path that differs between two trees."""

    path: str
    """Relative to the top of the repository."""
    before: Entry | None
    after: Entry | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Tip of the plan branch merged with an attempt: the tree that is gated and that lands."""

    parent: str
    sha: str
    tree: str
    empty: bool
    """The merge changes nothing against the tip."""
    changes: tuple[FileChange, ...] = ()
    """What the attempt changes against the tip."""
    judged_parent: str | None = None
    """What of the tip's line was gated last, where the tip itself is the harness's own bookkeeping."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One commit on the first-parent line of a plan branch."""

    sha: str
    tree: str
    parent: str = ""
    """The one before it on that line; empty for a commit that began a history."""
    subject: str = ""
    tasks: tuple[str, ...] = ()
    """The tasks that it lands, by its trailers; at most one, unless a person wrote it."""
    command: str = ""
    """The person's command that it carries out; empty for any other commit."""
    takes_out: tuple[str, ...] = ()
    """The landings that it takes back."""
    books: bool = False
    """Whether it is the harness's own bookkeeping: it changes nothing but the files of the work source."""
    receipt: str = ""
    """What it carries of the receipt's hash."""
    attempt: str = ""
    """The attempt whose work it lands, by its trailer."""
    run: str = ""
    """The run that did that work, by its trailer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a plan branch is, and what others did to it since Loopwright last moved it."""

    tip: str
    """Empty for one that is gone, where nothing beside it tells where it was."""
    change: Literal["", "moved", "restored", "unnoted"] = ""
    """`moved`: it has commits since then. `restored`: it was deleted or moved back, and is as it was. `unnoted`: what
    we noted of it is gone, so whether it is as we left it, only the rows can tell."""
    was: str | None = None
    """Where we knew it to be, if it has moved; where it was found, if it was restored; None when it was gone."""
    commits: tuple[Step, ...] = ()
    """Those, the newest first: perhaps our own, if we were killed before we took note of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedFile:
    """One file with what two sides did to it."""

    content: bytes | None
    """None where both changed the same lines, or lines beside each other."""
    line: int = 0
    """The first of those lines, as the second side numbers them."""


HELD_OUT: Final = "held_out"
"""The folder of a home with the files of held-out checks, by their hash."""
PATCHES: Final = "patches"
"""The folder of a home for diffs that must not be lost."""
FINGERPRINT: Final = "checkout.json"
"""The file in a run's folder that keeps the fingerprint which was taken before it began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tripwire:
    """A fingerprint of the user's own checkout."""

    head: str
    refs: Mapping[str, str]
    status: Mapping[str, str]
    """Changed and untracked paths with a hash of their content."""
    config: Mapping[str, str]
    """Configuration files and hooks of the repository with a hash of their content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trailers:
    """Who a commit belongs to."""

    plan: str
    task: str
    attempt: str
    run: str
    receipt: str = ""
    """The hash of what a receipt will say of the work; only a landing carries it."""


class Repository(Protocol):
    """All git work on one project. Every method is idempotent: called again after a crash it finds its own work."""

    async def base(self, ref: str | None = None) -> Base:
        """Resolve where a plan starts; raise `NotARepository` with what to do."""

    async def ensure_branch(self, branch: str, sha: str) -> str:
        """Create the plan branch at `sha` unless it exists; return its tip."""

    async def tip(self, branch: str) -> str:
        """Return the tip of a plan branch."""

    async def standing(self, branch: str) -> Standing:
        """Return what others did to a plan branch, and put it back where it lost something.

        Raise `BranchRewritten` when a person has to decide.
        """

    async def accept(self, branch: str, *, tip: str, was: str) -> None:
        """Accept the commits that others put on a plan branch: from here on Loopwright left it there."""

    async def put_back(self, branch: str, *, to: str, found: str, keep: str) -> bool:
        """Take a plan branch back to where Loopwright left it, and pin what it was found at as `keep`.

        False when it is not there any more, or is checked out.
        """

    async def is_pinned(self, ref: str) -> bool:
        """Return whether a pin of this name exists."""

    async def pinned(self, plan_id: str) -> Mapping[str, str]:
        """Return the commits that keep the work of a plan's attempts, by the names of their pins."""

    async def note(self, branch: str, *, among: Sequence[str]) -> None:
        """Note again where Loopwright left a plan branch: at the newest of these commits of its line."""

    async def make_workspace(
        self, path: Path, sha: str, *, copy_files: Sequence[str] = (), marker: str = ""
    ) -> bool:
        """Make a private clone at `sha` with no hooks and no way back; an unfinished one is made again.

        One with the same marker is brought to `sha`. Return whether there was something to do.
        """

    def has_workspace(self, path: Path) -> bool:
        """Return whether a workspace, or a remainder of one, exists."""

    async def snapshot(
        self, path: Path, *, base_sha: str, ref: str, subject: str, trailers: Trailers, at: datetime
    ) -> Snapshot:
        """Commit whatever the workspace holds with our own git dir and index, and pin it at `ref`.

        Raise `Unrecordable` for what git cannot take in.
        """

    async def archive(self, path: Path, dest: Path) -> None:
        """Put what a workspace holds beyond its base into a compressed tar file, whole or not at all."""

    async def try_keeping(self, *, near: str) -> None:
        """Keep a commit of our own for a moment, as work is kept: raise what would hinder that for any work."""

    async def candidate(
        self,
        *,
        tip: str,
        attempt_sha: str,
        subject: str,
        trailers: Trailers,
        at: datetime,
        leave: Sequence[str] = (),
    ) -> Candidate:
        """Merge in memory, these files left as they are on the tip; raise `MergeConflict`."""

    async def files_at(self, sha: str, paths: Sequence[str]) -> Mapping[str, bytes]:
        """Return the content at these paths of a commit; what is not a file is left out."""

    async def booked(
        self,
        parent: str,
        files: Mapping[str, bytes],
        *,
        subject: str,
        plan_id: str,
        at: datetime,
        copies: Mapping[str, bytes],
    ) -> str:
        """Build a commit of the harness's own on top of another: the source's files, and what it is about.

        `copies` are the files of a person's own copy whose changes are taken in there, noted for `copies`.
        """

    async def copies(self, sha: str, *, since: str) -> Mapping[str, bytes]:
        """Return the files of a person's own copy as they were when a commit's line last took something in of them."""

    async def merged_file(self, base: bytes, ours: bytes, theirs: bytes) -> MergedFile:
        """Return a file with what two sides did to it, or where that cannot be had."""

    async def judged(self, sha: str) -> str:
        """Return the commit below those of the bookkeeping: the one whose tree a gate has seen."""

    async def laid_over(
        self, candidate: Candidate, *, restore: Sequence[FileChange], texts: Mapping[str, str]
    ) -> Candidate:
        """Return the candidate with some changes taken back and some files replaced; it lands nowhere."""

    async def contents(self, ids: Sequence[str]) -> list[str]:
        """Return the texts of files by the ids of their entries."""

    async def listed(self, sha: str) -> Mapping[str, Entry]:
        """Return everything in the tree of a commit, by its path."""

    async def mentions(self, sha: str, words: Sequence[str], *, limit: int) -> Sequence[Line] | None:
        """Return the lines of a commit in which one of these words stands; None when they are more than the limit."""

    async def texts(self, ids: Sequence[str], *, limit: int) -> Mapping[str, str]:
        """Return the texts of files by the ids of their entries, the first of them: what goes into so many bytes."""

    async def checkout(self, path: Path, sha: str, *, copy_files: Sequence[str] = ()) -> Tracked | None:
        """Make a private tree of `sha` to run gates in; say how to ask what git has in it, if that can be asked."""

    async def landed(
        self, branch_tip: str, *, since: str, task_id: str, among: Collection[str], reverts: Collection[str]
    ) -> str | None:
        """Find the landing commit of a task on the first-parent line since `since` that was not taken out again.

        It is one of `among`, and only `reverts` take out: whatever else carries such trailers was written by others
        else.
        """

    async def steps(self, tip: str, *, since: str, most: int | None = None) -> tuple[Step, ...]:
        """Return the commits of the first-parent line after `since`, the newest first, at most so many."""

    async def without(
        self, tip: str, *, landings: Sequence[str], subject: str, plan_id: str, command_id: str, at: datetime
    ) -> Candidate:
        """Build the commit that takes landings, the newest first, back out of the tip; raise `MergeConflict`."""

    async def changed(self, old: str, new: str) -> tuple[str, ...]:
        """Return the paths that differ between two commits, relative to the top of the repository."""

    async def difference(self, old: str, new: str, *, paths: Sequence[str] = (), limit: int) -> str:
        """Return what changed between two commits as text that a person reads, at these paths or at all; cut short."""

    async def advance(self, branch: str, *, new: str, old: str) -> bool:
        """Compare-and-swap the branch; False when it had moved."""

    async def damaged(self, *, since: str, tips: Sequence[str]) -> str | None:
        """Return what is wrong with an object that came after `since` and is part of a tip; None when all are whole."""

    async def absent(self, shas: Sequence[str]) -> tuple[str, ...]:
        """Return the commits among these that are not in the repository."""

    async def is_ancestor(self, sha: str, of: str) -> bool:
        """Return whether `sha` is contained in `of`."""

    async def proven(self, sha: str, target: str) -> bool:
        """Return whether the work of `sha` is in `target`: as its ancestor, or change by change after a squash."""

    async def ends(self) -> Ends:
        """Return what brings a plan's work into a branch of the user's."""

    async def drop_quarantine(self, older_than: datetime) -> Sequence[Any]:
        """Let go of what was put in quarantine before a moment, and return it."""

    async def diff_hashes(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        """Return the SHA-256 of the full binary diff between the two commits of each pair."""

    async def patch(self, old: str, new: str) -> Patch:
        """Return what differs between two commits, as text and line by line."""

    async def tree_of(self, sha: str) -> str:
        """Return the tree id of a commit."""

    async def tripwire(self) -> Tripwire:
        """Take a fingerprint of the user's checkout.

        Raise `RepositoryGone` if the repository does not exist any more.
        """

    def stray(self, before: Tripwire, after: Tripwire) -> tuple[str, ...]:
        """Return in plain words what differs between two fingerprints."""

    async def repin(self, plan_id: str, *, near: str) -> tuple[str, ...]:
        """Put back the pins of a plan that were deleted or moved; return each of them in plain words.

        Where there are so many that it takes long, it is done only now and then. `near` is a commit that all of them
        may build on.
        """

    async def stray_patch(self, dest: Path, before: Tripwire, after: Tripwire) -> bool:
        """Save the files that changed between two fingerprints as a patch; False when there are none."""

    async def remove_workspace(self, path: Path) -> None:
        """Delete a workspace or gate tree of Loopwright; refuse any other path."""

    async def file_at(self, sha: str, path: str) -> str | None:
        """Return a file's text at a commit."""
