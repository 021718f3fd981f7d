"""Work that may only look right to its tests: it asks whether it is tested, reaches for what tests it, equals anything.

Each of these has honest uses, so none is a failure: the place is named, and somebody other than the visible tests has
to say what it is. Python is read as Python, every other language line by line; whoever wants to hide from a reader can.
"""

import ast
import re
from collections.abc import Iterator
from typing import Final

from loopwright.core.changed_checks import changes_checks, changes_checks_in_lines
from loopwright.core.early_ends import ends_in_lines, ends_in_python
from loopwright.core.equal_to_anything import equal_to_anything
from loopwright.core.gate_files import Kind, Rules, kind_of
from loopwright.core.literals import LONGEST, parsed

ASKS: Final = "asks whether it is being tested"
LOADS: Final = "reaches for the test runner"
CALLER: Final = "looks at who calls it"
EQUAL: Final = "makes something that is equal to anything"
ENDS: Final = "ends the whole process as if all were well"
READS: Final = "names a test's own file"
DEEP: Final = "is nested too deeply to be read"
CHANGES: Final = "changes what tests check with"

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
    (CALLER, re.compile(r"prepareStackTrace|new Error\([^)]*\)\.stack|\bruntime\.Callers?\(")),
)
_COMMENT: Final = re.compile(r"\s*(?://|\*|/\*|#)")
_QUOTED: Final = re.compile(r"['\"`]([^'\"`\s:]{3,200})['\"`]")
CODE: Final = (
    *(".py", ".pyi", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".vue", ".svelte"),
    *(".go", ".rs", ".rb", ".php"),
)
"""How the files end that are read."""
_SCRIPTS: Final = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".vue", ".svelte")


def seeming(path: str, before: str, after: str) -> Iterator[tuple[int, str]]:
    """Yield the added lines of a source file at which work may only look right, with the words for it."""
    if not path.endswith(CODE):
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


# --- Python --------------------------------------------------------------------------------------


def _in_python(tree: ast.Module, path: str) -> Iterator[tuple[int, str]]:
    try:
        for name, lines in (
            (ENDS, ends_in_python(path, tree)),
            (CHANGES, changes_checks(tree)),
            (EQUAL, equal_to_anything(tree)),
        ):
            yield from ((n, name) for n in lines)
    except RecursionError:
        yield from ((n, DEEP) for n in range(1, tree.body[-1].lineno + 1))
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
        case ast.Constant(value=str(text)):
            return ASKS if _VARIABLES.search(text) else READS if _is_test_file(text) else None
    return None


def _is_runner(name: str) -> bool:
    return name.partition(".")[0] in _RUNNERS


def _is_test_file(text: str) -> bool:
    if " " in text or "\n" in text or text.startswith(("/", "http")) or "." not in text:
        return False
    return kind_of(text.removeprefix("./"), Rules(), existed=True) is Kind.TEST


# --- any other language --------------------------------------------------------------------------


def _in_lines(path: str, lines: list[str]) -> Iterator[tuple[int, str]]:
    changed = changes_checks_in_lines(lines) if path.endswith(_SCRIPTS) else ()
    for words, found in ((ENDS, ends_in_lines(path, lines)), (CHANGES, changed)):
        yield from ((n, words) for n in found if not _COMMENT.match(lines[n - 1]))
    for n, line in enumerate(lines, 1):
        if len(line) > LONGEST or _COMMENT.match(line):
            continue
        for words, pattern in _LINES:
            if pattern.search(line):
                yield n, words
        if any(_is_test_file(text) for text in _QUOTED.findall(line)):
            yield n, READS
