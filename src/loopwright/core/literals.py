"""Numbers and words as they stand in source, found by reading: where each is, and whether it can decide anything there.

Python is read as Python, every other language line by line. Nothing here raises, whatever a file holds.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

LONGEST: Final = 500
"""A line that is longer was not written by hand: it is left out."""
_LARGEST: Final = 300_000
"""A Python file with more characters is read line by line as well."""
_DIGITS: Final = 40
_TOKEN: Final = re.compile(
    r"""
      (?P<comment>//.*|(?<!\w)\#(?!\w).*|/\*.*?(?:\*/|$))
    | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)
    | (?P<open>["'`].*)
    | (?<![\w.])(?P<number>-?(?:0[xX][0-9a-fA-F_]+|[0-9][0-9_]*(?:\.[0-9_]+)?(?:[eE][+-]?[0-9]+)?))(?![\w.])
    """,
    re.VERBOSE,
)
_ESCAPES: Final = {r"\n": "\n", r"\t": "\t", r"\"": '"', r"\'": "'", r"\\": "\\"}
_ESCAPED: Final = re.compile(r"\\[nt\"'\\]")
_NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_CALCULATES: Final = frozenset("*/%<>")
_ARITHMETIC: Final = (ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift, ast.MatMult)
_SIZES: Final = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True, slots=True)
class Literal:
    """One literal that is not trivial."""

    value: str
    """The same for everything that means the same: 17, 17.0, 0x11 and "17"."""
    line: int
    column: int
    decides: bool = True
    """Not when it is only calculated with, compared by size, or is a word that is handed straight to a call."""
    function: int = 0
    """The line on which the function around it begins; 0 outside of any, and where that is not known."""


def canonical(value: object) -> str | None:
    """Return what a literal stands for, None where it is too common to tell anything."""
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    if isinstance(value, str):
        text = value.strip()
        if len(text) <= _DIGITS and _NUMBER.fullmatch(text):
            return canonical(float(text) if "." in text else int(text))
        return repr(value) if len(text) > 1 else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value in (0, 1, -1):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and abs(value) >= 10**_DIGITS:
        return hex(value)  # decimal digits without end are refused, and these tell as much
    return repr(value)


def parsed(text: str) -> ast.Module | None:
    """Read Python source; None when it is none."""
    if len(text) > _LARGEST:
        return None
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def literals_of(path: str, text: str) -> Iterator[Literal]:
    """Yield what stands in a source file; docstrings and comments are no source."""
    tree = parsed(text) if path.endswith(".py") else None
    if tree is not None:
        yield from _of_python(tree)
        return
    for n, line in enumerate(text.splitlines(), 1):
        yield from in_line(line, n)


def in_line(line: str, n: int = 1) -> Iterator[Literal]:
    """Yield the literals of one line in any language that quotes words and writes numbers as most do."""
    if len(line) > LONGEST:
        return
    for found in _TOKEN.finditer(line):
        if found["comment"] or found["open"]:
            continue
        raw = found["text"]
        value = canonical(_unescaped(raw[1:-1]) if raw is not None else _number(found["number"]))
        if value is not None:
            before, after = line[: found.start()].rstrip(), line[found.end() :].lstrip()
            near = f"{before[-1:]}{after[:1]}"
            handed = raw is not None and re.search(r"\w\($", before[-80:]) is not None
            yield Literal(value, n, found.start(), decides=not (handed or _CALCULATES & set(near)))


def _number(text: str) -> int | float:
    plain = text.replace("_", "")[:_DIGITS]
    try:
        return int(plain, 0)
    except ValueError:
        try:
            return float(plain)
        except ValueError:
            return 0


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: _ESCAPES[found[0]], text)


def value_of(node: ast.AST) -> tuple[bool, str | None]:
    """Say whether a node is a literal, and what it stands for."""
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
    ):
        number = node.operand.value
        signed = isinstance(number, int | float) and not isinstance(number, bool)
        return True, canonical(-number) if signed else None  # type: ignore[operator]
    if isinstance(node, ast.Constant):
        return True, canonical(node.value)
    return False, None


def _of_python(tree: ast.Module) -> Iterator[Literal]:
    waiting: list[tuple[ast.AST, int, bool]] = [(tree, 0, True)]
    while waiting:
        node, function, decides = waiting.pop()
        is_literal, value = value_of(node)
        if is_literal:
            if value is not None:
                yield Literal(value, node.lineno, node.col_offset, decides, function)  # type: ignore[attr-defined]
            continue
        # What stands in a text that is put together, or alone on its line, is shown to people.
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Expr) and value_of(node.value)[0]):
            continue
        inside = node.lineno if isinstance(node, _Function) else function
        # By identity in a set: a call may have tens of thousands of arguments.
        idle = {id(one) for one in _idle(node)}
        waiting += [(child, inside, id(child) not in idle) for child in ast.iter_child_nodes(node)]


def _idle(node: ast.AST) -> Sequence[ast.AST]:
    """Return the parts of a node that decide nothing if they are literals."""
    match node:
        case ast.BinOp(op=op, left=left, right=right) if isinstance(op, _ARITHMETIC):
            return (left, right)
        case ast.Compare(ops=ops, left=left, comparators=others) if any(isinstance(op, _SIZES) for op in ops):
            return (left, *others)
        case ast.Call(args=args):
            return [one for one in args if _is_word(one)]
        case ast.keyword(value=value) if _is_word(value):
            return (value,)
    return ()


def _is_word(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
