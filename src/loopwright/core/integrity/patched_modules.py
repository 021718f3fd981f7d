"""Where Python source changes what it did not make itself: something in a module that it imports, found by reading.

A name stands for what it was imported as, also by another name, by `sys.modules` or by `import_module`. Whoever wants
to hide from a reader can: what is handed to a function and changed in there is not seen.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

UNKNOWN: Final = "?"
"""Stands for what only a run of the source could tell."""
_SETS: Final = frozenset({"setattr", "delattr"})
_SET_BY_NAME: Final = frozenset({"__setattr__", "__delattr__", "__setitem__", "__delitem__"})
_MUTATES: Final = frozenset(
    {"update", "setdefault", "pop", "popitem", "clear", "append", "insert", "extend", "remove", "sort"}
    | {"__ior__", "__iadd__", "appendleft", "add", "discard"}
)
_BY_HAND: Final = frozenset(
    {"dict.update", "dict.__setitem__", "dict.setdefault", "dict.pop", "dict.__ior__", "exec"}
    | {"operator.setitem", "operator.ior", "operator.delitem", "setitem"}
)
_LOADERS: Final = frozenset({"import_module", "__import__"})
_CONTAINERS: Final = ("sys.modules", "sys.path", "sys.meta_path", "sys.path_hooks", "os.environ")
_ROUNDS: Final = 4
"""So often a name may stand for one that stands for another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One place at which something foreign is set, or taken away."""

    line: int
    origin: str
    """What it is, by its full name: `math.isclose`; it begins with a dot where it was imported from beside."""
    value: ast.expr | None = None
    """What it becomes, where it is set to one thing."""
    within: bool = False
    """Whether it stands in a function: nothing happens before that is called."""


Names = Mapping[str, str]


def names_of(tree: ast.Module) -> dict[str, str]:
    """Return what names stand for: what was imported, also where it is called something else later."""
    found = {"__builtins__": "builtins"}
    nodes = list(ast.walk(tree))
    for node in nodes:
        found |= _imported(node)
    for _ in range(_ROUNDS):
        before = len(found)
        for name, value in chain.from_iterable(_bound(node) for node in nodes):
            origin = resolved(value, found) if name not in found else None
            if origin is not None:
                found[name] = origin
        if len(found) == before:
            break
    return found


def _imported(node: ast.AST) -> dict[str, str]:
    match node:
        case ast.Import(names=names):
            return {
                one.asname or one.name.partition(".")[0]: one.name
                if one.asname
                else one.name.partition(".")[0]
                for one in names
            }
        case ast.ImportFrom(module=module, names=names, level=level) if module != "__future__":
            top = "." * level + (module or "")
            return {
                one.asname or one.name: f"{top}{'' if top.endswith('.') else '.'}{one.name}" for one in names
            }
    return {}


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _pairs(target, value)
        case ast.NamedExpr(target=ast.Name(id=name), value=value):
            yield name, value
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value
        case ast.For(target=ast.Name(id=name), iter=ast.Tuple(elts=elts) | ast.List(elts=elts)):
            yield from ((name, one) for one in elts)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match target, value:
        case ast.Name(id=name), _:
            yield name, value
        case ast.Tuple(elts=names), ast.Tuple(elts=values):
            for one, given in zip(names, values, strict=False):
                yield from _pairs(one, given)


def resolved(node: ast.AST, names: Names) -> str | None:
    """Return the full name of what an expression stands for, None where it is nothing that was imported."""
    match node:
        case ast.Name(id=name):
            return names.get(name)
        case ast.Attribute(value=value, attr="__dict__"):
            return resolved(value, names)
        case ast.Attribute(value=value, attr=attr):
            return _below(resolved(value, names), attr)
        case ast.Subscript(value=value, slice=key):
            base = resolved(value, names)
            return _text(key) if base == "sys.modules" else _below(base, _text(key))
        case ast.Call(func=ast.Name(id="vars"), args=[of]):
            return resolved(of, names)
        case ast.Call(func=ast.Name(id="getattr"), args=[of, name, *_]):
            return _below(resolved(of, names), _text(name))
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[of, *_]) if name in _LOADERS:
            return _text(of)
        case ast.Call(func=ast.Attribute(value=value, attr="get"), args=[of, *_]):
            return _text(of) if resolved(value, names) == "sys.modules" else None
    return None


def _below(base: str | None, name: str) -> str | None:
    return None if base is None else f"{base}.{name}"


def _text(node: ast.AST) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id="__name__"):
            return "."  # this very module
    return UNKNOWN


def writes_in(tree: ast.Module) -> Iterator[Write]:
    """Yield each place at which something in what was imported is set, replaced or taken away."""
    waiting: list[tuple[ast.AST, Names, bool]] = [(tree, names_of(tree), False)]
    while waiting:  # by hand: an expression may be nested more deeply than functions can be
        node, names, within = waiting.pop()
        for origin, value in _written(node, names):
            yield Write(line=getattr(node, "lineno", 1), origin=origin, value=value, within=within)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            within = True
            taken = {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
            # What was handed in is not what was imported under the same name.
            names = {name: origin for name, origin in names.items() if name not in taken}
        waiting += [(child, names, within) for child in ast.iter_child_nodes(node)]


def _written(node: ast.AST, names: Names) -> Iterator[tuple[str, ast.expr | None]]:
    match node:
        case ast.Assign(targets=[target], value=value):
            yield from _targets([target], value, names)
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            yield from _targets(targets, None, names)
        case ast.AnnAssign(target=target, value=value):
            yield from _targets([target], value, names)
        case ast.AugAssign(target=target) | ast.For(target=target):
            yield from _targets([target], None, names)
        case ast.Call():
            yield from _by_call(node, names)


def _targets(
    targets: Iterable[ast.expr], value: ast.expr | None, names: Names
) -> Iterator[tuple[str, ast.expr | None]]:
    for target in targets:
        match target:
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                yield from _targets(elts, None, names)
            case ast.Starred(value=inner):
                yield from _targets([inner], None, names)
            case ast.Attribute(value=base, attr=name):
                yield from _named(base, name, value, names)
            case ast.Subscript(value=base, slice=key):
                yield from _named(base, _text(key), value, names)


def _named(
    base: ast.expr, name: str, value: ast.expr | None, names: Names
) -> Iterator[tuple[str, ast.expr | None]]:
    origin = _below(resolved(base, names), name)
    if origin is not None:
        yield origin, value


def _by_call(node: ast.Call, names: Names) -> Iterator[tuple[str, ast.expr | None]]:
    match node:
        case ast.Call(func=ast.Name(id=called), args=[of, name, *rest]) if called in _SETS:
            yield from _named(of, _text(name), rest[0] if rest else None, names)
        case ast.Call(func=ast.Attribute(value=of, attr=called), args=args) if called in _SET_BY_NAME:
            # Of the thing itself, or of its type with the thing in front.
            typed = len(args) > (1 if called.startswith("__del") else 2)
            target, rest = (args[0], args[1:]) if typed else (of, args)
            yield from _named(target, _text(rest[0]) if rest else UNKNOWN, rest[-1] if rest else None, names)
        case ast.Call(func=ast.Attribute(value=of, attr=called)) if called in _MUTATES and _is_table(
            of, names
        ):
            for key, value in _given(node):
                yield from _named(of, key, value, names)
        case ast.Call(func=func, args=args) if ast.unparse(func) in _BY_HAND:
            for table in args:
                if _is_namespace(table):
                    yield from _named(table, UNKNOWN, None, names)


def _given(node: ast.Call) -> Sequence[tuple[str, ast.expr | None]]:
    """Return what a call puts into a table of names, as far as it says so."""
    named: list[tuple[str, ast.expr | None]] = [(one.arg, one.value) for one in node.keywords if one.arg]
    for one in node.args:
        if isinstance(one, ast.Dict):
            named += [(_text(key), value) for key, value in zip(one.keys, one.values, strict=True) if key]
    return named or [(UNKNOWN, None)]


def _is_table(node: ast.expr, names: Names) -> bool:
    return _is_namespace(node) or resolved(node, names) in _CONTAINERS


def _is_namespace(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(attr="__dict__") | ast.Call(func=ast.Name(id="vars"), args=[_]):
            return True
    return False
