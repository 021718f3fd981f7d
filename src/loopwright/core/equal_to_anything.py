"""Comparisons that Python source defines and that never compare: what they make is equal to whatever a test expects."""

import ast
from collections.abc import Iterator, Sequence
from typing import Final

_COMPARES: Final = frozenset({"__eq__", "__ne__"})
_HOLDS: Final = frozenset({"__contains__", "__instancecheck__", "__subclasscheck__"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def equal_to_anything(tree: ast.Module) -> Iterator[int]:
    """Yield the lines at which a comparison is defined that does not hold the other against itself."""
    nodes = list(ast.walk(tree))
    functions = {one.name: one for one in nodes if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
    for node in nodes:
        for name, made in _defined(node):
            found = functions.get(made.id) if isinstance(made, ast.Name) else made
            if isinstance(found, _Function) and _is_blind(name, found):
                yield getattr(node, "lineno", 1)


def _defined(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the comparisons that a node defines, by whatever way."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name, node
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                match target:
                    case ast.Name(id=name) | ast.Attribute(attr=name):
                        yield name, value
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, value
        case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=str(name)), value]):
            yield name, value


def _is_blind(name: str, node: _Function) -> bool:
    first, *rest = _arguments(node.args)
    answers = _answers(node)
    if name in _COMPARES:
        if all(_is_always(one, truth=name != "__eq__") for one in answers):
            return False  # equal to nothing, like what is not a number
        if all(_is_always(one, truth=name == "__eq__") for one in answers):
            return True
        return not _Sides(node, first, rest).are_compared()
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    always = bool(answers) and all(_is_always(one, truth=True) for one in answers)
    return name in _HOLDS and always and not names & set(rest)


def _arguments(given: ast.arguments) -> list[str]:
    """Return what it is called with: itself first, then the other, also where one name stands for both."""
    plain = [one.arg for one in (*given.posonlyargs, *given.args)]
    more = [one.arg for one in (given.vararg, *given.kwonlyargs, given.kwarg) if one is not None]
    return [*plain, *more] if plain else [*(more or [""]), *more]


def _answers(node: _Function) -> Sequence[ast.expr | None]:
    if isinstance(node, ast.Lambda):
        return [node.body]
    return [one.value for one in ast.walk(node) if isinstance(one, ast.Return)]


def _is_always(node: ast.expr | None, *, truth: bool) -> bool:
    match node:
        case ast.Constant(value=value):
            return bool(value) is truth
        case ast.BoolOp(op=op, values=values):
            decides = isinstance(op, ast.Or) is truth
            return decides and any(_is_always(one, truth=truth) for one in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _is_always(operand, truth=not truth)
    return False


class _Sides:
    """What in a comparison comes from itself, and what from the other."""

    def __init__(self, node: _Function, first: str, rest: Sequence[str]) -> None:
        self.nodes = list(ast.walk(node))
        self.mine, self.theirs = {first}, set(rest)
        for _ in range(3):  # a name may stand for one that stands for another
            for one in self.nodes:
                for target, value in _bound(one):
                    for side in (self.mine, self.theirs):
                        if _names(value) & side:
                            side |= _names(target)

    def are_compared(self) -> bool:
        return any(self._compares(one) for one in self.nodes)

    def _compares(self, node: ast.AST) -> bool:
        match node:
            case ast.Compare(left=left, comparators=others):
                return any(self._face(one, other) for one in (left, *others) for other in (left, *others))
            case ast.Call(func=ast.Name(id="isinstance"), args=[of, kind]):
                return bool(_names(of) & self.theirs) and ast.unparse(kind) != "object"
            case ast.Call(func=func, args=args):
                handed = set().union(*(_names(one) for one in args)) if args else set()
                return bool(handed & self.theirs) and bool((handed | _names(func)) & (self.mine | {"super"}))
            case ast.Return(value=ast.Name(id="NotImplemented")):
                return True
        return False

    def _face(self, one: ast.expr, other: ast.expr) -> bool:
        if ast.unparse(one) == ast.unparse(other):
            return False
        kinds = isinstance(one, ast.Call) and ast.unparse(one.func) == "type"
        across = bool(_names(one) & self.theirs) and bool(_names(other) & self.mine)
        return across or (kinds and bool(_names(one) & self.theirs))


def _bound(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            yield from zip(targets, values, strict=False)
        case ast.Assign(targets=targets, value=value):
            yield from ((target, value) for target in targets)
        case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
            yield target, value
        case ast.NamedExpr(target=target, value=value):
            yield target, value


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
