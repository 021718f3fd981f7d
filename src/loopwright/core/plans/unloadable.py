"""Make a project's own modules unloadable: a gate that stays green on such a tree does not judge the tree.

Pure functions. Python, JavaScript and TypeScript files get one statement that raises when the module is
loaded, so linters and type checkers do not complain. Files of compiled languages get an invalid line.
"""

import ast
import posixpath
import re
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from loopwright.core.gates.witnesses import is_test_runner
from loopwright.core.integrity.gate_files import Rules, kind_of
from loopwright.core.plans.base_checks import Condition
from loopwright.core.values.findings import CommandResult, Witnessed
from loopwright.core.values.policy import GateCommand

MARK: Final = "loopwright made this module unloadable"
"""In the output of a command, it proves that the command loads the tree."""
_PYTHON: Final = f'__loopwright__ = int("{MARK}")\n'
_SCRIPT: Final = f'if (Date.now()) throw new Error("{MARK}");\n'
_SCRIPTS: Final = frozenset({".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"})
_COMPILED: Final = frozenset(
    {".go", ".rs", ".java", ".kt", ".scala", ".groovy", ".cs", ".fs", ".swift", ".c", ".cc", ".cpp", ".cxx"}
    | {".dart", ".hs", ".erl", ".ex"}
)
_FOLDERS: Final = re.compile(r"\S+/(?=\S)")
"""The folders of a path, which may have the name of a test runner."""
_STANDARD: Final = frozenset(sys.stdlib_module_names)
_CONFIGURATION: Final = re.compile(r"\..*|.*\.config\.\w+|.*\.d\.[cm]?ts|(?:[Gg]ulp|[Gg]runt)file\.\w+")


def is_product(path: str, rules: Rules) -> bool:
    """Return whether a file is source that a gate should judge, and can be made unloadable."""
    suffix = posixpath.splitext(path)[1]
    if suffix != ".py" and suffix not in _SCRIPTS | _COMPILED:
        return False
    if _CONFIGURATION.fullmatch(posixpath.basename(path)):
        return False
    return kind_of(path, rules, existed=True) is None


def unloadable(path: str, text: str) -> str:
    """Return a source file that cannot be loaded or compiled."""
    suffix = posixpath.splitext(path)[1]
    if suffix == ".py":
        return _raising(text)
    if suffix in _SCRIPTS:
        first, _, rest = text.partition("\n")
        return f"{first}\n{_SCRIPT}{rest}" if first.startswith("#!") else _SCRIPT + text
    return f"{MARK}\n{text}"


def _raising(text: str) -> str:
    """Insert the statement at the first place that Python allows: after the docstring and `__future__` imports."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return _PYTHON  # for another version of Python: nothing can be kept
    lines = text.split("\n")
    line = next((n for n, each in enumerate(lines) if not each.startswith("#")), len(lines))
    for n, statement in enumerate(body):
        docstring = n == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not docstring and not future:
            break
        line = statement.end_lineno or line
    return "\n".join((*lines[:line], _PYTHON, *lines[line:]))


# --- what follows from how a gate ends there ---------------------------------------------------------------


class Judging(StrEnum):
    """Whether a gate judges the tree that it runs in."""

    JUDGES = "judges"
    BLIND = "blind"
    """It ends as on the base commit, although nothing of the project can be loaded."""
    UNKNOWN = "unknown"
    """It could not run, or also fails on the base commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """How a gate ended on the base commit."""

    condition: Condition
    seen: Witnessed | None = None


def is_probed(gate: GateCommand, before: Before | None) -> bool:
    """Return whether a gate runs tests on the base commit: other gates, such as linters, need not load anything."""
    named = is_test_runner(_FOLDERS.sub("", gate.command))
    if before is None:
        return named
    ran = before.condition in (Condition.GREEN, Condition.RED)
    return ran and (named or before.seen is not None)


def judging(result: CommandResult, seen: Witnessed | None, before: Before | None) -> Judging:
    """Return what a gate's result means if none of the project's modules can be loaded."""
    if MARK in result.tail:
        return Judging.JUDGES
    if result.timed_out or result.exit_code is None or result.exit_code < 0 or result.exit_code in (126, 127):
        return Judging.UNKNOWN
    passed = before.seen.passed if before is not None and before.seen is not None else frozenset()
    if passed - (seen.passed if seen is not None else frozenset()):
        return Judging.JUDGES
    if result.exit_code == 0 or (passed and before is not None and before.condition is Condition.RED):
        return Judging.BLIND
    green = before is not None and before.condition is Condition.GREEN
    return Judging.JUDGES if green else Judging.UNKNOWN


def module_names(paths: Iterable[str]) -> frozenset[str]:
    """Return the names under which the project's Python modules may be imported."""
    files = (path.removesuffix(".py") for path in paths if path.endswith(".py"))
    return frozenset(part for path in files for part in path.split("/")) - _STANDARD


def own_file(module: str, file: str, paths: Collection[str]) -> str | None:
    """Return the project's file that matches a loaded module; `paths` are the project's Python files."""
    tail = module.replace(".", "/") + ("/__init__.py" if posixpath.basename(file) == "__init__.py" else ".py")
    for path in paths:
        root = path.removesuffix(tail)
        # In a package it would have the package's name in front.
        if root != path and (not root or root.endswith("/")) and f"{root}__init__.py" not in paths:
            return path
    return None
