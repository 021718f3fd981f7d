"""Changes that change nothing: comments, docstrings, blank lines and the like, in files that were there before."""

import ast
import re
from typing import Final

from loopwright.core.literals import parsed

_CODE: Final = re.compile(
    r".*\.(?:py|[cm]?[jt]sx?|go|rs|rb|java|kt|scala|cs|php|swift|c|h|cc|cpp|hpp|dart|ex|exs|sh)"
)
_COMMENT: Final = re.compile(r"\s*(?:#(?!!)|//|/\*|\*).*")


def is_idle(path: str, before: str, after: str) -> bool:
    """Say whether a program does the same with both versions of a file, as far as reading can tell."""
    if not _CODE.fullmatch(path):
        return False
    if path.endswith(".py"):
        old, new = parsed(before), parsed(after)
        return old is not None and new is not None and _told(old) == _told(new)
    return _lines(before) == _lines(after)


def _told(tree: ast.Module) -> str:
    """Return what a module does, without the words in it that only people read."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [one for one in node.body if not _is_words(one)]
    return ast.dump(tree)


def _is_words(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip() and not _COMMENT.fullmatch(line)]
