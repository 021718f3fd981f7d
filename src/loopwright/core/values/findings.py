"""What a gate found on one tree, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from loopwright.core.values.shapes import Count


class CheckStatus(StrEnum):
    """The result of one check."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    ERROR = "error"


class VerdictStatus(StrEnum):
    """What a gate says about one tree."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"  # something could not run: nothing was learned about the tree
    UNVERIFIED = "unverified"  # there was nothing to check


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was checked."""

    id: str
    name: str
    status: CheckStatus
    message: str = ""
    duration_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFacts:
    """What one gate command did: the facts that a receipt carries."""

    name: str
    command: str
    exit_code: int | None
    duration_s: float
    output_sha256: str
    output_bytes: Count
    timed_out: bool = False
    tests: Count | None = None
    """How many tests were seen to run inside of it; None when nothing could be seen there."""
    reported: bool = False
    """Whether that is known from its own report only, so that no canary was tried."""
    known_failures: Count = 0
    """Tests that failed, all of which had failed before the work: it did not end with 0 because of them."""
    known_failed: tuple[str, ...] = ()
    """Tests that failed and had failed before the work, by name: the first of them."""
    flaky: tuple[str, ...] = ()
    """Tests that failed and then passed on the same tree, or its own name where no tests could be seen."""
    kept_sha256: str = ""
    """Of what was kept of its output: another one where only parts were."""
    seen_sha256: str = ""
    """Of what was seen inside its test runners; empty when nothing was looked for there."""
    report_sha256: str = ""
    """Of the report that it wrote; empty when there is none."""
    changed: tuple[str, ...] = ()
    """Files of the tree that git knows and that were others when it had ended."""
    touched: tuple[str, ...] = ()
    """Those that were written while it ran, and had been put back by its end."""

    only_new_tests: bool = False
    """Whether it ran no test, because all its tests are in files that the work adds and that are not there."""

    @property
    def is_excused(self) -> bool:
        """Whether it passes although something in it failed: what passed this way is not proven without gaps."""
        return bool(self.known_failures or self.flaky)

    @property
    def refused(self) -> bool:
        """Whether it speaks against the tree."""
        return self.timed_out or (self.exit_code != 0 and not self.is_excused and not self.only_new_tests)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult(CommandFacts):
    """The same with the end of its output, which a receipt does not carry."""

    tail: str = ""


def is_sentence(check: Check) -> bool:
    """Return whether a check's name says all that there is to say: what is wrong, and not only where."""
    return bool(check.message) and check.name.endswith(check.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """Commands that were run once more on the same tree within one gate run, because they may have failed by chance."""

    folder: str
    """Where it is recorded, in the run's directory."""
    alone: bool
    """Whether only the tests that had failed were run; else everything, in a fresh workspace."""
    commands: tuple[CommandResult, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A gate's finding on one tree."""

    status: VerdictStatus
    checks: tuple[Check, ...] = ()
    commands: tuple[CommandResult, ...] = ()
    reason: str = ""
    reruns: tuple[Rerun, ...] = ()
    lasting: bool = False
    """Of one that is inconclusive: asking again would give the same, a person has to fix something."""
    unknown_before: str = ""
    """Why it is not known how this was before the work; empty when that is known, or nothing needs it."""
    broken: tuple[str, ...] = ()
    """Tests that did not fail before the work and fail now, and commands that passed before and fail now."""
    lost: tuple[str, ...] = ()
    """Tests that ran before the work and do not run now: missing, skipped or deselected."""
    tampered: bool = False
    """Whether a witness saw the test runner bent, or a command changed files that judge."""
    as_before: bool = False
    """Of one that is inconclusive: what failed had failed before the work, and nothing else speaks for it."""
    passed_before: int = 0
    passed_now: int = 0
    """How many tests passed in the commands that could be compared, before the work and now."""
    left_open: tuple[str, ...] = ()
    """What else was seen that leaves something open: each is a gap where the final tree is judged."""
    notes: tuple[str, ...] = ()
    """What is worth telling and changes nothing: new tests that were skipped, for example."""
    contradicted: tuple[str, ...] = ()
    """Of one on a plan's result: checks of the plan's base commit that it contradicts and no single task does."""
    allowed_by: tuple[str, ...] = ()
    """Who allowed each of them, in the same order."""

    @property
    def is_excused(self) -> bool:
        """Whether it passes with something left open, so that it is not proven without gaps."""
        return bool(self.unknown_before or self.left_open) or any(
            command.is_excused for command in self.commands
        )


# What the witness saw inside a test runner, and what a baseline had, as values.


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
