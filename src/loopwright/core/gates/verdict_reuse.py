"""Decide when the record of an earlier gate run answers the same question again."""

import posixpath
import re
import shlex
from collections.abc import Iterable
from typing import Final

from loopwright.core.values.findings import Verdict, VerdictStatus, Witnessed
from loopwright.core.values.policy import GateCommand

_SHELL: Final = re.compile(r"[;&|<>$`(){}*?~!\n\\]")
_TEST_PATH: Final = re.compile(r"(?!-)(?:.*/.*|.+\.\w+(?:::.+)?)")
_FLAG: Final = re.compile(r"-[qvsx]+|-race|-short|--test|--?[\w-]+=.*")
"""Options without a value: the next word is a path."""


def is_reusable(verdict: Verdict) -> bool:
    """Return whether a verdict may be reused: it passed, was conclusive and needed no second run."""
    flaky = any(one.flaky for one in verdict.commands)
    return verdict.status is VerdictStatus.PASSED and not verdict.reruns and not flaky


def is_reusable_command(command: str) -> bool:
    """Return whether a command checks the same for every task, because it does not read which task it runs for."""
    return "LOOPWRIGHT_" not in command


def shows(gate: GateCommand, saw: Witnessed | None, narrow: GateCommand, then: Witnessed | None) -> bool:
    """Return whether a gate ran all tests of a narrower command, on another tree, successfully.

    `saw` is what the gate's test runner did on this tree, `then` what the command's runner did in its last
    run.
    """
    if saw is None or then is None or saw.reported or then.reported or saw.problems or then.problems:
        return False
    if then.failed or then.skipped or then.deselected or not then.passed:
        return False
    return narrow.junit is None and then.passed <= saw.passed and narrows(narrow.command, gate.command)


def narrowed_to(command: str, gate: str) -> tuple[str, ...]:
    """Return the test paths to which a command narrows a wider one; empty if it does not narrow it."""
    if not narrows(command, gate):
        return ()
    words, whole = shlex.split(command), shlex.split(gate)
    paths = tuple(posixpath.normpath(word) for word in words if word not in whole)
    folders = [posixpath.normpath(word.removesuffix("...") or ".") for word in whole if word not in words]
    if folders and not all(any(_is_below(path, folder) for folder in folders) for path in paths):
        return ()
    return paths


def names_all(command: str, gates: Iterable[GateCommand], files: Iterable[str]) -> bool:
    """Return whether a command narrows one of the gates to paths that contain all these files."""
    paths = {path.partition("::")[0] for gate in gates for path in narrowed_to(command, gate.command)}
    return bool(paths) and all(any(_is_below(file, path) for path in paths) for file in files)


def _is_below(path: str, folder: str) -> bool:
    return folder == "." or path == folder or path.startswith((f"{folder}/", f"{folder}::"))


def narrows(command: str, gate: str) -> bool:
    """Return whether a command is the gate's with test paths added, or in place of wider ones."""
    if _SHELL.search(command) or _SHELL.search(gate):
        return False
    try:
        words, whole = shlex.split(command), shlex.split(gate)
    except ValueError:
        return False
    if not words or not whole or words[0] != whole[0]:
        return False
    for n, word in enumerate(words):
        takes_value = words[n - 1].startswith("-") and not _FLAG.fullmatch(words[n - 1])
        if word not in whole and (takes_value or not _TEST_PATH.fullmatch(word)):
            return False
    return not any(word.startswith("-") for word in whole if word not in words)
