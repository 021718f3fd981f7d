"""Find the files that affect a gate: by their names, and by following the scripts that it runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Final

from loopwright.core.gates.gates import Commands, each_once, setup_command
from loopwright.core.integrity.gate_files import Kind, Rules, is_code, is_named_like_a_library, kind_of
from loopwright.core.integrity.gate_reach import (
    COMMANDS,
    CONFIGURED,
    PYTEST_FILES,
    SOURCE,
    has_fixtures_for,
    loads,
    names_of_tests,
    word_for,
)
from loopwright.core.integrity.gate_scripts import (
    MAKEFILES,
    PACKAGE,
    STEPS,
    calls_make,
    first_looks,
    made_by,
    run_by,
    scripts_in,
)
from loopwright.core.rows.model import Plan, Project, Task
from loopwright.core.values.policy import GateCommand
from loopwright.ports import Candidate, Repository

_MOST: Final = 4 << 20
"""How many bytes of lines that name a changed file are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judges:
    """What a task is checked with, from rows or a receipt: enough to find the files that affect it."""

    subfolder: str
    """The project's folder in its repository."""
    gates: Commands
    acceptance: Commands
    setup: GateCommand | None
    patterns: tuple[str, ...]
    """The project's patterns for judging files."""
    may_change: tuple[str, ...] = ()
    """Judging files and tests that the user allows the work to change."""

    @property
    def commands(self) -> list[str]:
        """The commands that check it."""
        return [command.command for command in each_once(self.acceptance, self.gates)]

    @property
    def said(self) -> list[str]:
        """The commands that check it, with those that prepare the tree."""
        return [*self.commands, self.setup.command] if self.setup else self.commands


def judges_of(project: Project, plan: Plan, *tasks: Task) -> Judges:
    """Return what the work of these tasks is checked with."""
    return Judges(
        subfolder=project.subfolder,
        gates=plan.gates,
        acceptance=tuple(command for task in tasks for command in task.acceptance),
        setup=setup_command(plan.policy),
        patterns=plan.policy.gate_files,
        may_change=(*plan.policy.may_change, *(path for task in tasks for path in task.approved)),
    )


async def gate_rules(repository: Repository, judges: Judges, candidate: Candidate) -> Rules:
    """Return the rules for judging files, read from the tree before the work."""
    gates = (*judges.gates, *((judges.setup,) if judges.setup else ()))
    found = await _followed(repository, judges.subfolder, candidate, gates, judges.acceptance)
    rules = Rules(patterns=judges.patterns, scripts=found.scripts, targets=found.targets)
    rules = await _reached(repository, judges.subfolder, candidate, gates, rules)
    return await _known_to_python(repository, judges.subfolder, candidate, rules)


