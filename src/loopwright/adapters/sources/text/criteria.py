"""Criteria written in words, and the commands among them that can be run."""

import re
from collections.abc import Iterable

from loopwright.config.gates import read_gates
from loopwright.core.values.criteria import commands_in
from loopwright.core.values.policy import GateCommand


def acceptance(entries: Iterable[str]) -> tuple[GateCommand, ...]:
    """Return the checks that can be run out of a list of criteria."""
    return runnable(command for entry in entries for command in commands_in(entry))


def runnable(commands: Iterable[str]) -> tuple[GateCommand, ...]:
    """Return each of these commands once, as a check."""
    gates, _ = read_gates([command for command in dict.fromkeys(commands) if "\0" not in command])
    return gates


def lines_of(text: str) -> tuple[str, ...]:
    """Return the entries of a list in Markdown, or the lines of a plain text, without bullets and boxes."""
    found = (
        re.sub(r"^\s*(?:[-*+]\s+|\d{1,4}[.)]\s+)?(?:\[[ xX~!]\]\s+)?", "", line, count=1)
        for line in text.splitlines()
    )
    return tuple(line.strip() for line in found if line.strip())
