"""Tests that some work moved to another place, together with the modules that they are about or without these.

A moved test asks for all that it asked for: nothing in it differs but the names of modules that the work moved too.
That is found by reading both versions, the Python ones as Python and the others line by line.
"""

import ast
import posixpath
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from loopwright.core.gate_files import is_test_file
from loopwright.core.new_tests import acts_on_others

_ALIKE: Final = 0.5
"""So much of a file is still there when git calls it renamed."""
_SCRIPTS: Final = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")
READ: Final = (".py", ".go", *_SCRIPTS)
_NAMES_A_PLACE: Final = frozenset({"patch", "setattr", "delattr", "import_module", "importorskip"})
"""Calls whose first argument may be the dotted name of something in a module."""
_REACHES_OUT: Final = frozenset(
    {"globals", "vars", "locals", "exec", "eval", "setattr", "delattr", "__import__", "sys", "inspect"}
)
_CHECKED_WITH: Final = frozenset({"pytest", "unittest"})
_LOADS: Final = re.compile(
    r"(?P<head>\s*(?:import\b|export\b|(?:const|let|var)\b[^'\"]*\brequire\(|\}[^'\"]*\bfrom\b)[^'\"]*)"
    r"(?P<quote>['\"])(?P<what>[^'\"]+)(?P=quote)(?P<tail>.*)"
)
_LOADS_GO: Final = re.compile(r"(?P<head>\s*(?:import\s+)?(?:[\w.]+\s+)?)\"(?P<what>[^\"]+)\"\s*")
_BESIDE: Final = re.compile(r"['\"`]\.\.?/")
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Imports = frozenset[tuple[str, str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """What some work deleted, added and changed; all paths are relative to the project, texts as far as they are read.

    The tests among it are apart from the product, because no test may take the place of a module.
    """

    deleted: Mapping[str, str]
    added: Mapping[str, str]
    deleted_tests: Mapping[str, str]
    added_tests: Mapping[str, str]
    rewritten_tests: Mapping[str, tuple[str, str]]
    """Tests that stayed where they were: before and after."""
    before: Collection[str]
    """All files of the tree before the work."""
    after: Collection[str]


def moved_tests(changed: Changed) -> dict[str, str]:
    """Return where each test is now that was only moved, by where it was.

    One that stayed, and in which nothing but the names of moved modules changed, is moved to its own place.
    """
    modules = _renamed(changed.deleted, changed.added)
    found: dict[str, str] = {}
    while True:
        names = _Names.of({**modules, **found}, changed)
        more = dict(_matched(changed, names, found))
        if not more:
            return found
        found |= more  # what a moved test loads may be another one


def _matched(changed: Changed, names: "_Names", known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    taken = set(known.values())
    for old, text in sorted(changed.deleted_tests.items()):
        if old in known:
            continue
        free = [new for new in sorted(changed.added_tests) if new not in taken and _may_be(old, new)]
        # Where several are alike, the one that is called the same.
        free.sort(key=lambda new: posixpath.basename(new) != posixpath.basename(old))
        for new in free:
            if _is_same(old, text, new, changed.added_tests[new], names):
                taken.add(new)
                yield old, new
                break
    for path, (was, now) in sorted(changed.rewritten_tests.items()):
        if path not in known and names.old and _is_same(path, was, path, now, names):
            yield path, path


def _may_be(old: str, new: str) -> bool:
    """Say whether a test that is called so now would be found as it was before."""
    if posixpath.splitext(old)[1] != posixpath.splitext(new)[1] or " -> " in f"{old}{new}":
        return False
    return is_test_file(new) or not is_test_file(old)


def _is_same(old: str, before: str, new: str, after: str, names: "_Names") -> bool:
    if old.endswith(".py"):
        return _is_same_python(old, before, new, after, names)
    if old.endswith(".go"):
        return posixpath.dirname(old) == posixpath.dirname(new) and _is_same_go(before, after, names)
    return old.endswith(_SCRIPTS) and _is_same_script(old, before, new, after, names)


def _renamed(deleted: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """Return the modules that were moved, each to one place: the pairs that are most alike."""
    pairs = []
    lines = {path: Counter(text.splitlines()) for path, text in {**deleted, **added}.items()}
    for old in deleted:
        for new in added:
            if posixpath.splitext(old)[1] == posixpath.splitext(new)[1]:
                same = posixpath.basename(old) == posixpath.basename(new)
                pairs.append((-_alike(lines[old], lines[new]), not same, old, new))
    found: dict[str, str] = {}
    for unlike, _, old, new in sorted(pairs):
        if -unlike >= _ALIKE and old not in found and new not in found.values():
            found[old] = new
    return found


def _alike(old: Counter[str], new: Counter[str]) -> float:
    both = old.total() + new.total()
    return 2 * (old & new).total() / both if both else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """What moved modules are called before and after, each name with what it stands for."""

    old: Mapping[str, str]
    """Dotted names of Python, and what they stand for."""
    new: Mapping[str, str]
    places: Mapping[str, str]
    """Paths without their endings, before and after."""
    folders: Mapping[str, str]
    """Of Go packages, before and after."""

    @classmethod
    def of(cls, moved: Mapping[str, str], changed: Changed) -> "_Names":
        gone = {old: new for old, new in moved.items() if old != new}
        python = {old: new for old, new in gone.items() if old.endswith(".py")}
        go = {
            posixpath.dirname(old): posixpath.dirname(new) for old, new in gone.items() if old.endswith(".go")
        }
        return cls(
            old=_dotted({old: f"<{new}>" for old, new in python.items()}, changed.before),
            new=_dotted({new: f"<{new}>" for new in python.values()}, changed.after),
            places={_bare(old): _bare(new) for old, new in gone.items() if old.endswith(_SCRIPTS)},
            folders={old: new for old, new in go.items() if old != new},
        )


def _dotted(standing: Mapping[str, str], all_files: Collection[str]) -> dict[str, str]:
    """Return every name by which just these modules may be imported, wherever Python begins to search."""
    if not standing:
        return {}
    taken = Counter(name for path in all_files if path.endswith(".py") for name in _names_of(path))
    return {name: token for path, token in standing.items() for name in _names_of(path) if taken[name] == 1}


def _names_of(path: str) -> Iterator[str]:
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    for n in range(len(parts)):
        name = ".".join(parts[n:])
        if n == 0 or name not in sys.stdlib_module_names:
            yield name


def _bare(path: str) -> str:
    root, end = posixpath.splitext(path)
    return (root if end in _SCRIPTS else path).removesuffix("/index")


# Python


def _is_same_python(old: str, before: str, new: str, after: str, names: _Names) -> bool:
    was, now = _read(old, before, names.old), _read(new, after, names.new)
    if was is None or now is None:
        return False
    dumps = {ast.dump(node) for _, node in was.body}
    extras = [raw for raw, node in now.body if _is_test(raw) and ast.dump(node) not in dumps]
    kept = [node for raw, node in now.body if raw not in extras]
    mine = list(_sequence(old, [node for _, node in was.body], names.old))
    theirs = list(_sequence(new, kept, names.new))
    if len(mine) != len(theirs):
        return False
    more: set[tuple[str, str, str]] = set()
    for one, other in zip(mine, theirs, strict=True):
        if isinstance(one, str) or isinstance(other, str):
            if one != other:
                return False
        elif one <= other and len({_bound(each) for each in one}) == len(one):
            more |= other - one
        else:
            return False
    if not extras and not more:
        return True
    known = {each[0] for one in mine if not isinstance(one, str) for each in one}
    return (
        not acts_on_others(new, after)
        and all(_is_harmless(each, known, was.used) for each in more)
        and all(_stays_apart(node, was.used) for node in extras)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    body: list[tuple[ast.stmt, ast.stmt]]
    """Each statement as it is, and as it is compared."""
    used: Collection[str]
    """Every name in it."""


def _read(path: str, text: str, names: Mapping[str, str]) -> _Read | None:
    try:
        tree, compared = ast.parse(text), ast.parse(text)
        _Canonical(path, names, dict(_module_names(path, tree, names))).visit(compared)
        pairs = list(zip(tree.body, compared.body, strict=True))
        body = pairs[1:] if pairs and _is_prose(tree.body[0]) else pairs
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    used |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    used |= {node.name for node in ast.walk(tree) if isinstance(node, _Function | ast.ClassDef)}
    return _Read(body=body, used=used)


def _is_prose(node: ast.stmt) -> bool:
    """Say whether a statement is what stands at the top of a file for people, and no example in it is run."""
    match node:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return ">>>" not in text
    return False


def _module_names(path: str, tree: ast.Module, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the names that stand for a moved module as a whole."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in names and (alias.asname or "." not in alias.name):
                    yield alias.asname or alias.name, names[alias.name]
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(path, node)
            for alias in node.names:
                if f"{base}.{alias.name}" in names:
                    yield alias.asname or alias.name, names[f"{base}.{alias.name}"]


def _absolute(path: str, node: ast.ImportFrom) -> str:
    """Return the module that names are imported from, as seen from the top of the project."""
    if not node.level:
        return node.module or ""
    folders = path.split("/")[: -node.level]
    return ".".join([*folders, *((node.module,) if node.module else ())])


class _Canonical(ast.NodeTransformer):
    """Writes what moved modules stand for in the place of their names."""

    def __init__(self, path: str, names: Mapping[str, str], bound: Mapping[str, str]) -> None:
        self._path, self._names, self._bound = path, names, bound

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(id=self._bound.get(node.id, node.id), ctx=node.ctx)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if (token := self._names.get(ast.unparse(node))) is not None:
            return ast.Name(id=token, ctx=node.ctx)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(
                func=ast.Attribute(attr=name) | ast.Name(id=name), args=[ast.Constant(value=str(text)), *rest]
            ) if name in _NAMES_A_PLACE:
                node.args = [ast.Constant(value=self._placed(text)), *rest]
        return self.generic_visit(node)

    def _placed(self, text: str) -> str:
        parts = text.split(".")
        for n in range(len(parts), 0, -1):
            if (token := self._names.get(".".join(parts[:n]))) is not None:
                return ".".join([token, *parts[n:]])
        return text

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._with_body(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._with_body(node)

    def _with_body(self, node: _Function) -> ast.AST:
        """Write what a function loads by itself in the same way, whatever the order."""
        self.generic_visit(node)
        body: list[ast.stmt] = []
        for one in _sequence(self._path, node.body, self._names):
            if isinstance(one, str):
                body.append(ast.Expr(value=ast.Constant(value=one)))
            else:
                body.append(ast.Expr(value=ast.Constant(value=repr(sorted(one)))))
        node.body = body
        return node


def _sequence(path: str, body: Iterable[ast.stmt], names: Mapping[str, str]) -> Iterator[_Imports | str]:
    """Yield statements as text, and imports that stand together as one."""
    together: set[tuple[str, str, str]] = set()
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            together |= set(_imports(path, node, names))
            continue
        if together:
            yield frozenset(together)
            together = set()
        yield ast.dump(node)
    if together:
        yield frozenset(together)


def _imports(
    path: str, node: ast.Import | ast.ImportFrom, names: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    """Yield what is imported: the module, what of it, and what it is called here."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            token = names.get(alias.name)
            yield (token, "", "") if token is not None else (alias.name, "", alias.asname or "")
        return
    base = _absolute(path, node)
    for alias in node.names:
        if (token := names.get(f"{base}.{alias.name}")) is not None:
            yield token, "", ""
        else:
            yield names.get(base, base), alias.name, alias.asname or alias.name


def _bound(one: tuple[str, str, str]) -> str:
    module, _, called = one
    return called or module


def _is_test(node: ast.stmt) -> bool:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name.startswith("test")
        case ast.ClassDef(name=name):
            return name.startswith("Test")
    return False


def _is_harmless(one: tuple[str, str, str], known: Collection[str], used: Collection[str]) -> bool:
    """Say whether one more import leaves the names of the tests that were there alone, and brings no fixtures."""
    module, what, called = one
    top = module.partition(".")[0]
    plain = module in known or top in sys.stdlib_module_names or top in _CHECKED_WITH
    return plain and what != "*" and (called or top) not in used


def _stays_apart(node: ast.stmt, used: Collection[str]) -> bool:
    """Say whether one more test sets nothing that those see that were there."""
    assert isinstance(node, _Function | ast.ClassDef)
    for each in ast.walk(node):
        if isinstance(each, ast.Global) or (isinstance(each, ast.Name) and each.id in _REACHES_OUT):
            return False
        if isinstance(each, ast.arguments) and (each.defaults or each.kw_defaults):
            return False
    marks = all(ast.unparse(mark).startswith("pytest.mark.") for mark in node.decorator_list)
    return marks and node.name not in used


# Other languages


def _is_same_script(old: str, before: str, new: str, after: str, names: _Names) -> bool:
    lines, others = before.splitlines(), after.splitlines()
    stays = posixpath.dirname(old) == posixpath.dirname(new)
    return len(lines) == len(others) and all(
        _is_same_line(old, one, new, other, names, stays=stays)
        for one, other in zip(lines, others, strict=True)
    )


def _is_same_line(old: str, one: str, new: str, other: str, names: _Names, *, stays: bool) -> bool:
    was, now = _LOADS.fullmatch(one), _LOADS.fullmatch(other)
    if was is None or now is None:
        return one == other and (stays or _BESIDE.search(one) is None)
    if (was["head"], was["tail"]) != (now["head"], now["tail"]):
        return False
    if not was["what"].startswith(".") or not now["what"].startswith("."):
        return was["what"] == now["what"]
    place, here = (
        _bare(posixpath.normpath(posixpath.join(posixpath.dirname(path), what)))
        for path, what in ((old, was["what"]), (new, now["what"]))
    )
    return names.places.get(place, place) == here


def _is_same_go(before: str, after: str, names: _Names) -> bool:
    lines, others = before.splitlines(), after.splitlines()
    return len(lines) == len(others) and all(
        one == other or _is_same_package(one, other, names) for one, other in zip(lines, others, strict=True)
    )


def _is_same_package(one: str, other: str, names: _Names) -> bool:
    was, now = _LOADS_GO.fullmatch(one), _LOADS_GO.fullmatch(other)
    if was is None or now is None or was["head"] != now["head"]:
        return False
    return any(
        was["what"].removesuffix(f"/{old}") == now["what"].removesuffix(f"/{new}") != was["what"]
        and now["what"].endswith(f"/{new}")
        for old, new in names.folders.items()
    )
