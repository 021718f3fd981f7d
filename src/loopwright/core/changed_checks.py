"""Where source changes what tests check with: a function of the language, of its library, or of one for checking."""

import ast
import builtins
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from loopwright.core.foreign_writes import Write, writes_in
from loopwright.core.literals import LONGEST

_STANDARD: Final = frozenset(sys.stdlib_module_names)
_MEANT: Final = re.compile(
    r"sys\.(?:std(?:in|out|err)|argv|path|meta_path|path_hooks|excepthook|displayhook|breakpointhook|unraisablehook|ps[12])(?:\..*)?"
    r"|sys\.(?:tracebacklimit|dont_write_bytecode|pycache_prefix)|os\.environ\..*|logging\..*|mimetypes\..*|tempfile\.tempdir"
    r"|warnings\.(?:showwarning|formatwarning|filters.*)|threading\.excepthook|ssl\._create_default_https_context"
    r"|builtins\._|decimal\.DefaultContext\..*|linecache\.cache\..*|copyreg\.dispatch_table\..*|locale\..*"
)
"""What the standard library itself says one may set."""
_DESCRIBES: Final = re.compile(r"__(?:module|doc|name|qualname|file|path|loader|spec|all|wrapped|version)__")
_BUILTINS: Final = frozenset(dir(builtins))
_CHECKERS: Final = frozenset(
    {"numpy", "hamcrest", "assertpy", "deepdiff", "syrupy", "testfixtures", "dirty_equals", "sure", "expects"}
)
_HANDLERS: Final = re.compile(
    r"_*on_?[a-z]*|.*(?:handle|callback|hook|factory|filter|listener|lifespan|key|default).*"
)
"""What one hands to an object that asks for it: the object may well be imported."""


def changes_checks(tree: ast.Module) -> Iterator[int]:
    """Yield the lines at which Python source sets a function in what it imports and did not make."""
    functions = {
        one.name for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    for write in writes_in(tree):
        if _is_check(write, functions):
            yield write.line


def _is_check(write: Write, functions: set[str]) -> bool:
    top, _, rest = write.origin.partition(".")
    if isinstance(write.value, ast.Constant) or _MEANT.fullmatch(write.origin):
        return False
    if write.origin.startswith("sys.modules."):
        return rest.removeprefix("modules.").partition(".")[0] in _STANDARD | _CHECKERS
    if _DESCRIBES.fullmatch(rest.rpartition(".")[2]):
        return False
    if top in _STANDARD or top in _CHECKERS:
        return True
    # Of anything else, which may be the project's own, values are set rightly; functions are replaced.
    made = isinstance(write.value, ast.Lambda) or (
        isinstance(write.value, ast.Name) and write.value.id in functions | _BUILTINS
    )
    return made and _HANDLERS.fullmatch(write.origin.rpartition(".")[2]) is None


# --- JavaScript -----------------------------------------------------------------------------------

_LIBRARIES: Final = (
    r"(?:node:)?assert(?:/strict)?|chai|expect(?:\.js)?|vitest|@jest/[\w-]+|jest|should"
    r"|power-assert|unexpected|(?:node:)?test|ava|tap|uvu(?:/assert)?"
)
_LOADED: Final = re.compile(
    r"(?:import\s++(?:\*\s++as\s++)?(?P<whole>(?!from\b)\w++)?\s*+,?\s*+(?:\{(?P<parts>[^{}]{0,4000}+)\})?\s*+from\s*+"
    r"|(?:const|let|var)\s++(?:(?P<name>\w++)|\{(?P<some>[^{}]{0,4000}+)\})\s*+=\s*+(?:await\s++import|require)\(\s*+)"
    rf"['\"`](?:{_LIBRARIES})['\"`]"
)
_AGAIN: Final = re.compile(
    r"(?:const|let|var)\s++(\w++)\s*+=\s*+(\w++)(?:\.\w++)?[ \t]*+;?[ \t]*+$", re.MULTILINE
)
_GLOBALS: Final = (
    r"Object|Array|Number|String|Boolean|BigInt|Symbol|JSON|Math|Promise|Map|Set"
    r"|WeakMap|WeakSet|Reflect|RegExp|Function|Date"
)
_MEMBER: Final = r"(?:\.\w+|\[[^\]\n]+\])+\s*=(?![=>])"
_INLINE: Final = re.compile(rf"require\(\s*['\"`](?:{_LIBRARIES})['\"`]\s*\){_MEMBER}")
_TEST_GLOBALS: Final = re.compile(
    r"\b(?:globalThis|global|window)\.(?:expect|test|it|describe|assert|Object|Array|JSON)(?:\.\w+)*\s*=(?![=>])"
)


def changes_checks_in_lines(lines: Sequence[str]) -> Iterator[int]:
    """Yield the lines at which source changes what it loaded for checking, or one of the language's own objects."""
    whole = "\n".join(lines)
    names = {"assert", "expect", "chai", *_loaded(whole)}
    for made, of in _AGAIN.findall(whole):
        if of in names:
            names.add(made)
    called = "|".join(re.escape(one) for one in sorted(names))
    sets = re.compile(
        rf"(?<![\w.])(?:{called}|{_GLOBALS}){_MEMBER}|{_INLINE.pattern}|{_TEST_GLOBALS.pattern}"
        rf"|(?:Object\.(?:assign|defineProperty|defineProperties|setPrototypeOf)|Reflect\.(?:set|defineProperty))"
        rf"\(\s*(?:(?:{called}|globalThis|global)\b|(?:{_GLOBALS})(?:\.prototype)?\s*,)"
    )
    yield from (n for n, line in enumerate(lines, 1) if len(line) <= LONGEST and sets.search(line))


def _loaded(whole: str) -> Iterator[str]:
    for found in _LOADED.finditer(whole):
        yield from (name for name in (found["whole"], found["name"]) if name)
        for part in (found["parts"] or found["some"] or "").split(","):
            words = re.split(r"\s+as\s+|:", part)
            if words[-1].strip():
                yield words[-1].strip()
