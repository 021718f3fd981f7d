"""Work that may only look right to its tests: it asks whether it is tested, reaches for what tests it, equals anything.

Each of these has honest uses, so none is a failure: the place is named, and somebody other than the visible tests has
to say what it is. Python is read as Python, every other language line by line; whoever wants to hide from a reader can.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Final

from loopwright.core.early_ends import ends_in_lines, ends_in_python
from loopwright.core.gate_files import Kind, Rules, kind_of
from loopwright.core.literals import LONGEST, parsed

ASKS: Final = "asks whether it is being tested"
LOADS: Final = "reaches for the test runner"
CALLER: Final = "looks at who calls it"
EQUAL: Final = "makes something that is equal to anything"
ENDS: Final = "ends the whole process as if all were well"
READS: Final = "names a test's own file"
CHANGES: Final = "changes what tests check with"
SILENCES: Final = "silences"

_RUNNERS: Final = frozenset({"pytest", "_pytest", "unittest", "nose", "nose2", "hypothesis"})
_LOOKUPS: Final = frozenset({"get", "import_module", "find_spec", "__import__"})
_FRAMES: Final = frozenset(
    {"_getframe", "currentframe", "settrace", "setprofile", "get_referrers", "get_objects", "_current_frames"}
)
_VARIABLES: Final = re.compile(
    r"\b(?:PYTEST_\w+|LOOPWRIGHT_(?:WITNESS|RUN|ATTEMPT|TASK|PLAN)|JEST_WORKER_ID|VITEST(?:_\w+)?|NODE_TEST_CONTEXT|PHPUNIT_\w+)\b"
)
_LINES: Final = (
    (
        ASKS,
        re.compile(
            rf"{_VARIABLES.pattern}|NODE_ENV\W{{0,4}}\s*[!=]==?\s*['\"`]test|\bcfg!\(test\)|\btesting\.Testing\(\)"
            r"|flag\.Lookup\(\"test\.|os\.Args\[0\].*\.test\"|defined\?\(\s*(?:RSpec|Minitest)"
        ),
    ),
    (
        LOADS,
        re.compile(
            r"(?:require\(|\bfrom\s+|\bimport\s+|\bimport\()\s*['\"](?:node:test|vitest|@jest/globals|jest|mocha|chai|ava|tap)['\"]"
            r"|^\s*(?:import\s+)?(?:\w+\s+)?\"testing\"\s*$"
        ),
    ),
    (
        CHANGES,
        re.compile(
            r"\bassert(?:\.\w+)+\s*=(?![=>])|\b(?:globalThis|global|window)\.(?:expect|test|it|describe|assert)\s*=(?!=)"
            r"|(?:Object\.assign|Object\.defineProperty|Object\.defineProperties|Reflect\.set)\(\s*(?:assert|expect|globalThis|global)\b"
        ),
    ),
    (CALLER, re.compile(r"prepareStackTrace|new Error\([^)]*\)\.stack|\bruntime\.Callers?\(")),
)
_SILENCED: Final = {
    "mypy": r"#\s*(?:type|mypy):\s*ignore",
    "pyright": r"#\s*(?:type|pyright):\s*ignore",
    "ruff": r"#\s*(?:noqa|ruff:\s*noqa)",
    "flake8": r"#\s*(?:noqa|flake8:\s*noqa)",
    "pylint": r"#\s*pylint:\s*(?:disable|skip-file)",
    "bandit": r"#\s*nosec",
    "cov": r"#\s*pragma:\s*no cover|istanbul ignore|[cv]8 ignore",
    "eslint": r"eslint-disable",
    "biome": r"biome-ignore",
    "tsc": r"@ts-(?:ignore|nocheck|expect-error)",
    "golangci-lint": r"//\s*nolint",
    "clippy": r"#!?\[allow\(clippy",
}
"""Comments by which source is spared a check, by the program that makes it."""
_COMMENT: Final = re.compile(r"\s*(?://|\*|/\*|#)")
_QUOTED: Final = re.compile(r"['\"`]([^'\"`\s:]{3,200})['\"`]")
_CODE: Final = (
    *(
        ".py",
        ".pyi",
        ".js",
        ".jsx",
        ".mjs",
        ".cjs",
        ".ts",
        ".tsx",
        ".vue",
        ".svelte",
        ".go",
        ".rs",
        ".rb",
        ".php",
    ),
)


def seeming(path: str, before: str, after: str) -> Iterator[tuple[int, str]]:
    """Yield the added lines of a source file at which work may only look right, with the words for it."""
    if not path.endswith(_CODE):
        return
    old = {line.strip() for line in before.splitlines()}
    lines = after.splitlines()
    added = {n for n, line in enumerate(lines, 1) if line.strip() not in old}
    if not added:
        return
    tree = parsed(after) if path.endswith(".py") else None
    found = _in_python(tree, path) if tree is not None else _in_lines(path, lines)
    seen: set[int] = set()
    for n, words in sorted(found):
        if n in added and n not in seen:
            seen.add(n)
            yield n, words


def silenced(path: str, before: str, after: str, commands: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the added lines that a checker is told to pass over, where one of the commands runs just that checker."""
    said = " ".join(commands)
    wanted = [
        (tool, re.compile(words)) for tool, words in _SILENCED.items() if re.search(rf"\b{tool}\b", said)
    ]
    if not wanted or not path.endswith(_CODE):
        return
    old = {line.strip() for line in before.splitlines()}
    for n, line in enumerate(after.splitlines(), 1):
        if len(line) <= LONGEST and line.strip() not in old:
            yield from ((n, f"{SILENCES} {tool}") for tool, words in wanted if words.search(line))


