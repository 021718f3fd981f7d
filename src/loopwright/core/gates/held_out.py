"""Held-out checks of a task: its agent never sees them, so it cannot write code for these checks alone."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from loopwright.core.gates.verdicts import command_id, is_bad, is_of
from loopwright.core.integrity.gate_files import is_test_file
from loopwright.core.rows.model import Task
from loopwright.core.values.findings import Verdict
from loopwright.core.values.policy import GateCommand, HeldFile, HeldOut
from loopwright.core.values.states import TaskState

_ADVICE = (
    "Neither the check nor what it found is shown. Read the task again, and do all of what it asks for, not only what "
    "the checks that you know look at."
)


def marked(check: GateCommand, files: Sequence[HeldFile]) -> GateCommand:
    """Return a check whose name includes a hash of its files, so that different files make a different check."""
    if not files:
        return check
    mark = hashlib.sha256("\n".join(f"{file.sha256} {file.path}" for file in files).encode()).hexdigest()
    return replace(check, name=f"{check.name} [{mark[:8]}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """The held-out checks of one task, to run on the result of its plan."""

    key: str
    """The task's key."""
    held: tuple[HeldOut, ...]

    @property
    def files(self) -> tuple[HeldFile, ...]:
        """The files that they need in the tree."""
        return held_files(self.held)


def proposed(acceptance: Sequence[GateCommand]) -> str:
    """Return a held-out check derived from a task's acceptance, as a line for the plan; it still needs other inputs."""
    command = acceptance[0].command
    files = [word for word in command.split() if is_test_file(word)]
    if files:
        mine = f"held_out/{files[0].rpartition('/')[2]}"
        run = command.replace(files[0], mine)
        return f"held_out: {{run: {json.dumps(run)}, files: {json.dumps(mine)}}}"
    return f"held_out: [{json.dumps(command)}]"


def unseen_of(tasks: Sequence[Task]) -> tuple[Unseen, ...]:
    """Return the held-out checks of tasks, each list once: a fix task shares those of the task that it fixes.

    Cancelled tasks are left out, because the result does not contain their work.
    """
    found: dict[tuple[HeldOut, ...], Unseen] = {}
    for task in tasks:
        if task.held_out and task.status is not TaskState.CANCELLED:
            found.setdefault(task.held_out, Unseen(key=task.key, held=task.held_out))
    return tuple(found.values())


def held_files(held: Sequence[HeldOut]) -> tuple[HeldFile, ...]:
    """Return the files that held-out checks need."""
    return tuple(file for one in held for file in one.files)


def held_commands(held: Sequence[HeldOut]) -> tuple[GateCommand, ...]:
    """Return the commands of held-out checks."""
    return tuple(one.check for one in held)


def veiled(verdict: Verdict) -> Verdict:
    """Return a verdict on held-out checks as it is recorded: how each ended, without names and output.

    Records are shown elsewhere and exported beside the project. The output stays with the run's files.
    """
    checks = []
    for n, result in enumerate(verdict.commands, 1):
        prefix = command_id(n, result.name)
        own = [check for check in verdict.checks if is_of(check, prefix)]
        checks += [
            replace(check, id=f"{prefix}/{k}", name=result.name, message="") for k, check in enumerate(own, 1)
        ]
    return replace(
        verdict,
        checks=tuple(checks),
        # Test names, too, would reveal what the checks cover.
        left_open=("something in it that must stay secret",) if verdict.left_open else (),
        notes=(),
        commands=tuple(replace(one, tail="", known_failed=()) for one in verdict.commands),
        reruns=tuple(
            replace(rerun, commands=tuple(replace(one, tail="") for one in rerun.commands))
            for rerun in verdict.reruns
        ),
    )


def not_passed(held: Sequence[HeldOut], verdict: Verdict) -> tuple[str, str]:
    """Return the texts about held-out checks that failed: one for the record, one for the next attempt.

    Both contain only the names and the hints of the plan's author: no output, no names of tests.
    """
    names, hints = _wrong(held, verdict)
    told = f"A held-out check did not pass: {names}"
    return told, "\n".join([told, *hints, _ADVICE])


def broken_in(found: Sequence[tuple[Unseen, Verdict]]) -> tuple[str, str]:
    """Return the texts about held-out checks that fail on the result: one with names, one for an agent."""
    wrong = [(one.key, *_wrong(one.held, verdict)) for one, verdict in found]
    told = "; ".join(f"{names} of task {key!r}" for key, names, _ in wrong)
    hints = [hint for _, _, some in wrong for hint in some]
    return told, "\n".join([f"Held-out checks do not pass on the result: {told}", *hints, _ADVICE])


def joined(broken: Sequence[Unseen]) -> tuple[HeldOut, ...]:
    """Return the held-out checks of the task that fixes all of these.

    If two tasks have different files at one path, the tree cannot hold both: the later task's checks are left
    to the result.
    """
    held: tuple[HeldOut, ...] = ()
    lies: dict[str, str] = {}
    for one in broken:
        if all(lies.get(file.path, file.sha256) == file.sha256 for file in one.files):
            lies |= {file.path: file.sha256 for file in one.files}
            held += tuple(check for check in one.held if check not in held)
    return held


def _wrong(held: Sequence[HeldOut], verdict: Verdict) -> tuple[str, list[str]]:
    """Return the names of the checks that failed, and their author's hints."""
    bad = [check for check in verdict.checks if is_bad(check)]
    failed = {
        result.name
        for n, result in enumerate(verdict.commands, 1)
        if result.refused or any(is_of(check, command_id(n, result.name)) for check in bad)
    }
    wrong = [one for one in held if one.check.name in failed]
    names = ", ".join(one.check.name for one in wrong) or ", ".join(sorted(failed))
    return names, [one.hint for one in wrong if one.hint]
