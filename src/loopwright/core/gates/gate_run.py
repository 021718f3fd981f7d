"""One run of gate commands as a value, and the passes that turn it into a verdict.

The engine runs the commands and collects what to compare them with. `judge_run` is a pure function of that.
Each pass takes the run and the current verdict, and returns the next verdict. A pass that needs a second run
returns `RunAgain`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from loopwright.core.gates.flakes import ALONE, WHOLE, Suspect, excused, failed_again, red_alone, suspects
from loopwright.core.gates.held_out import veiled
from loopwright.core.gates.missing_tests import with_new_skips
from loopwright.core.gates.verdicts import Killed, is_bad, not_judged, red
from loopwright.core.gates.witnesses import held_against, held_to_files, with_uncompared, without_baseline
from loopwright.core.values.findings import (
    Baseline,
    CommandResult,
    Rerun,
    Verdict,
    VerdictStatus,
    Witnessed,
)
from loopwright.core.values.policy import GateCommand

JUDGED: Final = (VerdictStatus.PASSED, VerdictStatus.FAILED)
"""The verdicts that say something about a tree."""
INTERRUPTED: Final = Verdict(status=VerdictStatus.INCONCLUSIVE, reason="the gate was interrupted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The rules for judging a gate run."""

    commands: tuple[GateCommand, ...] = ()
    """The commands that ran, in order."""
    setup: GateCommand | None = None
    """The command that comes first in every fresh workspace."""
    own: frozenset[str] = frozenset()
    """Commands that the work has to make pass. An earlier failure does not excuse them."""
    may_be_empty: frozenset[str] = frozenset()
    """Commands that may run no test, because the work adds all their tests."""
    rewritten: tuple[str, ...] = ()
    """Id prefixes of tests that the work changed."""
    brought: tuple[str, ...] = ()
    """Id prefixes of tests in files that the work adds or changes."""
    is_baseline: bool = False
    """Whether the tree contains no work. Then no failure is excused."""
    is_held_out: bool = False
    """Whether these are held-out checks. Then the verdict reveals nothing about them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRun:
    """One run of gate commands on a tree, with everything that determines its verdict."""

    verdict: Verdict
    """The verdict from exit codes and reports alone."""
    terms: Terms = field(default_factory=Terms)
    seen: Sequence[Witnessed | None] = ()
    """What the witness saw inside each command."""
    interrupted: bool = False
    excess: str = ""
    """Why it was stopped for using too much disk space; empty if it was not."""
    denial: str | None = None
    """What the sandbox denied to a command that failed."""
    killed: Killed | None = None
    """Commands that something outside ended."""
    was_alone: bool = False
    """Whether no other gate ran beside it."""
    ends_on_base: bool = False
    """Whether the killed commands finish by themselves on the base commit."""
    before: Baseline | None = None
    """What the project's gates reported on the base commit."""
    no_baseline: Verdict | None = None
    """Why the gates could not run on the base commit."""
    judging_files: frozenset[str] | None = None
    """Judging files that the commands changed; None if such changes are not counted against them."""
    uncompared: tuple[CommandResult, ...] = ()
    """Commands whose tests did not run on the base commit."""
    green_here: frozenset[str] = frozenset()
    """Commands that passed on exactly this tree before."""
    again: tuple["GateRun", ...] = ()
    """The second runs so far, in order."""

    @property
    def was_interrupted(self) -> bool:
        """Whether this run or a second one was interrupted."""
        return self.interrupted or any(one.interrupted for one in self.again)

    @property
    def is_broken(self) -> bool:
        """Whether the machine is at fault: no space, a denial by the sandbox, or killed twice."""
        killed_twice = self.killed is not None and self.was_alone and not self.ends_on_base
        return bool(self.excess) or self.denial is not None or killed_twice


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAgain:
    """Commands to run once more on the same tree before there is a verdict."""

    folder: str
    """Where the second run is recorded, inside the directory of the gate run."""
    commands: tuple[GateCommand, ...]
    only: frozenset[str] = frozenset()
    """The tests to run, where the runner can choose; empty for all."""
    fresh: bool = False
    """Whether they run in a fresh workspace."""


Pass = Callable[[GateRun, Verdict], Verdict | RunAgain]


def judge_run(run: GateRun) -> Verdict | RunAgain:
    """Return the verdict on the tree of a gate run, or what has to run again first."""
    verdict = _stopped(run)
    if verdict is None:
        verdict = run.verdict
        if verdict.status in JUDGED:
            for one in PASSES:
                following = one(run, verdict)
                if isinstance(following, RunAgain):
                    return following
                verdict = following
    return veiled(verdict) if run.terms.is_held_out else verdict


def _stopped(run: GateRun) -> Verdict | None:
    """Return the verdict on a run that was stopped from outside; None if its commands finished by themselves."""
    if run.excess or run.denial is not None:
        reason = run.excess or run.denial or ""
        return Verdict(status=VerdictStatus.INCONCLUSIVE, reason=reason, commands=run.verdict.commands)
    if run.killed is None:
        return None
    if run.was_alone and run.ends_on_base:
        return red(run.verdict, run.killed)
    return not_judged(run.verdict, run.killed, lasting=run.was_alone)


