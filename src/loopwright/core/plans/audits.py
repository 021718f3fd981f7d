"""What can be proven about an item that its source marks as complete."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

COMMIT: Final = re.compile(r"[0-9a-f]{4,64}")
"""What a commit id looks like; anything else in a source is not one."""


class Proof(StrEnum):
    """How well a claim is proven."""

    PROVEN = "proven"
    """Its checks pass now, and its commit is part of the branch."""
    PASSES = "passes"
    """Its checks pass now, but its commit is unknown."""
    CLAIMED = "claimed"
    """Nothing checks it: there is only the mark."""
    UNMERGED = "unmerged"
    """Its commit is on a branch that is not merged yet."""
    LOST = "lost"
    """Its commit does not exist, or is not part of the branch."""
    FAILING = "failing"
    """Its checks do not pass now."""
    UNKNOWN = "unknown"
    """Its checks did not run, or could not."""


BAD: Final = (Proof.UNMERGED, Proof.LOST, Proof.FAILING)
"""What contradicts the mark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """The state of the commit that an item names."""

    text: str
    sha: str | None = None
    """The full id of the commit; None if there is none."""
    contained: bool = False
    """Whether the checked-out branch contains it, or the same changes as a squash."""
    branch: str = ""
    """Another branch that contains it, if the checked-out one does not."""
    recorded: bool = False
    """Whether the source names no commit, and this one comes from Loopwright's record."""

    @property
    def problem(self) -> str:
        """Return what is wrong with it; empty if nothing is."""
        if not COMMIT.fullmatch(self.text):
            return f"{self.text!r} is not a commit id"
        if self.sha is None:
            return f"commit {self.text} does not exist"
        if self.contained:
            return ""
        if self.branch:
            return f"the commit {self.text} is on {self.branch}, which is not merged"
        return f"the commit {self.text} is not part of what is checked out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The result of running an item's checks."""

    passed: bool | None
    """None if they could not run."""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """One finished item, and how well it is proven."""

    key: str
    title: str
    proof: Proof
    reason: str = ""
    commit: str | None = None
    line: int | None = None


def proof_of(named: Named | None, checks: int, checked: Checked | None) -> tuple[Proof, str]:
    """Return how well a claim is proven, and why; contradictions come first."""
    if named is not None and named.branch and not named.contained:
        # Checks can only pass if the work exists.
        return Proof.UNMERGED, named.problem
    if checked is not None and checked.passed is False:
        return Proof.FAILING, checked.reason
    if named is not None and named.problem:
        return Proof.LOST, named.problem
    if not checks:
        landed = f"; its commit {named.text[:12]} is there" if named is not None else ""
        return Proof.CLAIMED, f"it has no check{landed}"
    if checked is None or checked.passed is None:
        return Proof.UNKNOWN, checked.reason if checked is not None else "its checks were not run"
    return (Proof.PROVEN, "") if named is not None else (Proof.PASSES, "its commit is not known")
