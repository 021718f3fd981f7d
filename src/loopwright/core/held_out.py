"""Checks of a task that its agent never sees: it can then only pass them by doing what it was asked for."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from loopwright.core.findings import Verdict
from loopwright.core.policy import GateCommand, HeldFile, HeldOut
from loopwright.core.verdicts import command_id, is_bad, is_of

_ADVICE = (
    "Neither the check nor what it found is shown. Read the task again, and do all of what it asks for, not only what "
    "the checks that you know look at."
)


def marked(check: GateCommand, files: Sequence[HeldFile]) -> GateCommand:
    """Return a check whose name also says which files it ran with, so that other files are another question."""
    if not files:
        return check
    mark = hashlib.sha256("\n".join(f"{file.sha256} {file.path}" for file in files).encode()).hexdigest()
    return replace(check, name=f"{check.name} [{mark[:8]}]")


def held_commands(held: Sequence[HeldOut]) -> tuple[GateCommand, ...]:
    """Return what held-out checks run."""
    return tuple(one.check for one in held)


def veiled(verdict: Verdict) -> Verdict:
    """Return a verdict on held-out checks as it is recorded: how each ended, and nothing of what it looked at.

    What is recorded is also told to others and exported beside the project. The output stays with the run's files.
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
        commands=tuple(replace(one, tail="") for one in verdict.commands),
        reruns=tuple(
            replace(rerun, commands=tuple(replace(one, tail="") for one in rerun.commands))
            for rerun in verdict.reruns
        ),
    )


def not_passed(held: Sequence[HeldOut], verdict: Verdict) -> tuple[str, str]:
    """Return what is said of held-out checks that did not pass: on the record, and to the next attempt.

    Neither has more than their names and what the plan's author wants to be told: no output, no names of tests.
    """
    bad = [check for check in verdict.checks if is_bad(check)]
    failed = {
        result.name
        for n, result in enumerate(verdict.commands, 1)
        if result.refused or any(is_of(check, command_id(n, result.name)) for check in bad)
    }
    wrong = [one for one in held if one.check.name in failed]
    names = ", ".join(one.check.name for one in wrong) or ", ".join(sorted(failed))
    told = f"A held-out check did not pass: {names}"
    return told, "\n".join([told, *(one.hint for one in wrong if one.hint), _ADVICE])
