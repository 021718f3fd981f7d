"""What a plan's own checks say on its base commit: can they run there, and can they fail?

Pure functions over the result of a gate run. A gate that cannot run proves nothing, so the plan is refused
unless the user gives a reason. A gate that fails there is reported, because tasks are judged by new failures.
"""

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from loopwright.core.gates.missing_tests import counted, listed
from loopwright.core.gates.verdicts import command_id, is_bad, is_of, telling_line
from loopwright.core.gates.witnesses import NO_END, NOTHING, files_named
from loopwright.core.integrity.command_lines import words_of
from loopwright.core.integrity.gate_files import Kind, Rules, is_test_file, kind_of
from loopwright.core.plans.evaluating import Finding, Item, Weight, some
from loopwright.core.values.findings import CommandResult, Verdict, Witnessed
from loopwright.core.values.globs import any_covers
from loopwright.core.values.policy import GateCommand

CHECK: Final = "base"
_COULD_NOT_RUN: Final = {
    126: "the shell cannot execute it (exit code 126): is the file executable?",
    127: "command not found (exit code 127): is the program installed here and on PATH?",
}
_TOLD: Final = 20
"""The most tasks that are named one by one."""
_LINE: Final = 160


class Condition(StrEnum):
    """How a command ends on the base commit."""

    GREEN = "green"
    RED = "red"
    EMPTY = "empty"
    """It ran, and contained no test."""
    BROKEN = "broken"
    """It could not run, or did not finish."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnBase:
    """The result of one command on the base commit of a plan."""

    name: str
    command: str
    condition: Condition
    why: str = ""
    """The reason in plain words, unless it is green."""
    failed: tuple[str, ...] = ()
    """Tests that failed."""
    watched: bool = False
    """Whether Loopwright sees its tests: then failures here are not counted against the work."""
    duration_s: float = 0.0
    missing: tuple[str, ...] = ()
    """Files that it names and could not find."""


def conditions(
    commands: Sequence[GateCommand],
    verdict: Verdict,
    seen: Sequence[Witnessed | None],
    denial: str | None = None,
) -> tuple[OnBase, ...]:
    """Return how each command ended; `denial` is what a sandbox denied to one that failed."""
    if len(verdict.commands) != len(commands):
        # The gate as a whole did not finish.
        return tuple(
            OnBase(name=one.name, command=one.command, condition=Condition.BROKEN, why=verdict.reason)
            for one in commands
        )
    return tuple(
        _condition(n, one, result, found, verdict, denial)
        for n, (one, result, found) in enumerate(zip(commands, verdict.commands, seen, strict=True), 1)
    )


def _condition(
    n: int,
    command: GateCommand,
    result: CommandResult,
    found: Witnessed | None,
    verdict: Verdict,
    denial: str | None,
) -> OnBase:
    failed = tuple(sorted(found.failed)) if found is not None else ()
    bad = [one for one in verdict.checks if is_bad(one) and is_of(one, command_id(n, result.name))]
    green = result.exit_code == 0 and not result.timed_out and not bad
    broken = "" if green else _broken(command, result, found, denial)
    empty = found is not None and NOTHING in found.problems
    if broken:
        condition, why = Condition.BROKEN, broken
    elif empty:
        condition, why = Condition.EMPTY, NOTHING
    elif green:
        condition, why = Condition.GREEN, ""
    elif found is not None and failed:
        condition, why = Condition.RED, _fail(found)
    else:
        said = bad[0].name if bad and bad[0].name != result.name else telling_line(result.tail)[:_LINE]
        condition, why = Condition.RED, f"exit code {result.exit_code}{f': {said}' if said else ''}"
    return OnBase(
        name=command.name,
        command=command.command,
        condition=condition,
        why=why,
        failed=failed,
        watched=found is not None,
        duration_s=result.duration_s,
        missing=() if green else missing_files(command.command, result.tail),
    )


def missing_files(command: str, output: str) -> tuple[str, ...]:
    """Return the files that a command reports as missing, among those that it names or gave to pytest."""
    found = _NOT_FOUND_BY_PYTEST.findall(output)
    for word in words_of(command):
        path = word.partition("::")[0].removeprefix("./").rstrip("/")
        if path.startswith(("-", "/")) or not ("/" in path or "." in path):
            continue
        if any(line.search(output) for line in _not_found(re.escape(path))):
            found.append(path)
        module = path.removesuffix(".py").replace("/", ".")
        if re.search(rf"^ModuleNotFoundError: No module named '{re.escape(module)}'", output, re.MULTILINE):
            found.append(f"{module.replace('.', '/')}.py")
    return tuple(dict.fromkeys(found))


_NOT_FOUND_BY_PYTEST: Final = re.compile(r"^ERROR: (?:file or directory )?not found: ([^:\s]+)", re.MULTILINE)


def _not_found(path: str) -> Iterator[re.Pattern[str]]:
    """Yield how Python, shells and node report a missing file."""
    for text in (
        rf"can't open file '(?:[^'\n]*/)?{path}'",
        rf"^[\w./-]+: (?:line )?(?:\d+: )?(?:cannot open )?(?:\./)?{path}: (?:No such file|not found)",
        rf"cannot open (?:\./)?{path}\b",
        rf"(?:Could not find|Cannot find module) '(?:[^'\n]*/)?{path}'",
    ):
        yield re.compile(text, re.MULTILINE)


def _broken(command: GateCommand, result: CommandResult, found: Witnessed | None, denial: str | None) -> str:
    if denial is not None:
        return denial
    if result.timed_out:
        return f"it did not end within its limit of {command.timeout_s:g} s: give it more with `timeout`"
    if result.exit_code is None or result.exit_code < 0:
        return f"it was ended by signal {-(result.exit_code or 0)}"
    if found is not None and NO_END in found.problems:
        return NO_END
    return _COULD_NOT_RUN.get(result.exit_code, "")


def is_green(found: Sequence[OnBase]) -> bool:
    """Return whether all of these passed."""
    return all(one.condition is Condition.GREEN for one in found)


def is_broken(found: Sequence[OnBase]) -> bool:
    """Return whether any of these could not run at all."""
    return any(one.condition is Condition.BROKEN for one in found)


# --- what follows from it --------------------------------------------------------------------------------


def gate_findings(
    gates: Sequence[OnBase], tasks: Sequence[Item], *, setup: Sequence[str], elsewhere: bool
) -> list[Finding]:
    """Return what follows from how the gates end on the base commit.

    `setup` names the settings that the first of them runs, if it prepares the workspace; `elsewhere` is
    whether work may run on other machines.
    """
    found = []
    for n, one in enumerate(gates):
        prepares = bool(setup) and n == 0
        what = f"{' or '.join(setup)} command" if prepares else f"gate {one.name}"
        fix = _fix_of(setup) if prepares else _FIX
        if one.missing and not prepares:
            found.append(_of_missing(one, tasks))
            continue
        match one.condition:
            case Condition.BROKEN:
                found.append(_refused(f"the {what} cannot run on the base: {one.why}; {fix}", elsewhere))
            case Condition.RED if prepares:
                found.append(_refused(f"the {what} fails on the base: {one.why}; {fix}", elsewhere))
            case Condition.EMPTY if _may_bring_tests(tasks):
                text = f"the {what} finds no tests on the base: until a task brings some, it proves nothing"
                found.append(_told(text))
            case Condition.EMPTY:
                text = f"the {what} finds no tests on the base, and no task may write any; {fix}"
                found.append(_refused(text, elsewhere))
            case Condition.RED if one.failed:
                text = (
                    f"the {what} is red on the base, {one.why}; that stops nothing: tasks are judged on what fails "
                    "newly, and what fails there may fail until its task lands"
                )
                found.append(_told(text))
            case Condition.RED:
                text = (
                    f"the {what} fails on the base, {one.why}; no tests can be seen in it, so while it does it says "
                    "nothing of any work: fix it first, or name it in the acceptance of the task that fixes it"
                )
                found.append(_told(text))
    return found


def told_by_gates(command: GateCommand, gates: Sequence[OnBase], there: Collection[str]) -> OnBase | None:
    """Return how acceptance ends on the base commit if that is known without running it: only that it fails.

    `there` are the files of the base. Acceptance that names a test file fails if the file is missing, or if a
    gate saw one of its tests fail.
    """
    files = [path for path in files_named(command.command) if is_test_file(path)]
    failed = tuple(test for gate in gates for test in gate.failed if files and test.startswith(tuple(files)))
    missing = [path for path in files if path not in there and "/" in path]
    if not failed and not missing:
        return None
    fail = "fails" if len(failed) == 1 else "fail"
    told = f"{counted(failed)} {fail} there: {listed(failed)}"
    why = told if failed else f"{missing[0]} does not exist there"
    return OnBase(
        name=command.name,
        command=command.command,
        condition=Condition.RED,
        why=why,
        failed=failed,
        watched=bool(failed),
    )


def acceptance_findings(tasks: Sequence[Item], ran: Mapping[str, OnBase]) -> list[Finding]:
    """Return the tasks whose acceptance passes before the work, or names a file that no task creates."""
    found = []
    for task in tasks:
        ended = [ran[one.command] for one in task.acceptance if one.command in ran]
        missing = dict.fromkeys(path for one in ended for path in one.missing)
        if lost := [path for path in missing if not any(_may_create(each, path) for each in tasks)]:
            text = (
                f"{task.key}: its acceptance names {some(lost)}, which the base commit does not have and which is in "
                "the scope of no task; fix the path, or add it to a scope"
            )
            found.append(Finding(check=CHECK, weight=Weight.POINTLESS, text=text))
        passing = [one.command for one in ended if one.condition is Condition.GREEN]
        if not passing:
            continue
        if len(passing) == len(task.acceptance):
            text = (
                f"{task.key}: its acceptance passes on the base already ({some(passing)}), so only tests that the work "
                "brings along can show the work"
            )
        else:
            text = (
                f"{task.key}: passes on the base already, so the rest has to prove the work: {some(passing)}"
            )
        found.append(_told(text))
    more = len(found) - _TOLD
    if more <= 0:
        return found
    return [*found[:_TOLD], _told(f"and {more} more tasks whose acceptance passes on the base already")]


def _of_missing(gate: OnBase, tasks: Sequence[Item]) -> Finding:
    """Return the finding about a gate that names a missing file: no work can pass it until that file exists."""
    said = f"the gate {gate.name} names {some(list(gate.missing))}, which the base commit does not have"
    if all(any(_is_to_create(task, path) for task in tasks) for path in gate.missing):
        return _told(
            f"{said}: it fails until a task creates it, and so does every task that lands before that one"
        )
    text = (
        f"{said} and no task is to create; fix the path, or name it in the scope of the task that creates it"
    )
    return Finding(check=CHECK, weight=Weight.POINTLESS, text=text)


def _may_create(task: Item, path: str) -> bool:
    return not task.scope or any_covers(task.scope, path)


def _is_to_create(task: Item, path: str) -> bool:
    """Return whether a task mentions a file: in its scope, or in its description."""
    said = (task.title, task.description, *task.criteria, *(one.command for one in task.acceptance))
    return (bool(task.scope) and any_covers(task.scope, path)) or any(path in text for text in said)


_FIX: Final = "fix the command, or install what it needs with the setting `dependencies` or `setup`"


def _fix_of(settings: Sequence[str]) -> str:
    named = " or ".join(f"`{one}`" for one in settings)
    return f"fix the setting {named}, or install on this machine what it needs"


def _may_bring_tests(tasks: Sequence[Item]) -> bool:
    """Return whether any task may write a test; a task without a scope may write anything."""
    return any(not task.scope or any(map(_may_hold_a_test, task.scope)) for task in tasks)


def _may_hold_a_test(pattern: str) -> bool:
    several = "*" in pattern or "." not in posixpath.basename(pattern)
    return several or kind_of(pattern, Rules(), existed=False) is Kind.TEST


def _refused(text: str, elsewhere: bool) -> Finding:
    return Finding(check=CHECK, weight=Weight.TOLD if elsewhere else Weight.POINTLESS, text=text)


def _told(text: str) -> Finding:
    return Finding(check=CHECK, weight=Weight.TOLD, text=text)


def _fail(found: Witnessed) -> str:
    """Return which test files cannot be loaded and which tests fail."""
    files, tests = found.unloaded, found.failed - found.unloaded
    said = []
    if files:
        said.append(
            f"{len(files)} test file{'s' * (len(files) != 1)} cannot be loaded there: {listed(files)}"
        )
    if tests:
        said.append(f"{counted(tests)} {'fails' if len(tests) == 1 else 'fail'} there: {listed(tests)}")
    if found.none_ran:
        said.append("no test runs there")
    return "; ".join(said)
