"""What the commands of a gate did to the tree that they judge: it is to be the one that lands, with its own files."""

from collections.abc import Callable
from dataclasses import replace

from loopwright.core.gates.missing_tests import listed
from loopwright.core.gates.verdicts import command_id, judged_again
from loopwright.core.gates.witnesses import WITNESS
from loopwright.core.values.findings import Check, CheckStatus, Verdict


def held_to_files(
    verdict: Verdict, known: frozenset[str], judges: Callable[[str], bool], *, setup: str = ""
) -> Verdict:
    """Hold against a gate what its commands changed: a file that judges fails it, any other is named.

    `known` is what the gate wrote on the tree before the work as well: a project that does so is left alone. The setup
    judges nothing, so it may write what is there already.
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
