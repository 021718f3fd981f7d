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
    INCONCLUSIVE = "inconclusive"  # something could not run: nothing is known about the tree
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
    """How many tests ran inside it; None if none could be seen."""
    reported: bool = False
    """Whether this is known only from its own report, so that no canary was tried."""
    known_failures: Count = 0
    """The number of failed tests, if all of them failed before the work: then they excuse the exit code."""
    known_failed: tuple[str, ...] = ()
    """The first names of tests that failed now and before the work."""
    flaky: tuple[str, ...] = ()
    """Tests that failed and then passed on the same tree, or the command's own name if no tests could be seen."""
    kept_sha256: str = ""
    """The hash of what was kept of its output: a different one if only parts were."""
    seen_sha256: str = ""
    """The hash of the witness's record of its test runners; empty if there is none."""
    report_sha256: str = ""
    """The hash of the report that it wrote; empty if there is none."""
    changed: tuple[str, ...] = ()
    """Tracked files of the tree that differed after it ended."""
    touched: tuple[str, ...] = ()
    """Tracked files that were written while it ran, and restored before it ended."""

    only_new_tests: bool = False
    """Whether it ran no test, because all its tests are in new files of the work that are missing in this tree."""

    @property
    def is_excused(self) -> bool:
        """Whether it passes although something in it failed: such a pass leaves a gap."""
        return bool(self.known_failures or self.flaky)

    @property
    def refused(self) -> bool:
        """Whether it speaks against the tree."""
        return self.timed_out or (self.exit_code != 0 and not self.is_excused and not self.only_new_tests)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult(CommandFacts):
    """Command facts with the end of the output, which a receipt does not contain."""

    tail: str = ""


def is_sentence(check: Check) -> bool:
    """Return whether a check's name is a full sentence that says what is wrong, and not only where."""
    return bool(check.message) and check.name.endswith(check.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """Commands that ran once more on the same tree in one gate run, because they may have failed by chance."""

    folder: str
    """Where it is recorded, in the run's directory."""
    alone: bool
    """Whether only the failed tests ran; otherwise everything, in a fresh workspace."""
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
    """Of an inconclusive verdict: another run would give the same, the user has to fix something."""
    unknown_before: str = ""
    """Why the result before the work is unknown; empty if it is known, or not needed."""
    broken: tuple[str, ...] = ()
    """Tests and commands that passed before, or are new, and fail now."""
    lost: tuple[str, ...] = ()
    """Tests that ran before the work and do not run now: missing, skipped or deselected."""
    tampered: bool = False
    """Whether a witness saw a manipulated test runner, or a command changed judging files."""
    as_before: bool = False
    """Of an inconclusive verdict: all failures existed before the work, and nothing else speaks for it."""
    passed_before: int = 0
    passed_now: int = 0
    """How many tests passed in comparable commands, before the work and now."""
    left_open: tuple[str, ...] = ()
    """Other observations that leave something open: each is a gap on the final tree."""
    notes: tuple[str, ...] = ()
    """Observations without an effect: new tests that were skipped, for example."""
    contradicted: tuple[str, ...] = ()
    """Of a verdict on a plan's result: checks of the plan's base commit that it contradicts and no single task does."""
    allowed_by: tuple[str, ...] = ()
    """Who allowed each of them, in the same order."""

    @property
    def is_excused(self) -> bool:
        """Whether it passes with something left open, which is a gap."""
        return bool(self.unknown_before or self.left_open) or any(
            command.is_excused for command in self.commands
        )


# The witness's view of a test runner, and the content of a baseline, as values.


@dataclass(frozen=True, slots=True, kw_only=True)
class Witnessed:
    """All test runners that one command started, taken together."""

    passed: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()
    xfailed: frozenset[str] = frozenset()
    """Those of the skipped tests that ran, and were expected to fail."""
    deselected: frozenset[str] = frozenset()
    unloaded: frozenset[str] = frozenset()
    """Those of the failed ids that are files or packages that could not be loaded: none of their tests ran."""
    problems: tuple[str, ...] = ()
    """Why the runner is not trusted: a canary that ended wrong, a missing end."""
    reported: bool = False
    """Whether this comes only from the runner's own report or output, without a witness."""
    tried: bool = False
    """Whether such a runner was still tried with canaries."""

    @property
    def tests(self) -> frozenset[str]:
        """Every test that was seen, whatever its result."""
        return self.passed | self.failed | self.skipped | self.deselected

    @property
    def none_ran(self) -> bool:
        """Whether files could not be loaded and no test ran: such a run says nothing about the work."""
        return bool(self.unloaded) and not self.passed and self.failed <= self.unloaded


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What the gates saw on the tree that the work started from, by command."""

    seen: Mapping[str, Witnessed] = field(default_factory=dict)
    exempt: tuple[str, ...] = ()
    """Files that the task may change: their tests may be removed."""
    stuck: frozenset[str] = frozenset()
    """Commands that did not finish there."""
    red: Mapping[str, "Red"] = field(default_factory=dict)
    """Commands that failed there without visible tests."""
    commit: str = ""
    """The commit of all this."""
    changed: frozenset[str] = frozenset()
    """Files of the tree that commands wrote there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Red:
    """The failure of a command that is known only by its exit code and output."""

    exit_code: int | None
    checks: frozenset[str]
    """Its failed checks, named within the command."""
