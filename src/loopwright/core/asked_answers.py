"""What tests ask for, found by reading them: which inputs they show, and which answers they expect for these."""

import ast
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from loopwright.core.literals import LONGEST, in_line, parsed, value_of

_LEAVES: Final = 8
"""So many parts of an input or of an answer are looked at."""
_DEEP: Final = 2
"""So many names are followed one behind the other."""
_PARAM: Final = "param"
_ROW: Final = re.compile(r"[\[{]([^\[\]{}()]*)[\]}]")
_EXPECT: Final = re.compile(r"\bexpect\((?P<a>.+)\)\s*\.(?P<how>[\w.]+)\((?P<b>.*)\)")
_CALLED: Final = re.compile(r"\b(?:assert|require|xctassert|expect_|ensure|check)[\w.!:]*\(", re.IGNORECASE)
_COMPARED: Final = re.compile(r"!==?|===?|(?<=\s)=(?=\s)|\s-eq\s|\|\s*grep\b")
_CALL: Final = re.compile(r"\w\s*\(|\$\(|\|\s*$")
_Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Asked:
    """One thing that a test asks: any of the inputs, and all of the answer."""

    inputs: frozenset[str]
    answer: tuple[str, ...]
    where: str
    """The test, as a person finds it."""


def asked_in_file(path: str, text: str) -> Iterator[Asked]:
    """Yield what a test file asks for."""
    tree = parsed(text) if path.endswith(".py") else None
    if tree is not None:
        yield from _in_python(tree, path)
    else:
        yield from _in_lines(text, path)


