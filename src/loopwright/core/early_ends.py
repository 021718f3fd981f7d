"""Where source ends the whole process as if all were well, so that a check which loads it says nothing any more.

A program that is started does so rightly: in what is only run when it is, in functions that are called like one, and
in what these call. A failure that is handed on is no such end. Whatever else ends is named.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Final

from loopwright.core.foreign_writes import Names, names_of, resolved
from loopwright.core.literals import LONGEST

_EXITS: Final = frozenset({"sys.exit", "builtins.exit", "builtins.quit", "os._exit", "posix._exit"})
_AT_ONCE: Final = frozenset({"os._exit", "posix._exit"})
"""Nothing else is run after these, not even what a test runner would still say: no program has to."""
_REPLACED: Final = re.compile(r"(?:os|posix)\.exec[lv]p?e?")
_PROGRAM_FOLDERS: Final = frozenset({"bin", "scripts", "exe", "cmd", "cli"})
_PROGRAM_NAMES: Final = re.compile(r"__main__\.py|setup\.py|manage\.py|.*\.command")
_ENTRY: Final = re.compile(
    r"_*(?:main|cli)\w*|\w+_(?:main|cli)|(?:console_)?entry_?point|cmd_\w+|command_\w+|parse_arg\w*|get_args"
    r"|_*(?:print|show|display)_(?:usage|help|version)|_*usage|_*version_callback|_*(?:quit|exit|shutdown|die|bye)(?:_\w+)?"
    r"|on_(?:quit|exit|close|closing|destroy|sig\w+)|\w*(?:signal|sigint|sigterm|sighup)\w*",
    re.IGNORECASE,
)
_STARTS: Final = re.compile(
    r"_*(?:run|execute|start|dispatch|serve|menu|prompt|ask|confirm|choose|select|read|load|setup|init|handle)(?:_\w+)?"
)
"""What a program may ask for an answer, and that may end it instead."""
_COMMAND: Final = re.compile(
    r"\b(?:click|typer)\.|\.(?:command|group|callback|subcommand)\b|\b(?:command|group)\("
)
_HANDED: Final = re.compile(
    r"signal|add_\w+|bind|connect|register|set_defaults|after|on|run|wrapper|Thread|Process|partial|command|Button"
)
_STEPS: Final = 8
"""So far a program is followed from one function to the next."""
_FAILURE: Final = re.compile(r"fail|err|message|msg", re.IGNORECASE)
_HARMLESS: Final = frozenset({"isinstance", "issubclass", "suppress", "raises", "assertRaises"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def ends_in_python(path: str, tree: ast.Module) -> Iterator[int]:
    """Yield the lines at which loading or calling Python source ends the process with 0."""
    program = _is_program(path)
    reader = _Reader(tree)
    for node, context in reader.contexts():
        origin = reader.ends(node, context)
        if origin in _AT_ONCE or (origin is not None and not (program or context.is_entry)):
            yield getattr(node, "lineno", 1)


def _is_program(path: str) -> bool:
    *folders, name = path.split("/")
    return bool(_PROGRAM_FOLDERS & set(folders)) or _PROGRAM_NAMES.fullmatch(name) is not None


class _Context:
    """Where a node stands."""

    def __init__(
        self, *, is_entry: bool = False, called: bool = False, errors: frozenset[str] = frozenset()
    ) -> None:
        self.is_entry = is_entry
        """Whether only a program that was started comes there."""
        self.called = called
        """Whether it stands in a function."""
        self.errors = errors
        """The names of what was caught."""


class _Reader:
    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.nodes = list(ast.walk(tree))
        bound = {one.id for one in self.nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        bound |= {one.name for one in self.nodes if isinstance(one, _Function)}
        known = {name: f"builtins.{name}" for name in ("exit", "quit") if name not in bound}
        self.names: Names = {**known, **names_of(tree)}
        # Many things that end are called like this when they are handed on.
        self.handed = {one.arg for one in self.nodes if isinstance(one, ast.arg)}
        self.functions = [one for one in self.nodes if isinstance(one, _Function)]
        self.in_classes = {
            id(inner): node for node in self.nodes if isinstance(node, ast.ClassDef) for inner in node.body
        }
        # Of what is raised, caught or asked for by its class, the class alone says nothing.
        self.quiet = {id(part) for node in self.nodes for one in _spoken_for(node) for part in ast.walk(one)}
        self.entries = self._entries()

    def contexts(self) -> Iterator[tuple[ast.AST, _Context]]:
        """Yield every node with where it stands."""
        waiting: list[tuple[ast.AST, _Context]] = [(self.tree, _Context())]
        while waiting:
            node, context = waiting.pop()
            yield node, context
            inner = context
            if isinstance(node, _Function | ast.Lambda):
                entry = context.is_entry or id(node) in self.entries
                inner = _Context(is_entry=entry, called=True, errors=context.errors)
            elif isinstance(node, ast.ExceptHandler) and node.name:
                errors = context.errors | {node.name}
                inner = _Context(is_entry=context.is_entry, called=context.called, errors=errors)
            guarded = _Context(is_entry=True, errors=context.errors) if _is_guard(node) else inner
            of_guard = {id(one) for one in node.body} if isinstance(node, ast.If) else set()
            waiting += [
                (child, guarded if id(child) in of_guard else inner) for child in ast.iter_child_nodes(node)
            ]

    def ends(self, node: ast.AST, context: _Context) -> str | None:
        """Return by what a node ends the process with 0, None when it does not."""
        match node:
            case ast.Call(func=func, args=args):
                origin = resolved(func, self.names) or ""
                if origin == "os.kill" and args and "getpid" in ast.unparse(args[0]):
                    return origin
                if _REPLACED.fullmatch(origin):
                    return origin
                if origin in _EXITS:
                    return None if _fails(args, context) else origin
                return "SystemExit" if _is_exit(func) and not _fails(args, context) else None
            case ast.Raise(exc=ast.Name(id="SystemExit")):
                return "SystemExit"
            case ast.Name(id=name) if name in self.handed:
                return None
            case ast.Attribute() | ast.Name() if id(node) not in self.quiet:
                origin = resolved(node, self.names) or ""
                return origin if origin in _EXITS else "SystemExit" if _is_exit(node) else None
        return None

    def _entries(self) -> set[int]:
        """Return the functions that are a program, and what these call without asking for an answer."""
        found = {id(one) for one in self.functions if self._is_entry(one)}
        guards = [
            one for node in self.nodes if isinstance(node, ast.If) and _is_guard(node) for one in node.body
        ]
        for _ in range(_STEPS):
            inside = [*guards, *(one for one in self.functions if id(one) in found)]
            nodes = [node for one in inside for node in ast.walk(one)]
            named = {name for node in nodes for name in _handed_on(node)}
            asked = {_last(node.func) for node in nodes if isinstance(node, ast.Call)}
            more = {
                id(one)
                for one in self.functions
                if one.name in named or (one.name in asked and _STARTS.fullmatch(one.name))
            }
            if more <= found:
                break
            found |= more
        return found

    def _is_entry(self, node: _Function) -> bool:
        if _ENTRY.fullmatch(node.name) or any(
            _COMMAND.search(ast.unparse(one)) for one in node.decorator_list
        ):
            return True
        around = self.in_classes.get(id(node))
        bases = " ".join(ast.unparse(one) for one in around.bases) if around is not None else ""
        if re.search(r"Action\b", bases):
            return node.name == "__call__"
        if re.search(r"Command\b|Cmd\b", bases):
            return node.name == "handle" or node.name.startswith("do_")
        return [one.arg for one in node.args.args][-2:] in (
            ["signum", "frame"],
            ["sig", "frame"],
            ["signal", "frame"],
        )


def _is_guard(node: ast.AST) -> bool:
    match node:
        case ast.If(
            test=ast.Compare(
                left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant(value="__main__")]
            )
        ):
            return True
    return False


def _is_exit(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "SystemExit"


def _spoken_for(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Raise(exc=ast.Name() as exc):
            yield exc
        case ast.ExceptHandler(type=ast.expr() as kind):
            yield kind
        case ast.Tuple() | ast.Compare():
            yield from (one for one in ast.iter_child_nodes(node) if _is_exit(one))
        case ast.Call(func=func, args=args):
            yield func
            if _last(func) in _HARMLESS:
                yield from args
        case ast.FunctionDef(returns=ast.expr() as kind) | ast.arg(annotation=ast.expr() as kind):
            yield kind


def _fails(args: Sequence[ast.expr], context: _Context) -> bool:
    """Say whether what is handed on at the end says that something went wrong."""
    match args:
        case [ast.Constant(value=value), *_]:
            return value is not None and value != 0
        case [ast.JoinedStr() | ast.UnaryOp(op=ast.USub()), *_]:
            return True
        case [ast.BinOp() as put_together, *_]:
            parts = (one.value for one in ast.walk(put_together) if isinstance(one, ast.Constant))
            return any(isinstance(one, str) for one in parts)
        case [ast.Name(id=name) | ast.Attribute(attr=name), *_] if name in context.errors or _FAILURE.search(
            name
        ):
            return True
        case [ast.IfExp(body=body, orelse=other), *_]:
            return _fails([body], context) or _fails([other], context)
        case [ast.Call(func=func), *_]:
            # While a module is loaded, `sys.exit(main())` is what old programs do.
            return not context.called or _last(func) in ("str", "repr", "format", "join")
    return False


def _handed_on(node: ast.AST) -> Iterator[str]:
    """Yield the names of functions that are called for what they do, or handed to what will call them."""
    match node:
        case ast.Expr(value=ast.Call() as call) | ast.Return(value=ast.Call() as call):
            yield _last(call.func)
        case ast.Expr(value=ast.Await(value=ast.Call() as call)):
            yield _last(call.func)
        case ast.keyword(value=ast.Name() | ast.Attribute() as value):
            yield _last(value)
        case ast.Dict(values=values):
            yield from (_last(one) for one in values)
        case ast.Call(func=func, args=args):
            ends = _last(func) == "exit" or _HANDED.fullmatch(_last(func)) is not None
            yield from (_last(one.func if isinstance(one, ast.Call) else one) for one in args if ends)


def _last(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


# --- any other language --------------------------------------------------------------------------

_SCRIPTS: Final = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".vue", ".svelte")
_JS_ALWAYS: Final = re.compile(
    r"process\.reallyExit|process\.exitCode\s*=\s*0|process\.kill\(\s*process\.pid"
)
_JS_ENDS: Final = re.compile(
    r"(?<![\w.])(?:globalThis\.)?process(?:\.exit|\[['\"`]exit['\"`]\])\(\s*(?:0\s*)?\)|\bDeno\.exit\(\s*0?\s*\)"
)
_JS_TAKES: Final = re.compile(
    r"\{[^{}]{0,400}?\bexit\b(?:\s*+(?::|as)\s*+(?P<a>\w++))?[^{}]{0,400}+\}\s*+(?:=\s*+(?:require\(\s*+['\"](?:node:)?process['\"]\s*+\)|(?:globalThis\.)?process\b)"
    r"|from\s*+['\"](?:node:)?process['\"])|\b(?P<b>\w++)\s*+=\s*+process\.exit\b(?!\()"
    r"|(?:import\s++(?:\*\s++as\s++)?(?P<c>\w++)\s++from|\b(?P<d>\w++)\s*+=\s*+require\()\s*+['\"](?:node:)?process['\"]"
)
"""Nothing in it is tried twice: an agent may write a file of one word, or of one bracket."""
_JS_PROGRAM: Final = re.compile(
    r"(?<![\w.])(?:function\s+|const\s+|let\s+|async\s+)*_*(?:main|cli|run|usage|help|quit|exit|shutdown|die|bye|close|stop)\w*\s*(?:[=(]|:)"
    r"|process\.on(?:ce)?\(|require\.main|import\.meta\.(?:main|url)|process\.argv|\.(?:action|command|option|on)\(",
    re.IGNORECASE,
)
_JS_FILE: Final = re.compile(r"(?:cli|main|bin|index\.cli)\.[cm]?[jt]sx?")
_GO_EXIT: Final = re.compile(r"\b(?:os|syscall)\.Exit\(0\)")
_GO_INIT: Final = re.compile(r"^func init\(\)", re.MULTILINE)
_GO_MAIN: Final = re.compile(r"^package main\b", re.MULTILINE)
_RUST_EXIT: Final = re.compile(r"\bprocess::exit\(\s*0\s*\)")
_RUBY_EXIT: Final = re.compile(r"^\s*(?:Kernel\.)?exit(?:!(?:\s|\(|$)|[\s(]+(?:0|true)\)?|\s*$)")


def ends_in_lines(path: str, lines: Sequence[str]) -> Iterator[int]:
    """Yield the lines at which source of another language ends the process with 0."""
    whole = "\n".join(lines)
    if path.endswith(_SCRIPTS):
        yield from _in_script(path, lines, whole)
    if path.endswith(".go") and (_GO_INIT.search(whole) or not _GO_MAIN.search(whole)):
        yield from _found(_GO_EXIT, lines)
    program = _is_program(path) or lines[:1] == [] or lines[0].startswith("#!")
    if path.endswith(".rs") and not (program or path.endswith("main.rs")):
        yield from _found(_RUST_EXIT, lines)
    if path.endswith(".rb") and not program:
        yield from _found(_RUBY_EXIT, lines)


def _found(pattern: re.Pattern[str], lines: Sequence[str]) -> Iterator[int]:
    yield from (n for n, line in enumerate(lines, 1) if len(line) <= LONGEST and pattern.search(line))


def _in_script(path: str, lines: Sequence[str], whole: str) -> Iterator[int]:
    yield from _found(_JS_ALWAYS, lines)
    if _is_program(path) or _JS_FILE.fullmatch(path.rpartition("/")[2]) or whole.startswith("#!"):
        return
    calls = [_JS_ENDS.pattern]
    for found in _JS_TAKES.finditer(whole):
        of = found["c"] or found["d"]
        name = rf"{re.escape(of)}\.exit" if of else re.escape(found["a"] or found["b"] or "exit")
        calls.append(rf"(?<![\w.]){name}\(\s*(?:0\s*)?\)")
    ends = re.compile("|".join(calls))
    for n in _found(ends, lines):
        before = ends.split(lines[n - 1], maxsplit=1)[0]
        if not _is_of_a_program([*lines[: n - 1], before]):
            yield n


def _is_of_a_program(lines: Sequence[str]) -> bool:
    """Say whether what stands around the last line, by how far it is indented, is only run by a program or its user."""
    depth = LONGEST
    for line in reversed(lines):
        if _indent(line) < depth and (line.strip() or depth == LONGEST):
            depth = _indent(line)
            if _JS_PROGRAM.search(line):
                return True
    return False


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
