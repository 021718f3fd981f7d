"""Which scripts of the project a gate runs: those in its commands, and those that these run in turn.

A command says `make check`, the Makefile says `sh ci/all.sh`, and that says `python ci/rules.py`: all three decide.
They are found by reading, one step after the other; whoever has the files of the tree reads them for it.
"""

import json
import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from loopwright.core.makefiles import make_steering
from loopwright.core.policy import GateCommand

STEPS: Final = 4
"""So many scripts are followed one behind the other."""
LARGEST: Final = 200_000
"""A file with more characters was not written by hand."""
MAKEFILES: Final = ("GNUmakefile", "makefile", "Makefile")
PACKAGE: Final = "package.json"
_INTERPRETERS: Final = {
    r"(?:ba|da|z|k)?sh": frozenset({"-c"}),
    r"python[\d.]*": frozenset({"-c", "-m"}),
    r"node|ruby|perl|php|tsx|ts-node|esno|vite-node": frozenset(
        {"-e", "-p", "-r", "--eval", "--print", "--test"}
    ),
}
"""Programs that run a file, each with the options after which no file comes."""
_WRAPPERS: Final = frozenset({"env", "exec", "time", "nice", "sudo", "command", "npx", "bunx", "timeout"})
_RUNS: Final = {
    **dict.fromkeys(
        ("uv", "poetry", "pdm", "hatch", "pipenv", "rye", "pixi", "deno", "bun", "mise"), ("run", "exec")
    ),
    **dict.fromkeys(("pnpm", "yarn", "npm", "bundle"), ("exec", "dlx")),
}
"""Programs that run another one, after one of these words."""
_WITH_FILE: Final = frozenset({"uv", "deno", "bun"})
"""Of those, these that also take a file."""
_SUFFIXES: Final = (".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".sh")
_BETWEEN: Final = frozenset({";", "&&", "||", "|", "&", "(", ")", "{", "}", "!", "then", "do", "else", "if"})
_CHECKING: Final = re.compile(
    r"test|check|verif|gate|lint|spec|accept|(?:^|/)(?:ci|scripts?|tools|hack)/", re.IGNORECASE
)
_FOLDER: Final = re.compile(
    r"(?:^|/)(?:\.?ci|scripts?|tools|hack|checks?|gates?|build)(?:/|$)", re.IGNORECASE
)
_MODULE: Final = re.compile(r"python[\d.]*(?:\s+-[A-Zbdiqsuvx]+)*\s+-m\s+([A-Za-z_][\w.]*)")
_INSTALLED: Final = frozenset(
    {"pytest", "unittest", "mypy", "ruff", "black", "flake8", "pylint", "isort", "coverage", "tox", "nox"}
    | {"build", "pip", "venv", "compileall", "py_compile", "doctest"}
)
_MAKE: Final = re.compile(r"(?:^|[\s;&|(@])(?:make|\$[({]MAKE[)}])(?:\s|$)")
_PACKAGE: Final = re.compile(r"\b(?:npm|pnpm|yarn|bun|node\s+--run)\b")
_SOURCED: Final = re.compile(r"(?:^|[;&|]\s*)(?:\.|source)\s+([\w./-]+)")
_PYTHON_IMPORT: Final = re.compile(
    r"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]+(\w+)|import[ \t]+([\w.]+))", re.MULTILINE
)
_NODE_IMPORT: Final = re.compile(r"(?:require\(|from\s+|import\s+|import\()\s*['\"](\.{1,2}/[^'\"]+)['\"]")


def scripts_in(gates: Iterable[GateCommand], acceptance: Iterable[GateCommand] = ()) -> frozenset[str]:
    """Return the paths that commands run as programs or hand to an interpreter.

    What a task's own acceptance runs may be the very thing that the task is about, so there a path counts only when its
    name speaks of checking.
    """
    found = {path for gate in gates for path in _scripts(gate.command)}
    found |= {path for each in acceptance for path in _scripts(each.command) if _CHECKING.search(path)}
    return frozenset(found)


def first_looks(gates: Iterable[GateCommand], acceptance: Iterable[GateCommand] = ()) -> frozenset[str]:
    """Return the files that say what commands run, wherever the tree has them; none for most commands."""
    gates, acceptance = list(gates), list(acceptance)
    found = set(scripts_in(gates, acceptance))
    found |= {path for each in gates for path in _modules(each.command)}
    found |= {path for each in acceptance for path in _modules(each.command) if _CHECKING.search(path)}
    for each in (*gates, *acceptance):
        found |= set(MAKEFILES) if _MAKE.search(each.command) else set()
        found |= {PACKAGE} if _PACKAGE.search(each.command) else set()
    return frozenset(found)


def run_by(path: str, text: str, gates: Sequence[str], acceptance: Sequence[str]) -> frozenset[str]:
    """Return where what a file of the gate runs may lie; not every place need be there.

    Commands say what of a Makefile or of package.json is run; with acceptance it is as in `scripts_in`.
    """
    name, folder = posixpath.basename(path), posixpath.dirname(path)
    if len(text) > LARGEST:
        return frozenset()
    if name in (*MAKEFILES, PACKAGE):
        theirs = {each for each in _of_lines(_recipes(name, text, acceptance), "") if _CHECKING.search(each)}
        return frozenset({*_of_lines(_recipes(name, text, gates), ""), *theirs})
    if name.endswith(".py"):
        return frozenset(_python_imports(text, folder))
    if name.endswith((".js", ".mjs", ".cjs", ".ts", ".mts", ".cts")):
        return frozenset(_node_imports(text, folder))
    return frozenset(_of_lines(text.splitlines(), folder))


def _recipes(name: str, text: str, commands: Sequence[str]) -> Sequence[str]:
    """Return the command lines of a file that holds several, as far as these commands lead to them."""
    if name == PACKAGE:
        return _npm_lines(text, commands)
    calling = [command for command in commands if _MAKE.search(command)]
    return make_steering(text, calling) if calling else ()


def _of_lines(lines: Iterable[str], folder: str) -> Iterator[str]:
    for line in lines:
        plain = line.strip().lstrip("@-+").strip()
        for path in (*_scripts(plain), *_modules(plain), *_SOURCED.findall(plain)):
            yield posixpath.normpath(path)
            if folder:
                yield posixpath.normpath(posixpath.join(folder, path))


def _npm_lines(text: str, commands: Sequence[str]) -> list[str]:
    """Return the scripts of package.json that commands call, and those that these call."""
    try:
        scripts = json.loads(text)["scripts"]
    except (ValueError, KeyError, TypeError):
        return []
    if not isinstance(scripts, dict):
        return []
    called: dict[str, str] = {}
    waiting = [word for command in commands if _PACKAGE.search(command) for word in _words(command)]
    waiting += ["test"] if "t" in waiting else []
    while waiting:
        name = waiting.pop()
        for each in (f"pre{name}", name, f"post{name}"):
            if isinstance(scripts.get(each), str) and each not in called:
                called[each] = scripts[each]
                waiting += _words(scripts[each])
    return list(called.values())


def new_scripts(before: str | None, after: str | None, commands: Sequence[str]) -> list[str]:
    """Return the scripts of package.json that commands call and that were not there before."""
    try:
        old, new = (json.loads(text or "{}").get("scripts") or {} for text in (before, after))
    except (ValueError, AttributeError):
        return []
    words = {word for command in commands if _PACKAGE.search(command) for word in _words(command)}
    return sorted(name for name in new if name not in old and name in words) if isinstance(new, dict) else []


def _python_imports(text: str, folder: str) -> Iterator[str]:
    """Yield what a script imports from a folder for checking: elsewhere it would be the work itself."""
    for module, what, whole in _PYTHON_IMPORT.findall(text):
        name = (module or whole).lstrip(".").replace(".", "/")
        for stem in (name, f"{name}/{what}" if what else name):
            for place in (stem, posixpath.join(folder, stem)):
                if place and _FOLDER.search(f"{posixpath.dirname(place)}/"):
                    yield from (f"{place}.py", f"{place}/__init__.py")


def _node_imports(text: str, folder: str) -> Iterator[str]:
    for name in _NODE_IMPORT.findall(text):
        place = posixpath.normpath(posixpath.join(folder, name))
        if _FOLDER.search(f"{posixpath.dirname(place)}/"):
            yield from (place, *(place + suffix for suffix in (".js", ".mjs", ".cjs", ".ts")))


def _modules(command: str) -> list[str]:
    """Return where the modules lie that a command runs with `python -m`."""
    found: list[str] = []
    for name in _MODULE.findall(command):
        if name.partition(".")[0] not in _INSTALLED:
            path = name.replace(".", "/")
            found += [f"{top}{path}{end}" for top in ("", "src/") for end in (".py", "/__main__.py")]
    return found


def _words(command: str) -> list[str]:
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        return list(lexer)
    except ValueError:
        return command.split()


def _scripts(command: str) -> list[str]:
    found: list[str] = []
    starts, takes_file = True, False
    instead: frozenset[str] | None = None
    behind: tuple[str, ...] = ()
    for word in _words(command):
        name = posixpath.basename(word)
        if word in _BETWEEN:
            starts, takes_file, instead, behind = True, False, None, ()
        elif behind:
            # What stands behind `uv run` and its like is a command of its own.
            starts, behind = word in behind, behind if word.startswith("-") else ()
        elif starts and not _comes_first(word):
            starts = False
            if name in _RUNS:
                behind, takes_file = _RUNS[name], name in _WITH_FILE
                continue
            if "/" in word or (takes_file and word.endswith(_SUFFIXES)):
                found.append(word)
            instead = next((_INTERPRETERS[each] for each in _INTERPRETERS if re.fullmatch(each, name)), None)
        elif not starts and instead is not None:
            if not word.startswith("-"):
                found.append(word)
            if not word.startswith("-") or word in instead:
                instead = None
    plain = (posixpath.normpath(word) for word in found if not word.startswith(("/", "~", "$")))
    return [path for path in plain if not path.startswith("../")]


def _comes_first(word: str) -> bool:
    """Say whether a word stands in front of the program that is meant: a variable, another program, an option of it."""
    return (
        word.startswith("-")
        or posixpath.basename(word) in _WRAPPERS
        or re.match(r"[A-Za-z_]\w*=|[\d.]+[smh]?$", word) is not None
    )
