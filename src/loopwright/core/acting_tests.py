"""Whether loading a Python test, or what runs around it by itself, does something that other tests would see.

What may stand there is listed, and everything else acts: at the level of the module imports, definitions and values,
made by calls that are known to have no effect or whose name says that they only make something. In a test's own
function anything may be done but setting something in what was imported.
"""

import ast
import builtins
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from loopwright.core.foreign_writes import names_of, resolved, writes_in
from loopwright.core.search_paths import without_own_folders

_FILES: Final = frozenset(
    {"write_text", "write_bytes", "writelines", "unlink", "touch", "mkdir", "rmdir", "rename", "renames"}
    | {"symlink_to", "hardlink_to", "symlink", "link", "chmod", "remove", "removedirs", "makedirs", "rmtree"}
    | {"copy2", "copyfile", "copytree", "move", "save", "savetxt", "to_csv", "to_json", "truncate"}
)
"""Calls that change files."""
_DOES: Final = (
    _FILES
    | frozenset({"start", "install", "activate", "enable", "disable", "apply", "patch_all", "run", "call"})
    | frozenset({"check_call", "check_output", "Popen", "system", "exec", "eval", "reload", "register"})
    | frozenset({"setattr", "delattr", "setitem", "delitem", "setenv", "delenv", "syspath_prepend", "chdir"})
    | frozenset({"putenv", "unsetenv", "settrace", "setprofile", "hookimpl", "register_assert_rewrite"})
    | frozenset({"startTest", "monkey_patch", "setup", "configure", "__setattr__", "write", "kill"})
)
"""Calls that are made for what they do, whatever they are called on."""
_PURE: Final = frozenset(
    {
        "re",
        "pathlib",
        "collections",
        "typing",
        "enum",
        "dataclasses",
        "datetime",
        "decimal",
        "fractions",
        "math",
    }
    | {
        "operator",
        "itertools",
        "functools",
        "json",
        "string",
        "textwrap",
        "uuid",
        "random",
        "platform",
        "types",
    }
    | {
        "copy",
        "base64",
        "hashlib",
        "struct",
        "time",
        "ipaddress",
        "urllib",
        "zoneinfo",
        "contextlib",
        "abc",
        "io",
    }
    | {
        "array",
        "heapq",
        "bisect",
        "statistics",
        "tempfile",
        "inspect",
        "unittest",
        "warnings",
        "calendar",
        "ast",
    }
    | {
        "numbers",
        "locale",
        "html",
        "csv",
        "tomllib",
        "codecs",
        "unicodedata",
        "binascii",
        "importlib",
        "shlex",
        "sysconfig",
    }
)
"""Modules of the standard library whose other functions change nothing that a test could pass by."""
_PURE_CALLS: Final = re.compile(
    r"logging\.getLogger|os\.(?:path\.\w+|getenv|environ\.(?:get|copy|items|keys)|getcwd|fspath|cpu_count|listdir|getpid|access|uname|gete?[ug]id)"
    r"|shutil\.which|sys\.(?:getsizeof|getrecursionlimit|getdefaultencoding|intern|exc_info)|asyncio\.iscoroutinefunction"
    r"|threading\.(?:local|\w*Lock)"
)
_MOCKS: Final = re.compile(
    r"(?:unittest\.)?mock\.(?:call|sentinel|\w*Mock|mock_open|ANY|create_autospec|patch)\b[\w.]*"
)
"""Patches are made here, and begin elsewhere."""
_LIBRARIES: Final = frozenset(
    {
        "pytest",
        "hypothesis",
        "numpy",
        "pandas",
        "polars",
        "scipy",
        "torch",
        "sympy",
        "faker",
        "factory",
        "yaml",
    }
    | {
        "parameterized",
        "dateutil",
        "attr",
        "attrs",
        "pydantic",
        "jsonschema",
        "networkx",
        "typing_extensions",
    }
)
"""What tests make their values with."""
_MAKES: Final = re.compile(
    r"(?:make|create|build|get|load|parse|read|new|from|to|as|is|has|generate|sample|fake|mock|stub|default|example|"
    r"compile|compute|expected|fixture|parametri[sz]e|given|settings|signature|fields)(?:_\w+)?|test_(?:client|cli_runner)"
    r"|\w+_(?:factory|maker|builder)"
)
_QUIET: Final = re.compile(
    r"pytest\.(?:importorskip|skip|fail|mark\..*)|warnings\.(?:filterwarnings|simplefilter)|(?:numpy\.)?random\.seed"
    r"|logging\.getLogger"
)
"""Calls that may stand alone at the level of a module: they concern this file, or can make no test pass."""
_BUILTINS: Final = frozenset(dir(builtins)) - {
    *(
        "exec",
        "eval",
        "compile",
        "setattr",
        "delattr",
        "open",
        "globals",
        "vars",
        "locals",
        "__import__",
        "input",
    ),
    *("exit", "quit", "breakpoint"),
}
_SELF_RUN: Final = frozenset({"setup_module", "setUpModule", "setup", "setup_package", "setUpPackage"})
_WIDE: Final = re.compile(r"autouse=True|scope=(?!['\"]function['\"])")
_SCRATCH: Final = re.compile(r"tmp|temp", re.IGNORECASE)
_CODE: Final = re.compile(r"\.(?:pyi?|[cm]?[jt]sx?|go|rs|toml|cfg|ini|sh|mk)$|(?:^|/)Makefile$")
_DEEP: Final = frozenset({"get_referrers", "get_referents", "get_objects", "pythonapi", "memmove"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_PACKAGE: Final = "__init__.py"
_HOOKS: Final = "pytest_"


def acts_at(path: str, tree: ast.Module, folders: Collection[str]) -> int:
    """Return the line in which a new Python file among the tests does something that others of its process would see.

    It is 0 when there is none. Modules may be searched for in these folders of the project.
    """
    tree = without_own_folders(path, tree, folders)
    if path.rpartition("/")[2] == _PACKAGE:
        # It is loaded before all tests of its folder.
        return next((one.lineno for one in tree.body if not _is_plain(one)), 0)
    return _Reader(tree).acts_at()


def steers_a_runner(tree: ast.Module) -> bool:
    """Say whether a file may have something in it that pytest calls or loads by its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.alias) and (
            node.name == "*" or (node.asname or node.name).startswith(_HOOKS)
        ):
            return True
        if any(name.startswith(_HOOKS) for name in _binds(node)):
            return True
    return False


def _is_plain(node: ast.stmt) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__" | "__version__")]):
            return True
    return False


class _Reader:
    """One file, with what its names stand for."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.names = names_of(tree)
        self.nodes = list(ast.walk(tree))
        self.defs = {one.name: one for one in tree.body if isinstance(one, _Function)}
        self.patchers = {
            ast.unparse(target)
            for node in self.nodes
            if isinstance(node, ast.Assign) and "patch" in ast.unparse(node.value)
            for target in node.targets
        }
        self.own = {name for node in self.nodes for name in _binds(node)} - set(self.names)
        self.used = {
            one.id for one in self.nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)
        }
        self.called: set[str] = set()

    def acts_at(self) -> int:
        writes = (
            write.line
            for write in writes_in(self.tree)
            if not (write.within and write.origin.startswith("os.environ"))
        )
        anywhere = (_line(node) for node in self.nodes if self._anywhere(node))
        functions = (one for one in self.nodes if isinstance(one, _Function))
        return (
            next(writes, 0)
            or next(anywhere, 0)
            or self._patched_at(self.tree, undone=False)
            or self._busy_at(self.tree.body)
            or next((one.lineno for one in functions if self._does(one)), 0)
            or self._impure_at()
        )

    def _busy_at(self, body: Iterable[ast.stmt]) -> int:
        """Return the line of what is done while the file is loaded, the innermost that it is in."""
        for one in body:
            if not self._is_idle(one):
                inner = [] if isinstance(one, _Function) else list(_within(one))
                return self._busy_at(inner) or one.lineno
        return 0

    # --- wherever it stands ----------------------------------------------------------------------

    def _anywhere(self, node: ast.AST) -> bool:
        match node:
            case ast.Call(func=ast.Name(id="exec" | "reload") | ast.Attribute(attr="reload")):
                return True
            case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[ast.Name(id=name), *_]):
                return name != "self"
            case ast.Attribute(attr=name) if name in _DEEP:
                return True
            case ast.Call(func=func):
                return resolved(func, self.names) == "atexit.register" or self._rewrites(node)
            case ast.FunctionDef(name=name) if node in self.tree.body:
                hooked = any(resolved(one, self.names) == "atexit.register" for one in node.decorator_list)
                return hooked or (name.startswith("pytest_") and name != "pytest_generate_tests")
        return False

    def _rewrites(self, node: ast.Call) -> bool:
        """Say whether a call writes a file of the project: one whose place stands there, and that is source."""
        if not _changes_files(node):
            return False
        place = node.func.value if isinstance(node.func, ast.Attribute) else node
        text = ast.unparse(place)
        if _SCRATCH.search(text):
            return False
        words = [one.value for one in ast.walk(place) if isinstance(one, ast.Constant)]
        known = [one for one in words if isinstance(one, str) and _CODE.search(one)]
        roots = {one.id for one in ast.walk(place) if isinstance(one, ast.Name)} - set(self.names) - {"open"}
        return bool(known) and roots <= {"__file__"}

    def _patched_at(self, around: ast.AST, *, undone: bool) -> int:
        """Return where something is patched and stays so: nothing of the class or function around takes it back."""
        for child in ast.iter_child_nodes(around):
            scope = isinstance(child, ast.ClassDef | _Function)
            takes_back = scope and re.search(r"\.(?:stop|stopall|undo)\b", ast.unparse(child)) is not None
            if self._begins_a_patch(child) and not undone:
                return _line(child)
            if at := self._patched_at(child, undone=undone or takes_back):
                return at
        return 0

    def _begins_a_patch(self, node: ast.AST) -> bool:
        match node:
            case ast.Call(func=ast.Attribute(value=of, attr="start" | "__enter__")):
                text = ast.unparse(of)
                return text in self.patchers or ("patch" in text and isinstance(of, ast.Call))
            case ast.Call(func=ast.Name(id="MonkeyPatch") | ast.Attribute(attr="MonkeyPatch")):
                return True
        return False

    # --- while the module is loaded ----------------------------------------------------------------

    def _is_idle(self, node: ast.stmt) -> bool:
        """Say whether a statement, when it is reached while the file is loaded, is of no concern to others."""
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Pass() | ast.Global() | ast.Break() | ast.Continue():
                return True
            case (
                ast.FunctionDef(args=arguments, decorator_list=decorators)
                | ast.AsyncFunctionDef(args=arguments, decorator_list=decorators)
            ):
                defaults = [one for one in (*arguments.defaults, *arguments.kw_defaults) if one is not None]
                return self._are_values(defaults, used=False) and all(
                    self._decorates(one) for one in decorators
                )
            case ast.ClassDef(bases=bases, decorator_list=decorators, body=body):
                decorated = all(self._decorates(one) for one in decorators)
                return decorated and self._are_values(bases) and all(self._is_idle(one) for one in body)
            case ast.Assign(targets=targets, value=value):
                used = any(self._is_used(one) for one in targets)
                return all(self._is_own(one) for one in targets) and self._are_values([value], used=used)
            case ast.AnnAssign(target=target, value=value):
                given = [value] if value else []
                return self._is_own(target) and self._are_values(given, used=self._is_used(target))
            case ast.AugAssign(target=target, value=value):
                return self._is_own(target) and self._are_values([value])
            case ast.Delete(targets=targets):
                return all(self._is_own(one) for one in targets)
            case ast.Expr(value=ast.Call() as call):
                return self._is_quiet(call)
            case ast.Expr(value=value):
                return self._are_values([value])
            case ast.Assert(test=test):
                return self._are_values([test])
            case ast.Raise():
                return True
        return self._is_idle_block(node)

    def _is_idle_block(self, node: ast.stmt) -> bool:
        match node:
            case ast.If(
                test=ast.Compare(
                    left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant(value="__main__")]
                ),
                orelse=rest,
            ):
                return all(self._is_idle(one) for one in rest)
            case ast.If(test=value) | ast.While(test=value) | ast.For(iter=value):
                heads = [value]
            case ast.With(items=items):
                heads = [one.context_expr for one in items]
            case ast.Try() | ast.ExceptHandler():
                heads = []
            case _:
                return False  # whatever it is, it was not thought of
        inner = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.stmt | ast.ExceptHandler)]
        entered = isinstance(node, ast.With)
        return self._are_values(heads, used=not entered) and all(
            self._is_idle_block(one) if isinstance(one, ast.ExceptHandler) else self._is_idle(one)  # type: ignore[arg-type]
            for one in inner
        )

    def _decorates(self, node: ast.expr) -> bool:
        called = node.func if isinstance(node, ast.Call) else node
        if isinstance(called, ast.Name) and called.id in self.defs:
            self.called.add(called.id)
        name = _last(called)
        return name not in _DOES and (not isinstance(node, ast.Call) or self._are_values(node.args))

    def _is_own(self, target: ast.expr) -> bool:
        match target:
            case ast.Name(id="pytest_plugins"):
                return False
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                return all(self._is_own(one) for one in elts)
        root: ast.expr = target
        while isinstance(root, ast.Attribute | ast.Subscript | ast.Starred):
            root = root.value
        return isinstance(root, ast.Name) and (root is target or root.id in self.own)

    def _is_used(self, target: ast.expr) -> bool:
        """Say whether something is done with what a name stands for; otherwise a call was made for what it does."""
        return any(one.id in self.used for one in ast.walk(target) if isinstance(one, ast.Name))

    def _is_quiet(self, call: ast.Call) -> bool:
        origin = resolved(call.func, self.names)
        if origin is not None:
            return _QUIET.fullmatch(origin) is not None and self._are_values(call.args)
        match call.func:
            case ast.Name(id="print"):
                return self._are_values(call.args)
            case ast.Attribute(value=of):
                return self._is_own(of) and self._are_values([call])
            case ast.Name(id=name) if name in self.defs:
                return self._are_values([call])
        return False

    def _are_values(self, given: Iterable[ast.expr], *, used: bool = True) -> bool:
        return all(
            self._is_value(node, used=used)
            for one in given
            for node in _reached(one)
            if isinstance(node, ast.Call)
        )

    def _is_value(self, call: ast.Call, *, used: bool) -> bool:
        """Say whether a call only makes something."""
        name, origin = _last(call.func), resolved(call.func, self.names)
        if name == "open":
            return not _changes_files(call)
        if origin is not None and _MOCKS.fullmatch(origin):
            return True
        if name in _DOES or name.startswith("pytest_"):
            return False
        if origin is not None:
            return self._is_known(origin, name, call, used=used)
        match call.func:
            case ast.Name(id=called):
                if called in self.defs:
                    self.called.add(called)
                    return not self._has_a_module(call)
                return called in _BUILTINS or called in self.own
            case ast.Attribute() | ast.Call() | ast.Subscript():
                return True  # of something that was just made, or is a text
        return False

    def _is_known(self, origin: str, name: str, call: ast.Call, *, used: bool) -> bool:
        top = origin.partition(".")[0]
        if _PURE_CALLS.fullmatch(origin) or top in (_PURE | _LIBRARIES):
            return True
        # A constructor, or what says that it makes something; with a module in its hands it may do more.
        makes = used or _MAKES.fullmatch(name) is not None
        return not self._has_a_module(call) and (
            name.lstrip("_")[:1].isupper() or (makes and top not in sys.stdlib_module_names)
        )

    def _has_a_module(self, call: ast.Call) -> bool:
        handed = {
            one.id
            for one in (*call.args, *(each.value for each in call.keywords))
            if isinstance(one, ast.Name)
        }
        imported = (one for one in self.nodes if isinstance(one, ast.Import))
        return any((one.asname or one.name) in handed for node in imported for one in node.names)

    # --- what is run by itself -----------------------------------------------------------------------

    def _does(self, node: _Function) -> bool:
        """Say whether a function that runs around the tests, for more than one, leaves something behind."""
        at_top = node in self.tree.body
        wide = any(
            "fixture" in (text := ast.unparse(one)) and _WIDE.search(text) for one in node.decorator_list
        )
        if not (wide or (at_top and node.name in _SELF_RUN)):
            return False
        inner = ast.Module(body=[node], type_ignores=[])
        changed = any(_changes_files(one) and not self._is_scratch(one, node) for one in ast.walk(node))
        environ = any(
            write.origin.startswith("os.environ")
            for write in writes_in(ast.Module(body=[*_imports(self.nodes), *inner.body], type_ignores=[]))
        )
        return (changed or environ) and not self._is_undone(node)

    def _is_undone(self, node: _Function) -> bool:
        text = ast.unparse(node)
        after = re.search(r"^( +)(?:\w+ = )?yield\b.*\n\s*\S", text, re.MULTILINE)
        torn_down = node.name in _SELF_RUN and any(
            name.lower().replace("_", "").startswith("teardown") for name in self.defs
        )
        return after is not None or "addfinalizer" in text or torn_down

    def _is_scratch(self, call: ast.AST, node: _Function) -> bool:
        """Say whether what a call changes lies in a folder that is thrown away."""
        scratch = {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
        for one in ast.walk(node):
            if isinstance(one, ast.Assign) and _SCRATCH.search(ast.unparse(one.value)):
                scratch |= {
                    name.id
                    for target in one.targets
                    for name in ast.walk(target)
                    if isinstance(name, ast.Name)
                }
        used = {one.id for one in ast.walk(call) if isinstance(one, ast.Name)}
        return bool(used & scratch) or _SCRATCH.search(ast.unparse(call)) is not None

    def _impure_at(self) -> int:
        """Return where functions that are called while the file is loaded do something else than it may itself."""
        looked: set[str] = set()
        while left := self.called - looked:
            name = left.pop()
            looked.add(name)
            for node in ast.walk(self.defs[name]):
                if (
                    isinstance(node, ast.Expr)
                    and isinstance(node.value, ast.Call)
                    and not self._is_quiet(node.value)
                ):
                    return node.lineno
                if isinstance(node, ast.Call) and not self._is_value(node, used=True):
                    return node.lineno
                if isinstance(node, ast.Assign | ast.AugAssign) and "environ" in ast.unparse(node):
                    return node.lineno
        return 0


def _line(node: ast.AST) -> int:
    """Return where something stands."""
    return int(getattr(node, "lineno", 1))


def _within(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements of a block."""
    for one in ast.iter_child_nodes(node):
        if isinstance(one, ast.stmt):
            yield one
        elif isinstance(one, ast.ExceptHandler):
            yield from one.body


def _imports(nodes: Sequence[ast.AST]) -> list[ast.stmt]:
    return [one for one in nodes if isinstance(one, ast.Import | ast.ImportFrom)]


def _binds(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.ClassDef(name=name) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ExceptHandler(name=str(name)):
            yield name


def _last(func: ast.expr) -> str:
    match func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _reached(node: ast.expr) -> Iterator[ast.AST]:
    """Yield what is evaluated with an expression: the body of a lambda is not."""
    waiting: list[ast.AST] = [node]
    while waiting:
        one = waiting.pop()
        yield one
        if not isinstance(one, ast.Lambda):
            waiting += ast.iter_child_nodes(one)


def _changes_files(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="open") | ast.Attribute(attr="open"), args=args, keywords=more):
            modes = [one for one in (*args, *(each.value for each in more)) if isinstance(one, ast.Constant)]
            return any(
                isinstance(one.value, str) and re.fullmatch(r"[rwaxbt+]*[wax+][rwaxbt+]*", one.value)
                for one in modes
            )
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name in _FILES
    return False