# --- Python --------------------------------------------------------------------------------------


def _in_python(tree: ast.Module, path: str) -> Iterator[tuple[int, str]]:
    yield from ((n, ENDS) for n in ends_in_python(path, tree))
    for node in ast.walk(tree):
        words = _of_node(node)
        if words is not None:
            yield getattr(node, "lineno", 1), words


def _of_node(node: ast.AST) -> str | None:
    match node:
        case ast.Import(names=names):
            return LOADS if any(_is_runner(one.name) for one in names) else None
        case ast.ImportFrom(module=str(module), level=0):
            ends = module == "os" and any(one.name == "_exit" for one in node.names)
            return LOADS if _is_runner(module) else ENDS if ends else None
        case ast.Compare(left=ast.Constant(value=str(text)), ops=[ast.In() | ast.NotIn()]) if _is_runner(
            text
        ):
            return ASKS
        case ast.Subscript(slice=ast.Constant(value=str(text))) if _is_runner(text):
            return LOADS
        case ast.Call(func=func, args=[ast.Constant(value=str(text)), *_]) if _is_runner(text):
            return LOADS if ast.unparse(func).rpartition(".")[2] in _LOOKUPS else None
        case ast.Attribute(attr=name) | ast.Name(id=name) if name in _FRAMES:
            return CALLER
        case ast.Attribute(attr="stack", value=ast.Name(id="inspect")):
            return CALLER
        case ast.FunctionDef(name="__eq__", args=ast.arguments(args=[_, other])):
            return None if _uses(node.body, other.arg) else EQUAL
        case ast.Assign(
            targets=[ast.Name(id="__eq__")], value=ast.Lambda(args=ast.arguments(args=[_, other]), body=body)
        ):
            return None if _uses([body], other.arg) else EQUAL
        case ast.Constant(value=str(text)):
            return ASKS if _VARIABLES.search(text) else READS if _is_test_file(text) else None
    return None


def _is_runner(name: str) -> bool:
    return name.partition(".")[0] in _RUNNERS


def _uses(body: list[ast.stmt] | list[ast.expr], name: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for part in body for one in ast.walk(part))


def _is_test_file(text: str) -> bool:
    if " " in text or "\n" in text or text.startswith(("/", "http")) or "." not in text:
        return False
    return kind_of(text.removeprefix("./"), Rules(), existed=True) is Kind.TEST


# --- any other language --------------------------------------------------------------------------


def _in_lines(path: str, lines: list[str]) -> Iterator[tuple[int, str]]:
    for n in ends_in_lines(path, lines):
        if not _COMMENT.match(lines[n - 1]):
            yield n, ENDS
    for n, line in enumerate(lines, 1):
        if len(line) > LONGEST or _COMMENT.match(line):
            continue
        for words, pattern in _LINES:
            if pattern.search(line):
                yield n, words
        if any(_is_test_file(text) for text in _QUOTED.findall(line)):
            yield n, READS
