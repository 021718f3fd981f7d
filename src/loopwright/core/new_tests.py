"""New tests, which are welcome: whether they do more than test, or less.

One that changes something outside of itself may make the others pass that run in the same process. One that asks for
nothing proves nothing where it is all that judges a task. Both are found by reading.
"""

import ast
import re
from collections.abc import Iterator
from typing import Final

_PATCHES: Final = frozenset({"setattr", "delattr", "exec", "reload"})
_SYSTEM: Final = frozenset({"modules", "path", "meta_path", "path_hooks"})
_GO_ACTS: Final = re.compile(r"^func (?:init\(\)|TestMain\()|^//go:linkname|\bunsafe\.", re.MULTILINE)
_ASKS: Final = re.compile(
    r"\bexpect\b|\bassert|\brequire\.\w|\bshould\b|\bt\.(?:Error|Fatal|Fail|is|not|deepEqual|equal|ok|same|true|throws)"
    r"|\bEXPECT_|\bXCTAssert|\.toMatch"
)
_CHECKS: Final = ("assert", "fail", "expect")
_CONTEXTS: Final = frozenset({"raises", "warns", "deprecated_call"})


def acts_on_others(path: str, text: str) -> bool:
    """Say whether a new test changes what other tests of the same process see."""
    if path.endswith(".go"):
        return _GO_ACTS.search(text) is not None
    if not path.endswith(".py"):
        return False  # test runners of JavaScript give each file a process or globals of its own
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    imported = set(_imported(tree))
    return any(_acts(node, imported) for node in ast.walk(tree))


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((one.asname or one.name).partition(".")[0] for one in node.names)


def _acts(node: ast.AST, imported: set[str]) -> bool:
    match node:
        case ast.Assign(targets=targets):
            return any(_reaches(target, imported) for target in targets)
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            return _reaches(target, imported)
        case ast.Delete(targets=targets):
            return any(_reaches(target, imported) for target in targets)
        case ast.Call(func=ast.Name(id=name)):
            return name in _PATCHES
        case ast.Call(func=ast.Attribute(attr="reload")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="sys"), attr=name))):
            return name in _SYSTEM  # sys.path.insert and its like
        case ast.Call(func=ast.Attribute(value=ast.Call(func=inner), attr="start")):
            return "patch" in ast.unparse(inner)
    return False


def _reaches(target: ast.AST, imported: set[str]) -> bool:
    """Say whether something is set in what was imported; the environment alone is set by many."""
    if not isinstance(target, ast.Attribute | ast.Subscript):
        return False
    if "environ" in ast.unparse(target):
        return False
    root: ast.AST = target
    while isinstance(root, ast.Attribute | ast.Subscript):
        root = root.value
    return isinstance(root, ast.Name) and root.id in imported


def asks_for_nothing(path: str, text: str) -> bool:
    """Say whether there is nothing in a test file that could fail for what the work does."""
    if not path.endswith(".py"):
        return _ASKS.search(text) is None
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return not any(_asks(node) for node in ast.walk(tree))


def _asks(node: ast.AST) -> bool:
    match node:
        case ast.Assert(test=test):
            return any(isinstance(one, ast.Name | ast.Call) for one in ast.walk(test))
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name.startswith(_CHECKS) or name in _CONTEXTS
    return isinstance(node, ast.Raise)
