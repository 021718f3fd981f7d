"""Check a plan against the place where it would run: do its checks exist, and is its work already done?

Pure functions over facts from the caller. Only obvious facts count: a complex command is accepted, and
nothing is reported as missing if a setup command or a task could provide it.
"""

import posixpath
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Protocol

from loopwright.core.integrity.gate_scripts import scripts_in
from loopwright.core.plans.evaluating import Finding, Item, Weight, some
from loopwright.core.values.globs import any_covers
from loopwright.core.values.permissions import parts
from loopwright.core.values.policy import GateCommand

MAKEFILES: Final = ("GNUmakefile", "makefile", "Makefile")
"""The file names that `make` tries, in its order."""
FAILED_BEFORE: Final = "failed_before"
_UNCOMMITTED: Final = "is in your checkout, but not committed"
_BUILT_IN: Final = frozenset(
    {
        ".",
        ":",
        "[",
        "alias",
        "break",
        "case",
        "cd",
        "command",
        "continue",
        "do",
        "done",
        "echo",
        "elif",
        "else",
    }
    | {
        "esac",
        "eval",
        "exec",
        "exit",
        "export",
        "false",
        "fi",
        "for",
        "function",
        "getopts",
        "hash",
        "if",
        "local",
    }
    | {
        "printf",
        "pwd",
        "read",
        "readonly",
        "return",
        "set",
        "shift",
        "test",
        "then",
        "time",
        "times",
        "trap",
        "true",
    }
    | {"type", "ulimit", "umask", "unalias", "unset", "until", "wait", "while", "!", "source"}
)
"""Words that a shell defines itself."""
_MARKS: Final = re.compile(r"[^\w\s./:=,@%+-]")
"""Characters with a special meaning to a shell; most commands contain none."""
_VALUE: Final = re.compile(r"[A-Za-z_]\w*=")
_TARGET: Final = re.compile(r"^([^\s#:=][^#:=\n]*?)\s*::?(?!=)", re.MULTILINE)
_GENERATED: Final = re.compile(r"^\s*(?:-?include|sinclude)\b|^[^#\n]*%[^#\n]*:|\$[({]", re.MULTILINE)
_CREATES: Final = re.compile(
    r"(?:create|add|introduce|generate|write)\s+"
    r"(?:(?:a|an|the|new|file|module|script|page|document|class|component|called|named)\s+)*"
    r"[`'\"]?(?P<path>[\w.@-]+(?:/[\w.@-]+)*)[`'\"]?\s*(?:$|[,.;:(]|\s(?:with|that|which|for|as|containing)\b)",
    re.IGNORECASE,
)
_PIP: Final = re.compile(
    r"(?:^|[;&|(]\s*)(?:\w+=\S*\s+)*(?:python[\d.]*\s+-m\s+)?pip[\d.]*\s+install\s(?:.*\s)?[\"']?\.(?:/|\[|[\"']|\s|$)"
)
"""pip without a path in front, installing the folder that it runs in."""
_OWN_ENVIRONMENT: Final = re.compile(r"venv|activate|\s(?:-t|--target|--prefix|--root|--python)\b")
_IS_THERE: Final = re.compile(r"(?:test|\[)\s+-[efs]\s+[\"']?(?P<path>[\w./@-]+)[\"']?(?:\s+\])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The context of a plan."""

    files: Collection[str] = frozenset()
    """Paths of its base commit, relative to the project."""
    makefile: str | None = None
    """The file that `make` would read there."""
    lies_about: Callable[[str], bool] = lambda _: False
    """Whether the checkout has a file, committed or not."""
    has_program: Callable[[str], bool] = lambda _: True
    brings: bool = False
    """Whether a setup command, or files that are copied into workspaces, may provide what is missing."""
    elsewhere: bool = False
    """Whether gates may run on machines that this process cannot inspect."""
    failed_before: Mapping[str, str] = field(default_factory=dict)
    """Commands that failed on this exact tree, each with the time."""
    done: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    """Finished tasks of this project, by `likeness`, each with its plan."""


class Work(Item, Protocol):
    """What these passes need to know about a task."""

    @property
    def description(self) -> str: ...


def likeness(task: Work) -> tuple[str, ...]:
    """Return what identifies equal tasks: title and checks, or the description if nothing checks it."""
    title = " ".join(task.title.lower().split())
    checks = tuple(one.command for one in task.acceptance)
    return (title, *(checks or (" ".join(task.description.split()),)))


def look_around(
    tasks: Sequence[Work],
    gates: Sequence[GateCommand],
    around: Surroundings,
    *,
    settled: Collection[str] = (),
    documents: Sequence[str] = (),
    may_change: Mapping[str, Sequence[str]] = MappingProxyType({}),
    installs: Sequence[str] = (),
) -> list[Finding]:
    """Return the findings about a plan in its context; `settled` are the keys of tasks that have ended.

    `documents` are those that must follow the work. `may_change` has the permissions by their origin: a
    task's key or the setting. `installs` are the commands that prepare a workspace.
    """
    to_do = [task for task in tasks if task.key not in settled]
    return [
        *_gates(tasks, gates, around),
        *_acceptance(tasks, around),
        *_failed_before(gates, around),
        *_there_already(to_do, around),
        *_done_before(to_do, around),
        *_documents(documents, around),
        *_permissions(may_change, around),
        *_installed(installs),
    ]


# --- checks that cannot run ------------------------------------------------------------------------------


def _gates(tasks: Sequence[Work], gates: Sequence[GateCommand], around: Surroundings) -> list[Finding]:
    """Every gate can run on the base commit: otherwise nothing of the plan could be verified."""
    missing = [(gate, what) for gate in gates if (what := _missing(gate.command, around))]
    found = [_cannot_run("gate", gate.name, what, around) for gate, what in missing]
    # A task without a scope may create anything.
    scope = [pattern for task in tasks for pattern in task.scope or ("**",)]
    for gate in gates if not around.brings else ():
        # Files that a shell sources are often optional, as in `test -f .env && . ./.env`.
        absent = [path for path in scripts_in([gate], sourced=False) if not _is_file(path, around.files)]
        made = [path for path in absent if any_covers(scope, path)]
        found += [
            _told("gates", f"the gate {gate.name} runs {path}, which is not there before a task makes it")
            for path in made
        ]
        found += [
            _cannot_run("gate", gate.name, f"{path} {_absence(path, around)}", around)
            for path in absent
            if path not in made
        ]
    return found


def _acceptance(tasks: Sequence[Work], around: Surroundings) -> list[Finding]:
    """Every acceptance command starts with an existing program; a task may have to create the files that it needs."""
    seen: dict[str, list[str]] = {}
    for task in tasks:
        for command in task.acceptance:
            for program in programs_of(command.command):
                if "/" not in program and not around.brings and not around.has_program(program):
                    seen.setdefault(program, []).append(task.key)
    return [
        _cannot_run("acceptance", f"of {some(keys)}", _no_program(program), around)
        for program, keys in seen.items()
    ]


def _missing(command: str, around: Surroundings) -> str:
    """Return what a command needs and does not find; empty if it may run."""
    if around.brings:
        return ""
    for program in programs_of(command):
        if "/" not in program and not around.has_program(program):
            return _no_program(program)
    return _no_target(command, around)


def _no_program(program: str) -> str:
    return f"{program} is not on PATH"


def programs_of(command: str) -> list[str]:
    """Return the programs that a command line starts, as far as its words show."""
    if not _MARKS.search(command):
        plain = [word for word in command.split() if not _VALUE.match(word)][:1]
        return [word for word in plain if word not in _BUILT_IN]
    found = []
    for words in parts(command):
        rest = [word for word in words if not _VALUE.match(word)]
        if not rest or rest[0] == "cd":
            # Programs after it run in another place.
            break
        if rest[0] not in _BUILT_IN:
            found.append(rest[0])
    return found


def _no_target(command: str, around: Surroundings) -> str:
    for words in parts(command):
        if words[0] != "make" or any(word.startswith("-") for word in words[1:]):
            continue
        if around.makefile is None:
            if lying := next(filter(around.lies_about, MAKEFILES), None):
                return f"{lying} {_UNCOMMITTED}"
            return f"there is no {MAKEFILES[-1]} for `{' '.join(words)}`"
        targets = {name for line in _TARGET.findall(around.makefile) for name in line.split()}
        wanted = [word for word in words[1:] if "=" not in word]
        absent = [word for word in wanted if word not in targets and not _is_file(word, around.files)]
        if absent and not _GENERATED.search(around.makefile):
            return f"the {MAKEFILES[-1]} has no target {absent[0]}"
    return ""


def _absence(path: str, around: Surroundings) -> str:
    return _UNCOMMITTED if around.lies_about(path) else "is not in the commit that the plan starts from"


def _cannot_run(kind: str, name: str, what: str, around: Surroundings) -> Finding:
    way = (
        "commit it first"
        if what.endswith(_UNCOMMITTED)
        else "fix the command, or install what it needs with the setting `dependencies` or `setup`"
    )
    return Finding(
        check="gates",
        weight=Weight.TOLD if around.elsewhere else Weight.POINTLESS,
        text=f"the {kind} {name} cannot run: {what}; {way}",
    )


def _failed_before(gates: Sequence[GateCommand], around: Surroundings) -> list[Finding]:
    """A gate that is known to fail on the base commit is reported.

    Its failures there are not counted against the work.
    """
    known = around.failed_before
    red = [f"{gate.name} ({known[gate.command]})" for gate in gates if gate.command in known]
    text = f"these gates failed on this exact tree before, and prove nothing until that is fixed: {some(red)}"
    return [_told(FAILED_BEFORE, text)] if red else []


# --- what is there already -------------------------------------------------------------------------------


def _there_already(tasks: Sequence[Work], around: Surroundings) -> list[Finding]:
    """No task creates a file that already exists, or is accepted because of one."""
    made, vain = [], []
    for task in tasks:
        created = _CREATES.match(task.title.strip())
        path = created["path"] if created else ""
        # A single word is a file name only if the scope says so.
        named = [one for one in ([path] if "/" in path or "." in path else []) if _is_file(one, around.files)]
        named += [
            one for one in task.scope if path and posixpath.basename(one) == path and one in around.files
        ]
        if named:
            made.append(f"{task.key}: {named[0]}")
        for command in task.acceptance:
            test = _IS_THERE.fullmatch(command.command.strip())
            if test and _is_file(test["path"], around.files):
                vain.append(f"{task.key}: {command.command.strip()}")
    found = []
    if made:
        found.append(_told("exists", f"these are to make a file that is there already: {some(made)}"))
    if vain:
        found.append(_told("exists", f"these pass before the work, because the file is there: {some(vain)}"))
    return found


def _done_before(tasks: Sequence[Work], around: Surroundings) -> list[Finding]:
    """No task asks for what another plan of this project has done."""
    done = [f"{task.key} ({where})" for task in tasks if (where := around.done.get(likeness(task)))]
    return [_told("done", f"these were done before, by title and checks: {some(done)}")] if done else []


def _documents(documents: Sequence[str], around: Surroundings) -> list[Finding]:
    """A document that must follow exists: the plan would wait forever for a misspelt one."""
    new = [one for one in documents if not any(any_covers([one], path) for path in around.files)]
    text = f"these documents that have to follow are not in the commit that the plan starts from: {some(new)}"
    return [_told("documents", text)] if new else []


def _permissions(may_change: Mapping[str, Sequence[str]], around: Surroundings) -> list[Finding]:
    """A permission names an existing file: new files need none, so any other name is a typing error."""
    vain = [
        f"{pattern} ({of})"
        for of, patterns in may_change.items()
        for pattern in patterns
        if not any(any_covers([pattern.partition("::")[0]], path) for path in around.files)
    ]
    text = f"`may_change` names what the commit that the plan starts from does not have: {some(vain)}"
    return [_told("may_change", text)] if vain else []


def _installed(commands: Sequence[str]) -> list[Finding]:
    """An installation into the active environment is private to each workspace: otherwise the next one replaces it."""
    shared = [one for one in commands if _PIP.search(one) and not _OWN_ENVIRONMENT.search(one)]
    text = (
        f"this installs each workspace into the Python environment that is active here: {some(shared)}; use one inside "
        "the workspace: python -m venv .venv && .venv/bin/python -m pip install ."
    )
    return [_told("setup", text)] if shared else []


def _is_file(path: str, files: Collection[str]) -> bool:
    return posixpath.normpath(path) in files


def _told(check: str, text: str) -> Finding:
    return Finding(check=check, weight=Weight.TOLD, text=text)
