"""Limits of every gate. A receipt names those that apply to it, and the documentation lists all of them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from loopwright.core.values.findings import CommandFacts

_SETUP: Final = "setup"
_MOST: Final = 10
SEEN: Final = "seen_by_author"
_IN_SOURCE: Final = re.compile(r"\bcargo\s+(?:n?ex)?test\b|--doctest|\bdoctest\b|\bzig\s+(?:build\s+)?test\b")
"""Commands whose tests are in source files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One thing that passing checks do not prove."""

    name: str
    words: str
    """The sentence in the receipt; `{names}` is replaced by the commands that it applies to."""
    applies: Callable[[CommandFacts], bool]
    closed_by: str
    """What would remove the limit, for the documentation."""


LIMITS: Final = (
    Limit(
        name="unseen",
        words="Loopwright saw no tests in these commands, so only their exit code counts: {names}",
        applies=lambda command: command.tests is None,
        closed_by="a test runner that can be watched or that `test_runners` describes, or a JUnit report",
    ),
    Limit(
        name="deceived",
        words="tests run the work's own code, which could deceive the test runner",
        applies=lambda command: command.tests is not None,
        closed_by="reading the change",
    ),
    Limit(
        name="reported",
        words="these commands report their own tests, and no canary checks the report: {names}",
        applies=lambda command: command.reported,
        closed_by="a test runner that can be watched or that `test_runners` describes",
    ),
    Limit(
        name="inside",
        words="the tests of these commands are inside source files, which any task may change: {names}",
        applies=lambda command: _IN_SOURCE.search(command.command) is not None,
        closed_by="tests in separate files; reading the change",
    ),
    Limit(
        name=SEEN,
        words="not every task had a held-out check, so code that answers only the visible checks would pass",
        applies=lambda _: True,
        closed_by="`held_out` checks in every task; reading the change; checks with random input",
    ),
    Limit(
        name="one_machine",
        words="the gates ran on one machine, so the result may depend on it, its network or the date",
        applies=lambda _: True,
        closed_by="`loopwright receipt replay` elsewhere",
    ),
)


def limits_of(commands: Sequence[CommandFacts], *, held_out: bool = False) -> list[tuple[str, str]]:
    """Return what these commands cannot prove, with the name of each limit.

    `held_out` is whether all work also passed held-out checks.
    """
    said = []
    for limit in (one for one in LIMITS if not (held_out and one.name == SEEN)):
        names = [one.name for one in commands if one.name != _SETUP and limit.applies(one)]
        if names:
            more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
            said.append((limit.name, limit.words.format(names=", ".join(names[:_MOST]) + more)))
    return said
