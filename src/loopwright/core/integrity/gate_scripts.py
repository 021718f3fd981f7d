"""Find the project's scripts that a gate runs: those in its commands, and those that these run in turn.

A command says `make check`, the Makefile says `sh ci/all.sh`, and that says `python ci/rules.py`: all three
count. They are found by reading, one step after the other; the caller reads the files of the tree.
"""

import json
import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from loopwright.core.integrity.command_lines import (
    SHELL,
    Call,
    calls_in,
    given,
    is_outside,
    joined,
    read,
    takes_code,
    takes_name,
    words_of,
)
from loopwright.core.integrity.imports import files_at, imported
from loopwright.core.integrity.makefiles import file_targets, make_steering
from loopwright.core.values.policy import GateCommand

STEPS: Final = 4
"""The longest chain of scripts that is followed."""
LARGEST: Final = 200_000
"""A file with more characters was not written by hand."""
MAKEFILES: Final = ("GNUmakefile", "makefile", "Makefile")
PACKAGE: Final = "package.json"
_INTERPRETERS: Final = {
    SHELL: frozenset({"-c"}),
    r"python[\d.]*": frozenset({"-c", "-m"}),
    r"node|ruby|perl|php|tsx|ts-node|esno|vite-node": frozenset(
        {"-e", "-p", "-r", "--eval", "--print", "--test"}
    ),
}
"""Programs that run a file, each with the options after which no file follows."""
_WRAPPERS: Final = frozenset({"env", "exec", "time", "nice", "sudo", "command", "npx", "bunx", "timeout"})
_RUNS: Final = {
    **dict.fromkeys(
        ("uv", "poetry", "pdm", "hatch", "pipenv", "rye", "pixi", "deno", "bun", "mise"), ("run", "exec")
    ),
    **dict.fromkeys(("pnpm", "yarn", "npm", "bundle"), ("exec", "dlx")),
}
"""Programs that run another program, which comes after one of these words."""
_WITH_FILE: Final = frozenset({"uv", "deno", "bun"})
"""Those of them that also take a file."""
_SUFFIXES: Final = (".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".sh")
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
_IMAGES: Final = (
    *("Dockerfile", "Containerfile"),
    *("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"),
)
_JUSTFILES: Final = ("justfile", "Justfile", ".justfile")
_TASKFILES: Final = tuple(
    f"{name}.{end}" for name in ("Taskfile", "Taskfile.dist") for end in ("yml", "yaml")
)
_READ_BY: Final = {
    **dict.fromkeys(("docker", "podman", "docker-compose", "podman-compose"), _IMAGES),
    "just": _JUSTFILES,
    **dict.fromkeys(("task", "go-task"), _TASKFILES),
    "tox": ("tox.ini",),
    "nox": ("noxfile.py",),
    "pre-commit": (".pre-commit-config.yaml",),
    **dict.fromkeys(("inv", "invoke"), ("tasks.py",)),
    "rake": ("Rakefile",),
}
"""Files that say what a program runs; most of them say nothing about the gate, so they count only then."""
_BEFORE: Final = re.compile(r"^(?:-\s+)*(?:[A-Za-z_][\w-]*\s*(?::(?!:)|[?+]?=)\s*)?(?:-\s+)*(?:\[\s*)?")
"""The text before a command in the lines of these files: `- `, `cmd: `, `commands = `."""
_SAID: Final = re.compile(r"\.(?:run|run_always|run_install|sudo)\(([^()]*)\)|\bsystem\(([^()]*)\)")
_TEXTS: Final = re.compile(r"['\"]([^'\"\n]*)['\"]")
_LISTING: Final = frozenset({*_TASKFILES, "tox.ini", ".pre-commit-config.yaml"})
_WITH_CALLS: Final = frozenset({"noxfile.py", "tasks.py"})
_SOURCES: Final = frozenset({".", "source"})
_NAMES_MAKEFILE: Final = frozenset({"-f", "--file", "--makefile"})
_PLACES: Final = 12
"""The most folders in which a script's files are searched, if it changes folder."""


def scripts_in(
    gates: Iterable[GateCommand], acceptance: Iterable[GateCommand] = (), *, sourced: bool = True
) -> frozenset[str]:
    """Return the paths that commands run as programs, hand to an interpreter, or read into their shell.

    Acceptance may run what the task is about, so there a path counts only if its name suggests a check.
    """
    found = {path for gate in gates for path in _scripts(gate.command, sourced=sourced)}
    found |= {
        path
        for each in acceptance
        for path in _scripts(each.command, sourced=sourced)
        if _CHECKING.search(path)
    }
    return frozenset(found)


def first_looks(gates: Iterable[GateCommand], acceptance: Iterable[GateCommand] = ()) -> frozenset[str]:
    """Return the files that say what commands run, at any place in the tree; empty for most commands."""
    gates, acceptance = list(gates), list(acceptance)
    found = set(scripts_in(gates, acceptance))
    found |= {path for each in gates for path in _modules(each.command)}
    found |= {path for each in acceptance for path in _modules(each.command) if _CHECKING.search(path)}
    for call in (call for each in (*gates, *acceptance) for call in calls_in(each.command)):
        names = [*(MAKEFILES if _MAKE.search(call.text) else ()), *_package_of(call)]
        names += [name for word in call.words for name in _READ_BY.get(posixpath.basename(word), ())]
        found |= {joined(call.folder, name) for name in names}
    return frozenset(path for path in found if not is_outside(path))


def run_by(path: str, text: str, gates: Sequence[str], acceptance: Sequence[str]) -> frozenset[str]:
    """Return the possible paths of what a gate file runs; not every path need exist.

    The commands decide which parts of a Makefile or package.json count; acceptance is handled as in
    `scripts_in`.
    """
    name, folder = posixpath.basename(path), posixpath.dirname(path)
    if len(text) > LARGEST:
        return frozenset()
    if name in (*MAKEFILES, PACKAGE):
        theirs = _of_lines(_recipes(name, text, acceptance), folder, goes_on=False)
        own = _of_lines(_recipes(name, text, gates), folder, goes_on=False)
        return frozenset({*own, *(each for each in theirs if _CHECKING.search(each))})
    if name.endswith((".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts")):
        # A script outside folders for checks would be the work itself.
        places = (place for place in imported(path, text) if _FOLDER.search(f"{posixpath.dirname(place)}/"))
        found = {file for place in places if not is_outside(place) for file in files_at(place)}
        return frozenset(found.union(_of_lines(_said(text), folder) if name in _WITH_CALLS else ()))
    lines = text.splitlines()
    return frozenset(_of_lines(map(_bare, lines) if name in _LISTING else lines, folder))


def made_by(path: str, text: str, commands: Sequence[str]) -> frozenset[str]:
    """Return the paths of files or folders that would stop make from running what these commands ask for."""
    if posixpath.basename(path) not in MAKEFILES or len(text) > LARGEST:
        return frozenset()
    calling = _calling(commands)
    places = (joined(posixpath.dirname(path), target) for target in file_targets(text, calling))
    return frozenset(place for place in places if calling and place and not is_outside(place))


def calls_make(commands: Iterable[str]) -> bool:
    """Return whether one of these commands calls make itself."""
    return bool(_calling(commands))


def _calling(commands: Iterable[str]) -> list[str]:
    calls = (call for command in commands for call in calls_in(command))
    return [shlex.join(call.words) for call in calls if _MAKE.search(call.text)]


def _bare(line: str) -> str:
    """Return a line of a file that lists commands without that file's own markup."""
    return _BEFORE.sub("", line.strip(), count=1).strip().strip("'\"")


def _said(text: str) -> list[str]:
    """Return the commands that a Python file runs: `session.run("sh", "ci/all.sh")`."""
    return [" ".join(_TEXTS.findall(one or other)) for one, other in _SAID.findall(text)]


def _recipes(name: str, text: str, commands: Sequence[str]) -> Sequence[str]:
    """Return the command lines that these commands reach in a file with several recipes."""
    if name == PACKAGE:
        return _npm_lines(text, commands)
    calling = _calling(commands)
    return make_steering(text, calling) if calling else ()


def _of_lines(lines: Iterable[str], folder: str, *, goes_on: bool = True) -> Iterator[str]:
    """Yield the possible paths of what lines run: from the top, a folder, or where earlier lines changed to."""
    places = dict.fromkeys(("", folder))
    for line in lines:
        plain = line.strip().lstrip("@-+").strip()
        for path in (*_scripts(plain), *_modules(plain)):
            yield from (joined(place, path) for place in places)
        ends = read(plain)[1] if goes_on else ""
        if ends and len(places) < _PLACES:
            places |= dict.fromkeys([joined(place, ends) for place in places])


def _npm_lines(text: str, commands: Sequence[str]) -> list[str]:
    """Return the scripts of package.json that commands call, and those that they call."""
    try:
        scripts = json.loads(text)["scripts"]
    except (ValueError, KeyError, TypeError):
        return []
    if not isinstance(scripts, dict):
        return []
    called: dict[str, str] = {}
    waiting = _package_words(commands)
    waiting += ["test"] if "t" in waiting else []
    while waiting:
        name = waiting.pop()
        for each in (f"pre{name}", name, f"post{name}"):
            if isinstance(scripts.get(each), str) and each not in called:
                called[each] = scripts[each]
                waiting += words_of(scripts[each])
    return list(called.values())


def _package_of(call: Call) -> tuple[str, ...]:
    return (PACKAGE,) if _PACKAGE.search(call.text) else ()


def _package_words(commands: Iterable[str]) -> list[str]:
    """Return the words with which commands call scripts of package.json."""
    calls = (call for command in commands for call in calls_in(command))
    return [word for call in calls if _package_of(call) for word in call.words]


def _modules(command: str) -> list[str]:
    """Return the possible paths of modules that a command runs with `python -m`."""
    found: list[str] = []
    for call in calls_in(command):
        for name in _MODULE.findall(call.text):
            if name.partition(".")[0] not in _INSTALLED:
                path = name.replace(".", "/")
                places = [f"{top}{path}{end}" for top in ("", "src/") for end in (".py", "/__main__.py")]
                found += [joined(call.folder, place) for place in places]
    return found


def _scripts(command: str, *, sourced: bool = True) -> list[str]:
    """Return the files that a command runs, relative to where it runs."""
    found: list[str] = []
    for call in calls_in(command):
        named = _run_in(call.words)
        if call.program in _SOURCES and sourced:
            named.append("".join(call.words[1:2]))
        if _MAKE.search(call.text):
            files = given(call.words, _NAMES_MAKEFILE)
            named += [file for file in files if posixpath.basename(file) not in MAKEFILES]
        found += [joined(call.folder, word) for word in named if word and not is_outside(word)]
    return [path for path in found if path and not is_outside(path)]


def _run_in(words: Sequence[str]) -> list[str]:
    found: list[str] = []
    starts, takes_file, is_name = True, False, False
    instead: frozenset[str] | None = None
    behind: tuple[str, ...] = ()
    for word in words:
        name = posixpath.basename(word)
        if behind:
            # What follows `uv run` and the like is a separate command.
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
            is_shell = instead is _INTERPRETERS[SHELL]
            is_option = word.startswith("-") or is_name
            if not is_option:
                found.append(word)
            if not is_option or word in instead or (is_shell and takes_code(word)):
                instead = None
            is_name = is_shell and not is_name and takes_name(word)
    return found


def _comes_first(word: str) -> bool:
    """Return whether a word precedes the actual program: a variable, another program, or one of its options."""
    return (
        word.startswith("-")
        or posixpath.basename(word) in _WRAPPERS
        or re.match(r"[A-Za-z_]\w*=|\d[\d.]*[smh]?$", word) is not None
    )
