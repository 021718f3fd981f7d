"""What the witness saw inside a test runner, and what a baseline had, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Witnessed:
    """The test runners that one command started, taken together."""

    passed: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()
    xfailed: frozenset[str] = frozenset()
    """Those of the skipped that ran, and were expected to fail."""
    deselected: frozenset[str] = frozenset()
    unloaded: frozenset[str] = frozenset()
    """Those of the failed that are files or packages that could not be loaded: none of their tests ran."""
    problems: tuple[str, ...] = ()
    """Why its word does not count: a canary that ended wrong, an end that is missing."""
    reported: bool = False
    """Whether this is only what the runner's own report or output says: it was not watched."""
    tried: bool = False
    """Whether such a runner was tried with canaries all the same."""

    @property
    def tests(self) -> frozenset[str]:
        """Every test that was seen, however it ended."""
        return self.passed | self.failed | self.skipped | self.deselected

    @property
    def none_ran(self) -> bool:
        """Whether files could not be loaded and no test ran: such a run says nothing about the work."""
        return bool(self.unloaded) and not self.passed and self.failed <= self.unloaded


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What was seen on the tree that the work started from, by command."""

    seen: Mapping[str, Witnessed] = field(default_factory=dict)
    exempt: tuple[str, ...] = ()
    """Files that the task may change: their tests need not be there any more."""
    stuck: frozenset[str] = frozenset()
    """Commands that did not come to their end there."""
    red: Mapping[str, "Red"] = field(default_factory=dict)
    """Commands that failed there and in which no tests could be seen, by what they are."""
    commit: str = ""
    """The commit that all this was found on."""
    changed: frozenset[str] = frozenset()
    """Files of the tree that commands wrote there while they ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Red:
    """How a command failed of which only its exit code and its own lines are known."""

    exit_code: int | None
    checks: frozenset[str]
    """What spoke against it, as seen from the command."""
