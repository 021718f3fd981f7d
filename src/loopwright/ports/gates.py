"""Judging a tree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from loopwright.core.values.containment import HomeView
from loopwright.core.values.findings import Verdict, Witnessed
from loopwright.core.values.policy import ConfiguredRunner, GateCommand
from loopwright.ports.git import Tracked
from loopwright.ports.processes import Exit, RunSpec


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
    wrapper: tuple[str, ...] = ()
    """Put before each command, so that a sandbox contains it. Who runs and records them stays outside."""
    runners: tuple[ConfiguredRunner, ...] = ()
    """Test runners that are not known, and how they are watched."""
    tracked: Tracked | None = None
    """How to find out what the commands change in the tree; None if that is not needed."""
    laid: tuple[str, ...] = ()
    """Files that were laid over the tree, from its top: there it is not what git has."""
    environment: str = ""
    """A hash of the plan's environment: verdicts found in another one are not reused."""
    may_share: frozenset[str] = frozenset()
    """Commands that need not run if a wider one runs all their tests."""
    only: frozenset[str] = frozenset()
    """Run no other tests than these, in test runners that can be told so; all when there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownBy:
    """A command that need not run, because a wider one ran all its tests on the same tree."""

    gate: GateCommand
    tests: frozenset[str]


class Gate(Protocol):
    """Runs commands on a tree and says what was found."""

    def spec(self, request: GateRequest) -> RunSpec:
        """Return how to run the commands under a keeper."""

    def verdict(self, request: GateRequest, exit: Exit) -> Verdict:
        """Compute the verdict outside the sandbox, from what the keeper recorded."""

    def witnessed(self, directory: Path, count: int) -> Sequence[Witnessed | None] | None:
        """Return what was seen inside the test runners of a run's commands; None when its files are gone."""

    def reuse(
        self, request: GateRequest, source: Path, shown: Mapping[str, ShownBy], at: datetime, /
    ) -> bool:
        """Record the commands as ended now with the results of an earlier run; False when it cannot answer for them."""
