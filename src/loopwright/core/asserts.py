"""What a changed Python test no longer asks for, found by reading both versions and never by running them."""

import ast
from collections import Counter
from collections.abc import Iterator
from typing import Final

_MAX_SHOWN: Final = 160
_SKIPS: Final = frozenset(
    {"skip", "skipif", "skipIf", "skipUnless", "xfail", "expectedFailure", "importorskip", "skipTest"}
)
_CONTEXTS: Final = frozenset({"raises", "warns", "deprecated_call"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def weakened(before: str, after: str | None) -> list[str]:
    """Say in plain words which checks of a test file are gone, ask for less, or are skipped; None is no file.

    A check that was moved to another test of the same file still counts, one that was put differently does not: whoever
    may change what a test asks for says so in the task's scope.
    """
    old = _parse(before)
    if old is None:
        return []  # it could not be run before either
    if after is None:
        return [f"{name} was removed" for name, _ in _tests(old)] or ["the file was removed"]
    new = _parse(after)
    if new is None:
        return ["it cannot be read as Python any more"]
    found = []
    names, kept = {name for name, _ in _tests(old)}, dict(_tests(new))
    found += [f"{name} was removed" for name in sorted(names - kept.keys())]
    gone = Counter(_checks(old)) - Counter(_checks(new))
    found += [f"no longer checked: {_shown(text)}" for text in gone.elements()]
    skips = Counter(_skips(new)) - Counter(_skips(old))
    found += [f"may be skipped now: {_shown(text)}" for text in skips.elements()]
    returns = {name for name, test in kept.items() if _ends_early(test)}
    were = {name for name, test in _tests(old) if _ends_early(test)}
    return found + [f"{name} ends before its checks" for name in sorted((returns - were) & names)]


def _parse(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _tests(tree: ast.Module) -> Iterator[tuple[str, _Function]]:
    """Yield every test with its name, as test runners find them."""
    for node in tree.body:
        if isinstance(node, _Function) and node.name.startswith("test"):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, _Function) and inner.name.startswith("test"):
                    yield f"{node.name}.{inner.name}", inner


def _checks(tree: ast.AST) -> Iterator[str]:
    """Yield everything that can fail a test on purpose, as text; the words of a message do not count."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            if not isinstance(node.test, ast.Constant):
                yield f"assert {ast.unparse(node.test)}"
        elif isinstance(node, ast.Call) and _is_check(_called(node)):
            yield ast.unparse(node)


def _is_check(name: str) -> bool:
    return name.startswith(("assert", "fail")) or name in _CONTEXTS


def _called(node: ast.Call) -> str:
    match node.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _skips(tree: ast.AST) -> Iterator[str]:
    """Yield what may keep a test from being run, or from counting."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node) in _SKIPS:
            yield ast.unparse(node)
        elif isinstance(node, _Function | ast.ClassDef):
            for mark in node.decorator_list:
                if not isinstance(mark, ast.Call) and ast.unparse(mark).rpartition(".")[2] in _SKIPS:
                    yield f"{ast.unparse(mark)} on {node.name}"
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            named = {ast.unparse(target) for target in targets}
            if named & {"__test__", "collect_ignore", "collect_ignore_glob"}:
                yield ast.unparse(node)


def _ends_early(test: _Function) -> bool:
    """Say whether a test returns or raises at its top before the last of its checks."""
    ended = False
    for statement in test.body:
        if ended and any(True for _ in _checks(statement)):
            return True
        ended = ended or isinstance(statement, ast.Return)
    return False


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_SHOWN else line[: _MAX_SHOWN - 1] + "…"
