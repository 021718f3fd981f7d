"""Where a test has Python look for modules: the project's own folders are of no concern to others.

A place is worked out from the text as Python would: from the file's own name, by `os.path` or `pathlib`. What cannot be
worked out, or leads elsewhere, is left as it is.
"""

import ast
import posixpath
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from loopwright.core.foreign_writes import Names, names_of, resolved

OWN: Final = frozenset({"", "src", "lib"})
"""Folders of a project in which its modules lie; empty for its own."""
_SAME: Final = frozenset({"os.path.abspath", "os.path.realpath", "os.path.normpath", "os.fspath"})
_JOINS: Final = frozenset({"os.path.join", "pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath"})
_WORDS: Final = {"os.pardir": "..", "os.path.pardir": "..", "os.curdir": ".", "os.path.curdir": "."}
_KEEPS: Final = frozenset({"resolve", "absolute", "as_posix"})
_DEEPEST: Final = 30
_NO_MODULES: Final = frozenset({"conftest", "setup", "test", "tests", "__init__", "__main__"})
"""Names that many folders have, and that nobody means a module of the project by."""


def own_folders(before: Collection[str], new: Collection[str]) -> frozenset[str]:
    """Return the folders of a project that may be searched: nothing in them takes the place of something elsewhere.

    The paths are relative to the project: those that were there before the work, and those that it brought.
    """
    found: dict[str, set[str]] = {}
    for path in (*before, *new):
        if not path.endswith((".py", ".so", ".pyc")):
            continue
        folder, name = posixpath.split(path)
        if name == "__init__.py" and folder:
            folder, name = posixpath.split(folder)
        found.setdefault(folder, set()).add(name.partition(".")[0])
    tops = {path.partition("/")[0] for path in before if "/" in path}
    return frozenset(one for one in OWN | tops if not _takes_a_place(one, found))


def _takes_a_place(folder: str, found: Mapping[str, set[str]]) -> bool:
    others = {name for each in OWN - {folder} for name in found.get(each, ())}
    return bool((found.get(folder, set()) - _NO_MODULES) & (others | sys.stdlib_module_names))


def without_own_folders(path: str, tree: ast.Module, folders: Collection[str]) -> ast.Module:
    """Return a file without the statements that only have its project's own folders searched for modules."""
    return _Without(path, tree, folders).visit(tree)  # type: ignore[no-any-return]


class _Without(ast.NodeTransformer):
    """One file, with what its names stand for."""

    def __init__(self, path: str, tree: ast.Module, folders: Collection[str]) -> None:
        self.path = path
        self.names: Names = names_of(tree)
        self.folders = folders
        nodes = list(ast.walk(tree))
        self.bound = Counter(name for node in nodes for name in _binds(node))
        self.values = {
            target.id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        match node.value:
            case ast.Call(
                func=ast.Attribute(attr="insert") as func, args=[ast.Constant(), place], keywords=[]
            ):
                wanted = "sys.path.insert"
            case ast.Call(func=ast.Attribute(attr="append") as func, args=[place], keywords=[]):
                wanted = "sys.path.append"
            case _:
                return node
        at = self._place(place) if resolved(func, self.names) == wanted else None
        if at is None or not self._are_plain(node) or _normal(at) not in self.folders:
            return node
        return ast.copy_location(ast.Pass(), node)

    def _are_plain(self, node: ast.AST) -> bool:
        """Say whether each name in it stands for one thing."""
        names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        named = {each for name in names if name in self.values for each in self._within(name)}
        free = {"__file__", "str"}
        return all(self.bound[one] == (0 if one in free else 1) for one in names | named)

    def _within(self, name: str) -> set[str]:
        """Return the names that a name is made of."""
        found, waiting = set[str](), [name]
        while waiting:
            value = self.values.get(waiting.pop())
            inner = {one.id for one in ast.walk(value) if isinstance(one, ast.Name)} if value else set()
            waiting += inner - found
            found |= inner
        return found

    def _place(self, node: ast.expr, depth: int = 0) -> str | None:
        """Return the path that an expression stands for, relative to the project; None when that is not known."""
        if depth > _DEEPEST:
            return None
        match node:
            case ast.Name(id="__file__"):
                return self.path
            case ast.Name(id=name) if name in self.values:
                return self._place(self.values[name], depth + 1)
            case ast.Attribute(value=of, attr="parent"):
                return _up(self._place(of, depth + 1))
            case ast.Subscript(
                value=ast.Attribute(value=of, attr="parents"), slice=ast.Constant(value=int(n))
            ):
                place = self._place(of, depth + 1) if n >= 0 else None
                for _ in range(min(n, _DEEPEST) + 1):
                    place = _up(place)
                return place
            case ast.BinOp(left=left, op=ast.Div(), right=part):
                return self._joined(left, [part], depth)
            case ast.BinOp(left=left, op=ast.Add(), right=ast.Constant(value=str(text))) if text[:1] == "/":
                return self._joined(left, [ast.Constant(value=text[1:])], depth)
            case ast.Call(func=func, args=args, keywords=[]):
                return self._called(func, args, depth)
        return None

    def _called(self, func: ast.expr, args: list[ast.expr], depth: int) -> str | None:
        origin = resolved(func, self.names)
        match func, args:
            case _, [of, *parts] if origin in _JOINS:
                return self._joined(of, parts, depth)
            case _, [of] if origin in _SAME:
                place = self._place(of, depth + 1)
                return None if place is None else _normal(place)
            case _, [of] if origin == "os.path.dirname":
                return _up(self._place(of, depth + 1))
            case ast.Name(id="str"), [of]:
                return self._place(of, depth + 1)
            case ast.Attribute(value=of, attr=name), [] if name in _KEEPS and origin is None:
                place = self._place(of, depth + 1)
                return place if place is None or name != "resolve" else _normal(place)
            case ast.Attribute(value=of, attr="joinpath"), parts if origin is None:
                return self._joined(of, parts, depth)
        return None

    def _joined(self, of: ast.expr, parts: Iterable[ast.expr], depth: int) -> str | None:
        place = self._place(of, depth + 1)
        for part in parts:
            text = (
                part.value if isinstance(part, ast.Constant) else _WORDS.get(resolved(part, self.names) or "")
            )
            if place is None or not isinstance(text, str) or text.startswith("/"):
                return None
            place = f"{place}/{text}" if place else text
        return place


def _normal(place: str) -> str | None:
    """Return a path without its steps back; None when it leads out of the project."""
    if not place:
        return ""
    plain = posixpath.normpath(place)
    return None if plain == ".." or plain.startswith("../") else "" if plain == "." else plain


def _up(place: str | None) -> str | None:
    """Return the folder of a path, by its letters; None for that of the project's own."""
    return posixpath.dirname(place.rstrip("/")) if place else None


def _binds(node: ast.AST) -> list[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            # Importing the same twice changes nothing, but whoever does that is not read any further.
            return [one.asname or one.name.partition(".")[0] for one in names]
    return []
