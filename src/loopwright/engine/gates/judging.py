"""What a gate is asked: which tree, which commands, and what is known about the work in it."""

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
    """Raises when the leg that asks was taken over."""
    before: str | None = None
    """The commit that the work started from: its tests must all be there still."""
    exempt: tuple[str, ...] = ()
    """Files whose tests need not be."""
    rewritten: tuple[str, ...] = ()
    """Files whose tests the work changed: that they passed before says nothing of them."""
    own: tuple[GateCommand, ...] = ()
    """Those that the work itself is to make pass: that they failed before excuses nothing."""
    may_share: tuple[GateCommand, ...] = ()
    """Those that need not run if a wider one runs all their tests."""
    may_be_empty: tuple[GateCommand, ...] = ()
    """Those of the work's own whose tests it may have added: without these files they have nothing to say."""
    brought: tuple[str, ...] = ()
    """Files that the work brought along or changed: tests in them that do not run are named."""
    unseen: bool = False
    """Whether these are checks that the work's author is not to learn about."""
    landed: bool = False
    """Whether the tree is that of the base or of a landed commit: such a run fills the caches that gates read."""
    files: tuple[HeldFile, ...] = ()
    """Laid over the tree for them."""