# --- the passes, in order --------------------------------------------------------------------------------


def _compared(run: GateRun, verdict: Verdict) -> Verdict:
    """Compare with what the witness saw inside the test runners, and with the base commit."""
    failed = bool(verdict.commands) and verdict.status is VerdictStatus.FAILED
    if run.before is None and not any(run.seen) and not failed:
        return verdict
    return held_against(verdict, run.seen, run.before, run.terms.own, run.terms.may_be_empty)


def _unchanged(run: GateRun, verdict: Verdict) -> Verdict:
    """Fail commands that changed judging files, and name other files that they changed."""
    if run.judging_files is None:
        return verdict
    setup = run.terms.setup.command if run.terms.setup else ""
    known = run.before.changed if run.before is not None else frozenset()
    held = held_to_files(verdict, known, run.judging_files.__contains__, setup=setup)
    tampered = sum(map(is_bad, held.checks)) > sum(map(is_bad, verdict.checks))
    return replace(held, tampered=True) if tampered else held


def _baseline_known(run: GateRun, verdict: Verdict) -> Verdict:
    """Do not blame the work if the gates could not run on the base commit."""
    return verdict if run.no_baseline is None else without_baseline(verdict, run.no_baseline)


def _not_flaky(run: GateRun, verdict: Verdict) -> Verdict | RunAgain:
    """Separate flaky failures from real ones: run suspects alone, then everything unless this tree was green before."""
    if verdict.status is not VerdictStatus.FAILED or run.terms.is_baseline:
        return verdict
    rewritten = run.terms.rewritten
    found = suspects(verdict, run.seen, run.before, green_here=run.green_here, rewritten=rewritten)
    if not found:
        return verdict
    ran = iter(run.again)
    if single := [one for one in found if one.tests]:
        alone = next(ran, None)
        if alone is None:
            only = frozenset[str]().union(*(one.tests for one in single))
            return RunAgain(folder=ALONE, commands=_commands(run, single), only=only)
        second = _stopped(alone) or alone.verdict
        if second.status not in JUDGED:
            return _not_settled(verdict, second)
        verdict = _noted(verdict, second, ALONE)
        pairs = zip(single, alone.seen, strict=True)
        still = {one.position: red_alone(one, run.seen[one.position - 1], saw) for one, saw in pairs}
        if still := {position: tests for position, tests in still.items() if tests}:
            return failed_again(verdict, still, alone=True)
    known = {one.position: _known_failures(run.seen[one.position - 1], one) for one in found}
    if together := [one for one in found if not one.tests or not one.green_here]:
        whole = next(ran, None)
        if whole is None:
            setup = (run.terms.setup,) if run.terms.setup else ()
            others = (one for one in _commands(run, together) if one not in setup)
            return RunAgain(folder=WHOLE, commands=(*setup, *others), fresh=True)
        second = _stopped(whole) or whole.verdict
        if second.status not in JUDGED:
            return _not_settled(verdict, second)
        verdict = _noted(verdict, second, WHOLE)
        second = held_against(second, whole.seen, run.before, run.terms.own)
        if second.status is not VerdictStatus.PASSED:
            return failed_again(verdict, {one.position: one.tests for one in together}, alone=False)
        results = {result.command: result.known_failures for result in second.commands}
        known |= {one.position: results[_command(run, one).command] for one in together}
    return excused(verdict, found, known)


def _with_notes(run: GateRun, verdict: Verdict) -> Verdict:
    """Note commands whose tests were not compared, and new tests that were skipped."""
    if verdict.status is VerdictStatus.PASSED:
        verdict = with_uncompared(verdict, run.uncompared)
    return with_new_skips(verdict, run.seen, run.before, run.terms.brought)


PASSES: Final[tuple[Pass, ...]] = (_compared, _unchanged, _baseline_known, _not_flaky, _with_notes)


def _known_failures(saw: Witnessed | None, suspect: Suspect) -> int:
    """Return how many tests failed besides the suspects. Those failed on the base commit too."""
    return len(saw.failed - suspect.tests) if saw is not None else 0


def _command(run: GateRun, suspect: Suspect) -> GateCommand:
    return run.terms.commands[suspect.position - 1]


def _commands(run: GateRun, found: Sequence[Suspect]) -> tuple[GateCommand, ...]:
    return tuple(_command(run, one) for one in found)


def _noted(verdict: Verdict, second: Verdict, folder: str) -> Verdict:
    rerun = Rerun(folder=folder, alone=folder == ALONE, commands=second.commands)
    return replace(verdict, reruns=(*verdict.reruns, rerun))


def _not_settled(verdict: Verdict, second: Verdict) -> Verdict:
    """Return an inconclusive verdict: the second run that should separate flaky from real failures failed."""
    reason = second.reason if second == INTERRUPTED else f"it could not be run again: {second.reason}"
    return replace(verdict, status=VerdictStatus.INCONCLUSIVE, reason=reason)
