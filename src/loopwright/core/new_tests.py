"""New tests, which are welcome: whether they do more than test, or less.

One that changes something outside of itself may make the others pass that run in the same process. One that asks for
nothing proves nothing where it is all that judges a task. Both are found by reading.
"""

import ast
import re
from collections.abc import Collection, Iterator
from typing import Final

from loopwright.core.acting_tests import acts_at, steers_a_runner
from loopwright.core.search_paths import OWN

_GO_ACTS: Final = re.compile(
    r"^func (?:init\(\)|TestMain\()|^//go:linkname|\bunsafe\.|^\}\(\)"
    r"|^var\s+\w+\s*(?:\w+\s*)?=\s*func\([^\n]*\}\(|^var\s+_\s*=\s*(?!Describe|DescribeTable|Context|When|Suite)[\w.]+\(",
    re.MULTILINE,
)
_SCRIPTS: Final = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")
_BLANKED: Final = re.compile(
    r"//[^\n]*|/\*.*?\*/|'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|`(?:[^`\\]|\\.)*`", re.DOTALL
)
_JS_IDLE: Final = re.compile(
    r"(?:import|export|const|let|var|function|async|class|abstract|type|interface|enum|declare|namespace|throw)\b"
    r"|[xf]?(?:describe|suite|context|test|it|specify|bench|fixture)\b|(?:before|after)(?:Each|All)?\b"
    r"|(?:setup|teardown|suiteSetup|suiteTeardown)\b|(?:jest|vi|mock|chai|console|should)\b|expect\.extend\b"
    r"|(?:globalThis|global|window|process\.env)\.(?!(?:expect|assert|test|it|describe|Object|Array|JSON)\b)\w+[\w.]*\s*="
    r"|module\.exports\b|exports\.\w+\s*=|[\w.]+\.mock(?:Resolved|Rejected|Return|Implementation)\w*\("
    r"|[\])}.?:&|+,;@'\"`<]|$"
)
"""How a statement begins that concerns its own file: runners of JavaScript give each file globals of its own."""
_JS_BLOCK: Final = re.compile(r"(?:if|for|else|try|switch)\b|\[|[\w.()]+\.(?:forEach|map)\(")
_JS_TESTS: Final = re.compile(r"\b(?:describe|suite|test|it|before\w*|after\w*|import|require)\b")
_JS_FILES: Final = re.compile(
    r"\b(?:writeFile|appendFile|unlink|rename|copyFile|cp|rm|createWriteStream|symlink)(?:Sync)?\("
)
_JS_BESIDE: Final = re.compile(
    r"(?:import\s+(?:\*\s+as\s+)?(?P<a>\w+)[^;\n]*?from\s*|(?:const|let|var)\s+(?P<b>\w+)\s*=\s*(?:await\s+import|require)\(\s*)"
    r"['\"`](?:\.|(?:node:)?assert|chai)"
)
_JS_SETS: Final = re.compile(
    r"(?<![\w.])(?P<in>\w++)(?:\.\w++|\[[^\]\n]{1,200}+\])++\s*+(?:[-+*/|&?]{1,2})?=(?![=>])"
    r"|\b(?:Object|Reflect)\.(?:assign|define\w++|set\w*+)\(\s*+(?P<by>\w++)"
)
_ASKS: Final = re.compile(
    r"\bexpect\b|\bassert|\brequire\.\w|\bshould\b|\bt\.(?:Error|Fatal|Fail|is|not|deepEqual|equal|ok|same|true|throws)"
    r"|\bEXPECT_|\bXCTAssert|\.toMatch"
)
_LONGEST: Final = 100
_CHECKS: Final = ("assert", "fail", "expect")
_CONTEXTS: Final = frozenset({"raises", "warns", "deprecated_call"})


def acts_on_others(path: str, text: str, folders: Collection[str] = OWN) -> bool:
    """Say whether a new test changes what other tests see, or may do so for all that can be read."""
    return bool(how_it_acts(path, text, folders))


def how_it_acts(path: str, text: str, folders: Collection[str] = OWN) -> str:
    """Return the place at which a new test changes what other tests see, with its line; empty when it does not.

    Modules may be searched for in these folders of the project.
    """
    try:
        at = _acts_at(path, text, folders)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return f"{path} cannot be read"  # the Python that runs it may be a newer one
    if not at:
        return ""
    line = text.splitlines()[at - 1].strip()
    return f"{path}, line {at}: {line if len(line) <= _LONGEST else f'{line[:_LONGEST]}…'}"


def only_defines(path: str, text: str, folders: Collection[str] = OWN) -> bool:
    """Say whether a new `conftest.py` has nothing but fixtures and values in it, for the tests below it alone."""
    return not how_it_acts(path, text, folders) and not steers_a_runner(ast.parse(text))


def _acts_at(path: str, text: str, folders: Collection[str]) -> int:
    if path.endswith(".go"):
        found = _GO_ACTS.search(text)
        return 0 if found is None else text.count("\n", 0, found.start()) + 1
    if path.endswith(_SCRIPTS):
        return _script_acts_at(text)
    return acts_at(path, ast.parse(text), folders) if path.endswith(".py") else 0


def _script_acts_at(text: str) -> int:
    """Return where a test in JavaScript sets something in what it loads, or does more than to define its tests."""
    if "require.cache" in text:
        return text.count("\n", 0, text.index("require.cache")) + 1
    loaded = {found["a"] or found["b"] for found in _JS_BESIDE.finditer(text)}
    for set_in in _JS_SETS.finditer(text) if loaded else ():
        if (set_in["in"] or set_in["by"]) in loaded:
            return text.count("\n", 0, set_in.start()) + 1
    at = 1
    for statement in _statements(text):
        if not _is_idle(statement):
            return at + len(statement) - len(statement.lstrip("\n"))
        at += statement.count("\n")
    return 0


def _statements(text: str) -> Iterator[str]:
    """Yield what stands at the level of the file, each with what is in its brackets; texts are left out."""
    plain = _BLANKED.sub(lambda found: "''" + "\n" * found[0].count("\n"), text)
    statement, depth = "", 0
    for line in plain.splitlines():
        # A bracket in a regular expression may be miscounted; what is in brackets is not at the margin.
        if statement and (depth <= 0 or (line[:1].strip() and line[0] not in ")]}")):
            yield statement
            statement, depth = "", 0
        statement += f"{line}\n"
        depth += sum(line.count(one) for one in "([{") - sum(line.count(one) for one in ")]}")
    yield statement


def _is_idle(statement: str) -> bool:
    begins = statement.strip()
    if _JS_FILES.search(begins.partition("\n")[0]):
        return False
    if _JS_BLOCK.match(begins):
        return _JS_TESTS.search(begins) is not None
    return _JS_IDLE.match(begins) is not None


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
