"""What Loopwright's own witness saw inside a test runner, and what follows from it.

A runner's exit code and report come from a process that loads the agent's code. The witness is independent:
it records which tests exist, how each ended, and whether the runner still tells a failing test from a passing
one.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

from loopwright.core.gates.missing_tests import counted, listed, nothing_passed, unanswered
from loopwright.core.gates.verdicts import command_id, is_bad, is_of, judged_again
from loopwright.core.values.findings import (
    Baseline,
    Check,
    CheckStatus,
    CommandResult,
    Red,
    Verdict,
    VerdictStatus,
    Witnessed,
)
from loopwright.core.values.policy import GateCommand

NO_END: Final = "the test runner did not come to its end"
NOTHING: Final = "no tests were collected"
WITNESS: Final = "witness"
"""Part of the ids of checks that speak against a test run for a reason other than failed tests."""
_KNOWN: Final = "it failed before this work too"
_COULD_NOT_RUN: Final = (126, 127)
_NAMED: Final = 20
"""The most earlier failures that are kept by name."""
_NEEDS_WORK: Final = "it runs no test that was there before this work"
_STUCK: Final = "inconclusive: it did not come to its end before this work either"
_WORD: Final = re.compile(r"(?<![\w./:-])\w[\w./:-]*")
"""A word of a command that may be a path: not an option, and not a path out of the tree."""
_RUNNERS: Final = re.compile(
    r"\bpy\.?test\b|\s-m\s+unittest\b|\bnode\b[^;&|]*\s--test\b|\bjest\b|\bvitest\b|\bgo\s+test\b"
)


def is_test_runner(command: str) -> bool:
    """Return whether a command names a test runner that Loopwright can watch from inside."""
    return _RUNNERS.search(command) is not None


def is_compared(
    gates: Iterable[GateCommand], ran: Iterable[GateCommand], seen: Iterable[Witnessed | None]
) -> bool:
    """Return whether a comparison with the base commit makes sense.

    It does if tests were seen in one of the project's gates, or if a gate names a known test runner.
    """
    named = {gate.command for gate in gates}
    in_gates = any(one for one, command in zip(seen, ran, strict=True) if command.command in named)
    return in_gates or any(map(is_test_runner, named))


def failed_unseen(
    gates: Iterable[GateCommand],
    own: Iterable[GateCommand],
    verdict: Verdict,
    seen: Sequence[Witnessed | None],
) -> bool:
    """Return whether a project gate failed and no tests were seen in it.

    It may have failed on the base commit too. Commands that the work should make pass (`own`) had to fail
    before.
    """
    named = {gate.command for gate in gates} - {command.command for command in own}
    return any(
        found is None and result.command in named and _bad(verdict.checks, command_id(n, result.name))
        # A gate that reports nothing about its commands names none to ask about.
        for n, (result, found) in enumerate(zip(verdict.commands, seen, strict=False), 1)
    )


def held_against(
    verdict: Verdict,
    seen: Sequence[Witnessed | None],
    before: Baseline | None,
    own: Collection[str] = (),
    may_be_empty: Collection[str] = (),
) -> Verdict:
    """Compare a gate's verdict with what the witness saw inside its test runners, and with the base commit.

    Without a baseline, only what needs none is judged. A command whose failures all existed before is
    excused, and says so. `own` are the commands that the work should make pass: if they have tests, at least
    one has to pass. Tests that ran before and do not run now do not fail anything here: `Verdict.lost` names
    them. A command of `may_be_empty` that runs no test proves nothing.
    """
    if verdict.status not in (VerdictStatus.PASSED, VerdictStatus.FAILED):
        return verdict
    checks = list(verdict.checks)
    commands: list[CommandResult] = []
    stuck: list[str] = []
    red: list[CommandResult] = []
    broken: list[str] = []
    lost: list[str] = []
    blind: list[str] = []
    tampered = False
    for n, (result, found) in enumerate(zip(verdict.commands, seen, strict=True), 1):
        base = before.seen.get(result.command) if before is not None else None
        prefix = command_id(n, result.name)
        if before is not None and result.command in before.stuck and is_stuck(result, found):
            stuck.append(result.name)
            checks = [_set_aside(check, prefix, _STUCK) for check in checks]
            commands.append(replace(result, tests=_count(found), reported=_reported(found)))
            continue
        if before is not None and found is None and _was_red(before, result, prefix, checks):
            red.append(result)
            checks = [_set_aside(check, prefix, _KNOWN) for check in checks]
            commands.append(result)
            continue
        if found is not None and result.command in may_be_empty and not found.tests - found.deselected:
            checks = [_set_aside(check, prefix, _NEEDS_WORK) for check in checks]
            commands.append(replace(result, tests=0, only_new_tests=True))
            continue
        said = _objections(found, base)
        tampered = tampered or any(words != NO_END for words in said)
        lost += _lost(found, base, before.exempt if before is not None else ())
        if found is not None and result.command in own and (words := nothing_passed(found, base)):
            said.append(words)
        known: tuple[str, ...] = ()
        if found is not None:
            new = found.failed - (base.failed if base is not None else frozenset())
            broken += sorted(new)
            if new and result.exit_code == 0:
                said.append(f"{counted(new)} failed, though the command ended with 0: {listed(new)}")
            if base is not None and not new and not said and found.failed and not result.timed_out:
                known = tuple(sorted(found.failed))
                if found.none_ran:
                    blind.append(_told_of_blind(result, found))
                checks = [_set_aside(check, prefix, _KNOWN) for check in checks]
                checks += _others(result, prefix, found)
        if result.refused and not known and (found is None or not found.failed):
            broken.append(result.name)
        checks += [
            Check(
                id=f"{prefix}/{WITNESS} {k}",
                name=f"{result.name}: {words}",
                status=CheckStatus.FAILED,
                message=words,
            )
            for k, words in enumerate(said, 1)
        ]
        commands.append(
            replace(
                result,
                tests=_count(found),
                reported=_reported(found),
                known_failures=len(known),
                known_failed=_known_failed(found, base),
            )
        )
    compared = [
        (base, found)
        for result, found in zip(verdict.commands, seen, strict=True)
        if before is not None and found is not None and (base := before.seen.get(result.command)) is not None
    ]
    held = judged_again(
        verdict,
        checks,
        commands,
        broken=tuple(dict.fromkeys(broken)),
        lost=tuple(dict.fromkeys(lost)),
        tampered=tampered,
        passed_before=sum(len(base.passed) for base, _ in compared),
        passed_now=sum(len(found.passed) for _, found in compared),
    )
    if (stuck or red) and not any(map(is_bad, checks)):
        said = [_told_of_red(red, before.commit)] if red and before is not None else []
        if stuck:
            said.append(f"before the work and after it, these did not come to their end: {', '.join(stuck)}")
        return _as_before(held, "; ".join(said))
    if held.status is VerdictStatus.PASSED and all(one.status is CheckStatus.SKIPPED for one in checks):
        told = "whatever failed had failed before the work, and nothing passed: nothing is known of it"
        return _as_before(held, told)
    if held.status is VerdictStatus.PASSED and blind:
        if not any(one.command in own and one.exit_code == 0 for one in commands):
            return _as_before(held, "; ".join(blind))
        held = replace(held, left_open=(*held.left_open, *blind))
    if before is not None and (open_ := sorted(before.stuck)):
        unknown = f"these did not come to their end on the tree before the work: {', '.join(open_)}"
        return replace(held, unknown_before=unknown)
    return held


def _as_before(held: Verdict, reason: str) -> Verdict:
    """Return a verdict that says nothing about the work, because the same check failed before it."""
    return replace(held, status=VerdictStatus.INCONCLUSIVE, reason=reason, lasting=True, as_before=True)


def baseline(
    results: Sequence[CommandResult],
    seen: Sequence[Witnessed | None],
    *,
    checks: Sequence[Check] = (),
    exempt: tuple[str, ...] = (),
    own: Iterable[GateCommand] = (),
    commit: str = "",
) -> Baseline:
    """Return what commands found on the tree that the work started from.

    `own` are the commands that the work should make pass: their failures there excuse nothing.
    """
    pairs = list(zip(results, seen, strict=True))
    wanted = {command.command for command in own}
    red = {}
    for n, (result, found) in enumerate(pairs, 1):
        bad = _bad(checks, command_id(n, result.name))
        if bad and found is None and result.command not in wanted and not is_stuck(result, found):
            red[result.command] = Red(exit_code=result.exit_code, checks=bad)
    return Baseline(
        seen={result.command: found for result, found in pairs if found is not None},
        exempt=exempt,
        stuck=frozenset(result.command for result, found in pairs if is_stuck(result, found)),
        red=red,
        commit=commit,
        changed=frozenset(path for one in results for path in (*one.changed, *one.touched)),
    )


def _bad(checks: Iterable[Check], prefix: str) -> frozenset[str]:
    return frozenset(
        check.id.removeprefix(prefix) for check in checks if is_bad(check) and is_of(check, prefix)
    )


def _was_red(before: Baseline, result: CommandResult, prefix: str, checks: Sequence[Check]) -> bool:
    """Return whether a command fails as on the base commit: it ran there, and reports no check that passed there."""
    known, bad = before.red.get(result.command), _bad(checks, prefix)
    if known is None or not bad or is_stuck(result, None):
        return False
    ran = known.exit_code not in _COULD_NOT_RUN or known.exit_code == result.exit_code
    return ran and bad <= known.checks


def _told_of_red(red: Sequence[CommandResult], commit: str) -> str:
    """Tell the user which commands fail on which commit, and what to do about it."""
    names = "; ".join(f"{one.name} ({one.command})" for one in red)
    where = f"commit {commit[:12]}, which the work started from" if commit else "the tree before the work"
    return (
        f"this fails on {where}, just as it does with the work, and no tests can be seen in it: {names}. Nothing is "
        "known of the work: fix it there, or name it in the acceptance of the task that is to fix it"
    )


def _told_of_blind(result: CommandResult, found: Witnessed) -> str:
    return (
        f"{result.name}: no test ran, before the work and with it: these cannot be loaded: {listed(found.unloaded)}. "
        "Make one of them loadable, or add a test that can be loaded"
    )


def without_baseline(verdict: Verdict, why: Verdict) -> Verdict:
    """Note that there is no baseline: failures may have existed before the work too."""
    told = f"how it was before the work could not be found out: {why.reason}"
    if verdict.status is VerdictStatus.FAILED:
        return replace(verdict, status=VerdictStatus.INCONCLUSIVE, reason=told, lasting=why.lasting)
    return replace(verdict, unknown_before=why.reason)


def uncompared(
    own: Iterable[GateCommand],
    gates: Iterable[GateCommand],
    verdict: Verdict,
    seen: Sequence[Witnessed | None],
    before: Baseline | None,
) -> tuple[tuple[CommandResult, Witnessed], ...]:
    """Return the task's own commands whose tests were not compared.

    Only the project's gates run on the tree before the work; tests that they see are compared in every
    command.
    """
    named = {gate.command for gate in gates}
    wanted = {command.command for command in own} - named
    pairs = list(zip(verdict.commands, seen, strict=False))
    known = frozenset[str]()
    if before is not None:
        known = known.union(*(one.tests for result, one in pairs if one and result.command in named))
    return tuple(
        (result, one)
        for result, one in pairs
        if one is not None and result.command in wanted and not one.tests <= known
    )


def files_named(command: str) -> tuple[str, ...]:
    """Return the files that the words of a command may mean, as a path or as a module."""
    words = [word.partition("::")[0] for word in _WORD.findall(command)]
    modules = [f"{word.replace('.', '/')}.py" for word in words if "/" not in word]
    return tuple(dict.fromkeys((*words, *modules)))


def tests_named(command: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the tests that a command names, each as its file and the names inside: `a.py::T::m` and `a.T.m`."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for word in _WORD.findall(command):
        file, sign, names = word.partition("::")
        if sign:
            found.append((file, tuple(names.split("::"))))
            continue
        # A module's test is named with dots; a file at the top is named with one too.
        parts = word.split(".") if "/" not in word and not word.endswith(".py") else []
        found += [(f"{'/'.join(parts[:n])}.py", tuple(parts[n:])) for n in range(1, len(parts))]
    return tuple(found)


def stand_in(found: Witnessed, prefixes: tuple[str, ...]) -> bool:
    """Return whether the ids of all seen tests begin with one of these prefixes."""
    return all(test.startswith(prefixes) for test in found.tests)


def with_uncompared(verdict: Verdict, results: Sequence[CommandResult]) -> Verdict:
    """Note the commands whose earlier tests are unknown."""
    if not results:
        return verdict
    names = ", ".join(f"{one.name} ({one.command})" for one in results)
    told = f"these commands are not gates of the project, so their tests were not compared: {names}"
    return replace(verdict, notes=(*verdict.notes, told))


def is_stuck(result: CommandResult, found: Witnessed | None) -> bool:
    """Return whether a command did not finish, so that its failures are unknown."""
    cut = result.timed_out or result.exit_code is None or result.exit_code < 0
    return cut or (found is not None and NO_END in found.problems)


def _others(result: CommandResult, prefix: str, found: Witnessed) -> list[Check]:
    """Add a check that other tests passed; a report names them itself."""
    if not found.passed or found.reported:
        return []
    name = f"{result.name}: {counted(found.passed)} passed"
    return [Check(id=f"{prefix}/passed", name=name, status=CheckStatus.PASSED)]


def _reported(found: Witnessed | None) -> bool:
    return found is not None and found.reported and not found.tried


def _known_failed(found: Witnessed | None, base: Witnessed | None) -> tuple[str, ...]:
    """Return the tests that fail now and failed before the work."""
    both = found.failed & base.failed if found is not None and base is not None else ()
    return tuple(sorted(both)[:_NAMED])


def _count(found: Witnessed | None) -> int | None:
    return None if found is None else len(found.passed | found.failed | found.skipped)


def _objections(found: Witnessed | None, base: Witnessed | None) -> list[str]:
    """Return what speaks against a test run, besides tests that failed or did not run."""
    if found is None:
        return ["its tests were seen to run before, and were not seen now"] if base is not None else []
    # If the project's own hooks cannot cope with the canaries, the work is not at fault: it was so before.
    return [words for words in found.problems if base is None or words not in base.problems]


def _lost(found: Witnessed | None, base: Witnessed | None, exempt: tuple[str, ...]) -> list[str]:
    """Return the tests that passed or failed before and do not run now, except those of `exempt` files."""
    if found is None or base is None or (exempt and base.reported):
        return []  # a report need not say which file a test is in
    passed = base.passed - found.passed - found.failed
    unanswered_ = (ids for _, ids in unanswered(base, found))
    gone = passed.union(*unanswered_)
    return sorted(each for each in gone if not (exempt and each.startswith(exempt)))


def _set_aside(check: Check, prefix: str, why: str) -> Check:
    """Excuse an earlier failure; it does not count as a pass either."""
    if not is_bad(check) or not is_of(check, prefix):
        return check
    return replace(check, status=CheckStatus.SKIPPED, message=f"{why}\n{check.message}")


# What a gate's commands did to the tree that they check: it must stay the tree that lands, with its own files.


def held_to_files(
    verdict: Verdict, known: frozenset[str], judges: Callable[[str], bool], *, setup: str = ""
) -> Verdict:
    """Fail a gate whose commands changed judging files, and name other changed files.

    `known` is what the gate also wrote on the tree before the work: those files are accepted. Setup checks
    nothing, so it may write existing files.
    """
    checks, left = list(verdict.checks), list(verdict.left_open)
    for n, result in enumerate(verdict.commands, 1):
        new = [path for path in result.changed if path not in known]
        bent = [path for path in new if judges(path)]
        others = [path for path in new if path not in bent]
        if bent:
            words = f"files that judge the work were changed while it ran: {listed(bent)}"
            checks.append(
                Check(
                    id=f"{command_id(n, result.name)}/{WITNESS} files",
                    name=f"{result.name}: {words}",
                    status=CheckStatus.FAILED,
                    message=words,
                )
            )
        written = [path for path in result.touched if path not in known]
        if written and result.command != setup:
            left.append(
                f"{result.name} wrote files of the tree while it ran and put them back, so it may have judged "
                f"something else than what landed: {listed(written)}"
            )
        if others:
            left.append(
                f"{result.name} changed files of the tree while it ran, so it did not judge just what landed: "
                f"{listed(others)}"
            )
    if checks == list(verdict.checks):
        return replace(verdict, left_open=tuple(left))
    return judged_again(verdict, checks, verdict.commands, left_open=tuple(left))
