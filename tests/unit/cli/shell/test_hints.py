"""Every command line that the program prints, and every one that the documentation shows, can be typed as it is."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App
from cyclopts.exceptions import CoercionError, CycloptsError

from loopwright.cli.shell.command_table import COMMANDS, HIDDEN, build
from loopwright.core.values.wording import to_type

ROOT = Path(__file__).resolve().parents[4]
SOURCES = sorted((ROOT / "src/loopwright").rglob("*.py"))
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
NASTY = "-w it's"
"""What a person or an agent may have called something: it looks like an option, and the shell splits it."""

TYPED = re.compile(r"(?<![\w./-])loopwright (?=--?[a-z]|[a-z]|⟦)(?P<rest>[^`\n]*?)(?=`|\n|$|   | {2}\S)")
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`loopwright ([a-z][^`]*)`")


@pytest.fixture(scope="module")
def app() -> App:
    return build()


def problem(app: App, line: str) -> str:
    """Return why a command line cannot be typed; empty when it can."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError as error:
        return f"{line}: {error}"
    try:
        app.parse_args(words, exit_on_error=False, print_error=False)
    except CoercionError as error:
        # Which word of a few is meant is not known here.
        placeholder = error.token is not None and re.fullmatch(r"x|[A-Z]+|" + NASTY, error.token.value)
        return "" if placeholder else f"{line}: {error}"
    except CycloptsError as error:
        return f"{line}: {type(error).__name__}"
    return ""


def docstrings(tree: ast.AST) -> set[int]:
    """Return the strings that document the code, which nobody is told to type."""
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def printed(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the texts of a module, with ⟦…⟧ for each value that is put into one."""
    skipped = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped |= {
                id(one) for one in ast.walk(node) if one is not node and isinstance(one, ast.Constant)
            }
            yield node.lineno, "".join(_part(one) for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value


def _part(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.FormattedValue)
    return f"⟦{ast.unparse(node.value)}⟧"


def is_plain(expression: str) -> bool:
    """Return whether a value needs no quoting: an id, or a constant of the program."""
    return bool(re.fullmatch(r"short_id\(.*\)|[\w.]+\.id|[A-Z_.]+", expression))


def test_every_command_line_that_is_written_out_in_the_source_can_be_typed(app: App) -> None:
    found, wrong = 0, []
    for path in SOURCES:
        source = path.read_text("utf-8")
        for line, text in printed(ast.parse(source)) if "loopwright " in source else ():
            for match in TYPED.finditer(text):
                rest = match["rest"].strip()
                named = re.match(r"[a-z-]*", rest)
                if named and named[0] in HIDDEN:
                    wrong.append(f"{path.name}:{line}: {named[0]} is a hidden name")
                if not (named and named[0] in COMMANDS) and not re.match(r"--|⟦[^⟧]*⟧.", rest):
                    continue  # the program's name in a sentence, or with its version
                found += 1
                unsafe = [one for one in re.findall(r"⟦(.*?)⟧", rest) if not is_plain(one)]
                why = f"use to_type for {unsafe}" if unsafe else problem(app, re.sub("⟦.*?⟧", "x", rest))
                if why:
                    wrong.append(f"{path.name}:{line}: {why}")
    assert found > 50
    assert not wrong, "\n".join(wrong)


def test_every_command_line_that_is_made_can_be_typed_whatever_things_are_called(app: App) -> None:
    found, wrong = 0, []
    for path in SOURCES:
        source = path.read_text("utf-8")
        for node in ast.walk(ast.parse(source)) if "to_type(" in source else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "to_type":
                found += 1
                words = [_value(one) for one in node.args]
                # Which command it is, is always known where one is made, or it is one that takes a plan.
                words[0] = "status" if words[0] == NASTY else words[0]
                if words[0] in HIDDEN:
                    wrong.append(f"{path.name}:{node.lineno}: {words[0]} is a hidden name")
                options = {one.arg: _value(one.value) for one in node.keywords if one.arg is not None}
                line = to_type(*words, **options)
                if why := problem(app, line.removeprefix("loopwright ")):
                    wrong.append(f"{path.name}:{node.lineno}: {why}")
    assert found > 30
    assert not wrong, "\n".join(wrong)


def _value(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) else NASTY


def test_every_command_line_in_the_documentation_can_be_typed(app: App) -> None:
    found, wrong = 0, []
    for path in PAGES:
        text = path.read_text("utf-8")
        lines = [
            line.strip().removeprefix("$ ") for block in BLOCK.findall(text) for line in block.splitlines()
        ]
        typed = [line.removeprefix("loopwright ") for line in lines if line.startswith("loopwright ")]
        # The bare name of a command is a name, not something to type.
        inline = [one for one in INLINE.findall(text) if one not in COMMANDS]
        found += len(typed) + len(inline)
        for line in (*typed, *inline):
            if why := problem(app, line):
                wrong.append(f"{path.name}: {why}")
    assert found > 40
    assert not wrong, "\n".join(wrong)
