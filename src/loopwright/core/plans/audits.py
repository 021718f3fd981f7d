"""Marked complete, but was it ever done? What can be said about an item of a source that says it is finished."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

COMMIT: Final = re.compile(r"[0-9a-f]{4,64}")
"""What a commit's id looks like; anything else that a source names is none."""


class Proof(StrEnum):
    """How well a claim stands."""

    PROVEN = "proven"
    """Its checks pass now, and the commit that it names is part of the branch."""
    PASSES = "passes"
    """Its checks pass now, but its commit is unknown."""
    CLAIMED = "claimed"
    """Nothing checks it: there is only the mark."""
    UNMERGED = "unmerged"
    """The commit that it names is on a branch that is not merged yet."""
    LOST = "lost"
    """It names a commit that is not there, or that is not part of the branch."""
    FAILING = "failing"
    """Its checks do not pass now."""
    UNKNOWN = "unknown"
    """Its checks were not run, or could not be."""


BAD: Final = (Proof.UNMERGED, Proof.LOST, Proof.FAILING)
"""What contradicts the mark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What became of the commit that an item names."""

    text: str
    sha: str | None = None
    """The commit that it means; None when there is no such one."""
    contained: bool = False
    """Whether what is checked out has it, or the same changes as a squash."""
    branch: str = ""
    """Another branch that has it, where what is checked out has not."""
    recorded: bool = False
    """Whether the source itself names none, and this is the commit on record."""

    @property
    def problem(self) -> str:
        """Return what is wrong with it; empty when nothing is."""
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
    """What running an item's checks gave."""

    passed: bool | None
    """None when they could not be run."""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """One finished item, and how well that stands."""

    key: str
    title: str
    proof: Proof
    reason: str = ""
    commit: str | None = None
    line: int | None = None


def proof_of(named: Named | None, checks: int, checked: Checked | None) -> tuple[Proof, str]:
    """Return how well a claim stands, and why; what contradicts it comes first."""
    if named is not None and named.branch and not named.contained:
        # Checks can only pass once its work is there.
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