def asked_in_command(name: str, command: str) -> Iterator[Asked]:
    """Yield what a command itself asks for: source that it hands to an interpreter, or a comparison in the shell."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    sources = [tree for word in words if " " in word and (tree := parsed(word)) is not None]
    for tree in sources:
        yield from (Asked(one.inputs, one.answer, f"the check {name!r}") for one in _in_python(tree, name))
    for one in _in_lines(command, name):
        yield Asked(one.inputs, one.answer, f"the check {name!r}")


# --- Python --------------------------------------------------------------------------------------


def _in_python(tree: ast.Module, path: str) -> Iterator[Asked]:
    whole = _bound(tree)
    waiting: list[tuple[ast.AST, Mapping[str, ast.AST]]] = [(tree, whole)]
    while waiting:
        node, names = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = {**whole, **_bound(node)}
        for inputs, answer in _asked(node, names):
            found = _asking(inputs, answer, f"{path}:{getattr(node, 'lineno', 1)}", names)
            if found is not None:
                yield found
        waiting += [(child, names) for child in ast.iter_child_nodes(node)]


def _bound(scope: _Scope) -> dict[str, ast.AST]:
    """Return what the names of one scope were set to, wherever in it."""
    found: dict[str, ast.AST] = {}
    waiting: list[ast.AST] = list(scope.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Assign):
            found |= {one.id: node.value for one in node.targets if isinstance(one, ast.Name)}
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
    return found


def _asked(
    node: ast.AST, names: Mapping[str, ast.AST]
) -> Iterator[tuple[Sequence[ast.AST], Sequence[ast.AST]]]:
    """Yield the inputs and the answer of what a node asks for."""
    match node:
        case ast.Compare(ops=[ast.Eq() | ast.Is() | ast.In()], left=left, comparators=[right]):
            yield _sides(left, right, names)
        case ast.Call(args=[first, second, *_]) if _name(node).startswith("assert"):
            yield _sides(first, second, names)
        case ast.List(elts=rows) | ast.Tuple(elts=rows) if rows:
            tables = [_cells(row) for row in rows]
            if all(len(row) > 1 for row in tables):
                yield from ((row[:-1], row[-1:]) for row in tables)
        case ast.Call(func=ast.Attribute(attr="items", value=ast.Dict(keys=keys, values=values))):
            yield from (([key], [value]) for key, value in zip(keys, values, strict=True) if key is not None)


def _cells(row: ast.AST) -> list[ast.expr]:
    if isinstance(row, ast.Tuple | ast.List):
        return row.elts
    return row.args if isinstance(row, ast.Call) and _name(row) == _PARAM else []


def _name(node: ast.Call) -> str:
    match node.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _sides(
    left: ast.AST, right: ast.AST, names: Mapping[str, ast.AST]
) -> tuple[Sequence[ast.AST], Sequence[ast.AST]]:
    """Return what was called, and what is expected of it: the side that calls something is the first of them."""
    if _calls(right, names) and not _calls(left, names):
        return [right], [left]
    return [left], [right]


def _calls(node: ast.AST, names: Mapping[str, ast.AST]) -> bool:
    if isinstance(node, ast.Name) and node.id in names:
        node = names[node.id]
    return any(isinstance(one, ast.Call) for one in ast.walk(node))


def _asking(
    inputs: Sequence[ast.AST], answer: Sequence[ast.AST], where: str, names: Mapping[str, ast.AST]
) -> Asked | None:
    given = [value for node in inputs for value in _values(node, names)]
    expected = [value for node in answer for value in _values(node, names)]
    return Asked(frozenset(given), tuple(expected[:_LEAVES]), where) if given and expected else None


def _values(node: ast.AST, names: Mapping[str, ast.AST]) -> list[str]:
    """Return the literals of an expression, those behind its names included, as long as these are few."""
    found: list[str] = []
    waiting: list[tuple[ast.AST, int]] = [(node, _DEEP)]
    while waiting and len(found) < _LEAVES:
        one, deep = waiting.pop(0)
        is_literal, value = value_of(one)
        if is_literal:
            found += [value] if value is not None else []
        elif isinstance(one, ast.Name) and deep and one.id in names:
            waiting.append((names[one.id], deep - 1))
        else:
            waiting += [(child, deep) for child in ast.iter_child_nodes(one)]
    return found


# --- any other language --------------------------------------------------------------------------


def _in_lines(text: str, path: str) -> Iterator[Asked]:
    for n, line in enumerate(text.splitlines(), 1):
        if len(line) > LONGEST:
            continue
        for inputs, answer in _in_words(line):
            given = [one.value for part in inputs for one in in_line(part)]
            expected = [one.value for one in in_line(answer)]
            if given and expected:
                yield Asked(frozenset(given), tuple(expected[:_LEAVES]), f"{path}:{n}")


def _in_words(line: str) -> Iterator[tuple[Sequence[str], str]]:
    """Yield the inputs and the answer that a line of a test has, as source."""
    if found := _EXPECT.search(line):
        yield [found["a"]], found["b"]
        return
    for found in list(_CALLED.finditer(line))[:_LEAVES]:
        parts = [part for part in split_top(line[found.end() :]) if any(True for _ in in_line(part))]
        calls = [part for part in parts if _CALL.search(part)]
        others = [part for part in parts if part not in calls]
        if calls and others:
            yield calls[:1], others[0]
            return
    if found := _COMPARED.search(line):
        left, right = line[: found.start()], line[found.end() :]
        if _CALL.search(right) and not _CALL.search(left):
            left, right = right, left
        # A quoted command of a shell is read like any other.
        yield [left.replace('"$(', " $(").replace(')"', ") ")], right
    for row in _ROW.finditer(line):
        cells = split_top(row[1])
        if len(cells) > 1:
            yield cells[:-1], cells[-1]


def split_top(text: str) -> list[str]:
    """Split what stands between brackets at the commas that are in no others; it ends where its bracket does."""
    parts, start, depth, quote = [], 0, 0, ""
    for n, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote and text[n - 1] != "\\" else quote
        elif letter in "\"'`":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            if depth == 0:
                text = text[:n]
                break
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:n])
            start = n + 1
    return [*parts, text[start:]]