async def _known_to_python(
    repository: Repository, subfolder: str, candidate: Candidate, rules: Rules
) -> Rules:
    """Return the rules with the names of Python test files, and the packages that the work adds modules to."""
    top = f"{subfolder}/" if subfolder else ""
    changed = [
        (inside(subfolder, one.path), one) for one in candidate.changes if one.path.endswith((".py", ".so"))
    ]
    kinds = {path: kind_of(path, rules, existed=one.before is not None) for path, one in changed}
    new = (path for path, one in changed if one.before is None and kinds[path] is Kind.STEERING)
    folders = sorted({str(PurePosixPath(path).parent) for path in new} - {"."})
    asked = [f"{folder}/__init__.py" for folder in folders]
    asked += PYTEST_FILES if None in kinds.values() else ()
    texts = await repository.files_at(candidate.parent, [f"{top}{path}" for path in asked]) if asked else {}
    here = {path.removeprefix(top): text.decode("utf-8", "replace") for path, text in texts.items()}
    return replace(
        rules,
        packages=frozenset(folder for folder in folders if f"{folder}/__init__.py" in here),
        test_names=tuple(name for path in PYTEST_FILES for name in names_of_tests(here.get(path, ""))),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Followed:
    scripts: frozenset[str]
    targets: frozenset[str] = frozenset()


async def _followed(
    repository: Repository,
    subfolder: str,
    candidate: Candidate,
    gates: Sequence[GateCommand],
    acceptance: Sequence[GateCommand],
) -> _Followed:
    """Return the paths of everything that commands run, relative to the project's folder, and the targets of make.

    Nothing is read if the work changed no existing file: what a gate runs is among those. A new file matters
    only if it takes the place of something.
    """
    found = set(scripts_in(gates, acceptance))
    commands, theirs = ([each.command for each in some] for some in (gates, acceptance))
    new = [inside(subfolder, change.path) for change in candidate.changes if change.before is None]
    takes_a_place = new and (calls_make((*commands, *theirs)) or any(map(is_named_like_a_library, new)))
    if len(new) == len(candidate.changes) and not takes_a_place:
        return _Followed(scripts=frozenset(found))
    top = f"{subfolder}/" if subfolder else ""
    looks = set(first_looks(gates, acceptance))
    known: set[str] = set()
    targets: set[str] = set()
    for _ in range(STEPS):
        looks -= known
        if not looks:
            break
        known |= looks
        asked = sorted(looks)
        texts = await repository.files_at(candidate.parent, [f"{top}{path}" for path in asked])
        here = {
            path: texts[f"{top}{path}"].decode("utf-8", "replace")
            for path in asked
            if f"{top}{path}" in texts
        }
        # Some contain other things too.
        found |= {path for path in here if PurePosixPath(path).name not in (*MAKEFILES, PACKAGE)}
        targets |= {each for path, text in here.items() for each in made_by(path, text, (*commands, *theirs))}
        looks = {each for path, text in here.items() for each in run_by(path, text, commands, theirs)}
    folders = {each for each in targets if any(path.startswith(f"{each}/") for path in new)}
    if folders:
        # An existing folder stopped make before the work too.
        listed = [path.removeprefix(top) for path in await repository.listed(candidate.parent)]
        targets -= {each for each in folders if any(path.startswith(f"{each}/") for path in listed)}
    return _Followed(scripts=frozenset(found), targets=frozenset(targets))


async def _reached(
    repository: Repository,
    subfolder: str,
    candidate: Candidate,
    gates: Sequence[GateCommand],
    rules: Rules,
) -> Rules:
    """Return the rules with the changed modules that the test runner's configuration loads before any test."""
    existed = [inside(subfolder, change.path) for change in candidate.changes if change.before is not None]
    plain = [path for path in existed if is_code(path) and kind_of(path, rules, existed=True) is None]
    if not plain:
        return rules
    words = sorted({word_for(path) for path in plain})
    lines = await repository.mentions(candidate.parent, words, limit=_MOST)
    naming = {inside(subfolder, line.path) for line in lines or ()}
    configuration = sorted(path for path in naming if kind_of(path, rules, existed=True) in CONFIGURED)
    top = f"{subfolder}/" if subfolder else ""
    texts = await repository.files_at(candidate.parent, [f"{top}{path}" for path in (*configuration, *plain)])
    every = {path.removeprefix(top): text.decode("utf-8", "replace") for path, text in texts.items()}
    own = {path: every.pop(path, "") for path in plain}
    read = {**every, COMMANDS: "\n".join(gate.command for gate in gates)}
    found = {
        path
        for path, its in own.items()
        if any(loads(text, by, path) or has_fixtures_for(text, by, path, its) for by, text in read.items())
    }
    return replace(rules, scripts=rules.scripts | {path for path in found if not path.startswith(SOURCE)})


def inside(subfolder: str, path: str) -> str:
    """Return a path relative to the project's folder; a path outside it stays as it is."""
    folder = PurePosixPath(subfolder)
    pure = PurePosixPath(path)
    return str(pure.relative_to(folder)) if subfolder and pure.is_relative_to(folder) else path
