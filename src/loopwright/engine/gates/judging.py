"""The question to a gate: which tree, which commands, and what is known about the work in it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from loopwright.core.rows.model import Attempt, Plan, Project, Role
from loopwright.core.values.policy import GateCommand, HeldFile
from loopwright.ports import Tx

COMPLETE: Final = (Role.VERIFY, Role.EVALUATION)
"""The roles of gate:all: they belong to a plan, not to an attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """One question: does this tree pass these commands?"""

    project: Project
    plan: Plan
    attempt: Attempt | None
    role: Role
    sha: str
    tree: str
    commands: tuple[GateCommand, ...]
    still_mine: Callable[[Tx], None]
    """Raises if another leg took over from the one that asks."""
    before: str | None = None
    """The commit that the work started from: all its tests must still exist."""
    exempt: tuple[str, ...] = ()
    """Files whose tests may be missing."""
    rewritten: tuple[str, ...] = ()
    """Files whose tests the work changed: their earlier passes say nothing."""
    own: tuple[GateCommand, ...] = ()
    """Commands that the work has to make pass: their earlier failures excuse nothing."""
    may_share: tuple[GateCommand, ...] = ()
    """Commands that need not run if a wider one runs all their tests."""
    may_be_empty: tuple[GateCommand, ...] = ()
    """Those of the work's own commands whose tests it may have added: without these files they prove nothing."""
    brought: tuple[str, ...] = ()
    """Files that the work added or changed: tests in them that do not run are named."""
    unseen: bool = False
    """Whether the work's author must not learn about these checks."""
    landed: bool = False
    """Whether the tree is that of the base or of a landed commit: such a run fills the caches of gates."""
    files: tuple[HeldFile, ...] = ()
    """Files that are put into the tree for them."""
