"""What becomes of a plan's branch: into the user's own branch, or to a forge such as GitHub or GitLab."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

# Places such as GitHub and GitLab that review and merge branches.


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A pull request, or merge request, that exists."""

    n: int
    url: str
    created: bool
    """False when it was there before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A pull request that should exist: at most one per branch."""

    branch: str
    base: str
    title: str
    body: str


class Forge(Protocol):
    """One repository on a forge."""

    async def request(self, wanted: Wanted) -> Request:
        """Find the open request of this branch into its base, or create it; called again it finds its own.

        Raise `Refused` with what to do, or `Busy` when it should be asked again later.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """The commit with which a task landed, to be built again on another base."""

    sha: str
    parent: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """Commits that wait to become part of a branch."""

    sha: str
    tree: str


class Ends(Protocol):
    """The user's own branches of one repository. Every method is idempotent."""

    async def base_tip(self, ref: str) -> str | None:
        """Return where a branch of the user's stands; None when `ref` names no branch."""

    async def joined(self, target: str, source: str) -> str:
        """Return the tree of both together; raise `MergeConflict`."""

    async def commit(
        self, tree: str, *, parents: Sequence[str], message: str, at: datetime, sign: bool = False
    ) -> str:
        """Write a commit into the user's repository, signed with the user's own key if asked; no ref moves."""

    async def can_sign(self) -> bool:
        """Return whether git knows a signing key of the user."""

    async def picked(self, target: str, picks: Sequence[Pick], *, at: datetime, sign: bool = False) -> Built:
        """Build the changes of some commits on another base, one after the other; raise `MergeConflict`."""

    async def text(self, sha: str) -> str:
        """Return a commit as git has it: its headers and its message."""

    async def arrived(self, sha: str, ref: str, *, since: str, key: str) -> str | None:
        """Return the commit on a branch that is `sha` or carries the trailer with this key; None when there is none."""

    async def move(self, ref: str, *, new: str, old: str, leave: Collection[str] = ()) -> bool:
        """Move a branch of the user's, with the checkout that has it; False when it was not at `old`.

        `leave` are files that may have changes there: they are the caller's.
        Raise `Refused` when that checkout has changes of the user's, or files that would be overwritten.
        """

    async def keep(self, branch: str, sha: str) -> None:
        """Name a commit by one of Loopwright's branches, so that it is not lost."""

    async def remote(self, name: str) -> str | None:
        """Return the address that a git remote pushes to; None when there is no such remote."""

    async def push(self, remote: str, sha: str, branch: str) -> None:
        """Bring a commit to a branch of a remote; raise `Refused` with what to do when that is not possible."""
