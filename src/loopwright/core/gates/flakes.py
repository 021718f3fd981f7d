"""Checks that both passed and failed on the same tree.

A check is flaky if it failed and passed on the same tree, in the same kind of run. Passing alone is not
enough: tests that interfere with each other because of the work fail again each time they run together, and
the work is at fault.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from loopwright.core.gates.missing_tests import counted, listed
from loopwright.core.gates.verdicts import command_id, is_bad, is_of, judged_again
from loopwright.core.gates.witnesses import NOTHING, WITNESS
from loopwright.core.values.findings import Baseline, Check, CheckStatus, CommandResult, Verdict, Witnessed

MOST: Final = 20
"""When more tests than this fail at once, they are not flaky."""
ALONE: Final = "again-alone"
WHOLE: Final = "again-whole"
FOLDERS: Final = (ALONE, WHOLE)
"""Folders for second runs, in the directory of the gate run."""
_COULD_NOT_RUN: Final = (126, 127)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A command that failed although it was green before, so it may be flaky."""

    position: int
    """Its position among the verdict's commands, from 1."""
    tests: frozenset[str]
    """The tests that newly fail; empty if no individual tests are visible."""
    green_here: bool
    """Whether the whole command passed on exactly this tree before."""


def suspects(
    verdict: Verdict,
    seen: Sequence[Witnessed | None],
    before: Baseline | None,
    *,
    green_here: Collection[str],
    rewritten: tuple[str, ...],
) -> tuple[Suspect, ...]:
    """Return the commands to run again; none if the tree fails for another reason anyway.

    `green_here` are the commands that passed on this exact tree before. A test that only passed on the base
    tree is suspect only if the work did not write it: `rewritten` has the id prefixes of rewritten tests.
    """
    found = []
    # A gate that reports nothing about its commands names none to run again.
    for n, (result, saw) in enumerate(zip(verdict.commands, seen, strict=False), 1):
        prefix = command_id(n, result.name)
        bad = [check for check in verdict.checks if is_bad(check) and is_of(check, prefix)]
        if not bad and not result.refused:
            continue
        tests = None if _objects(bad, prefix) else _tests(result, saw, before, green_here, rewritten)
        if tests is None:
            return ()
        found.append(Suspect(position=n, tests=tests, green_here=result.command in green_here))
    return tuple(found)


def _objects(bad: Sequence[Check], prefix: str) -> bool:
    """Return whether a witness objects to a command for a reason other than failed tests."""
    return any(check.id.startswith(f"{prefix}/{WITNESS} ") for check in bad)


def _tests(
    result: CommandResult,
    saw: Witnessed | None,
    before: Baseline | None,
    green_here: Collection[str],
    rewritten: tuple[str, ...],
) -> frozenset[str] | None:
    """Return the tests of a command to run again, empty for the whole command; None if it is not suspect."""
    if result.timed_out or result.exit_code is None or result.exit_code in _COULD_NOT_RUN:
        return None
    base = before.seen.get(result.command) if before is not None else None
    if saw is None:
        return frozenset() if result.command in green_here else None
    new = saw.failed - (base.failed if base is not None else frozenset())
    if not new or len(new) > MOST:
        return None
    if result.command in green_here:
        return new
    if base is None or (base.reported and rewritten):
        return None  # a report need not say which file a test is in
    green = {test for test in base.passed if not test.startswith(rewritten)} if rewritten else base.passed
    return new if new <= green else None


def red_alone(suspect: Suspect, first: Witnessed | None, again: Witnessed | None) -> frozenset[str]:
    """Return the suspected tests that did not pass when run alone."""
    if again is None:
        return suspect.tests
    # If one command starts several test runners, all tests may be in one of them.
    known = (NOTHING, *(first.problems if first is not None else ()))
    if any(words not in known for words in again.problems):
        return suspect.tests
    return suspect.tests - (again.passed - again.failed)


def green_commands(verdict: Verdict) -> frozenset[str]:
    """Return the commands that passed in a verdict without a flaky test."""
    return frozenset(
        result.command
        for n, result in enumerate(verdict.commands, 1)
        if not result.refused
        and not result.flaky
        and not any(is_bad(check) and is_of(check, command_id(n, result.name)) for check in verdict.checks)
    )


def excused(verdict: Verdict, found: Sequence[Suspect], known: Mapping[int, int]) -> Verdict:
    """Excuse flaky tests and name them.

    `known` is how many tests of a command still fail at the end and also failed before the work.
    """
    checks, commands = list(verdict.checks), list(verdict.commands)
    for one in found:
        result = commands[one.position - 1]
        prefix = command_id(one.position, result.name)
        checks = [_passed_after_all(check) if is_of(check, prefix) else check for check in checks]
        commands[one.position - 1] = replace(
            result,
            flaky=tuple(sorted(one.tests)) or (result.name,),
            known_failures=known.get(one.position, 0),
        )
    return judged_again(verdict, checks, commands)


def _passed_after_all(check: Check) -> Check:
    if not is_bad(check):
        return check
    told = "flaky: it failed, and passed when it was run again on the same tree"
    return replace(check, status=CheckStatus.PASSED, message=f"{told}\n{check.message}".rstrip())


def failed_again(verdict: Verdict, red: Mapping[int, frozenset[str]], *, alone: bool) -> Verdict:
    """Add what failed a second time, by the position of its command, because it is not flaky."""
    checks = list(verdict.checks)
    for position, tests in red.items():
        name = verdict.commands[position - 1].name
        if not tests:
            words = "it failed again in a fresh workspace"
        elif alone:
            words = f"{counted(tests)} failed again alone: {listed(tests)}"
        else:
            words = f"passed alone, and failed again together with the other tests: {listed(tests)}"
        check = Check(
            id=f"{command_id(position, name)}/again",
            name=f"{name}: {words}",
            status=CheckStatus.FAILED,
            message=words,
        )
        checks.append(check)
    return judged_again(verdict, checks, verdict.commands)
