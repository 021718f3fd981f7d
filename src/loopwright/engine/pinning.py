"""What an attempt did to the files that steer its gate, and the tree in which they are as they were before."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from loopwright.core.asserts import weakened
from loopwright.core.gate_files import GateFiles, Kind, Rules, declared, kind_of, scripts_in
from loopwright.core.gates import setup_command, task_commands
from loopwright.core.mixed_files import pinned_text, steers_differently
from loopwright.core.model import Plan, Project, Task
from loopwright.engine.answers import answers_in
from loopwright.ports import Candidate, Entry, FileChange, Repository

_MOST: Final = 200
"""So many are named on the record; no more steer any gate that a person still oversees."""
_LINK: Final = "120000"
_SUBMODULE: Final = "160000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinning:
    """What was found, and what has to be judged besides the candidate itself."""

    facts: GateFiles
    pinned: Candidate | None = None
    """The candidate with the gate's files as they were before; None when they are, or may be as they are."""
    refused: tuple[str, ...] = ()
    """Why it is not accepted whatever a gate would say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Touched:
    change: FileChange
    path: str
    """Relative to the project's folder, where it lies in there."""
    kind: Kind
    before: str | None = None
    after: str | None = None


async def pin(
    repository: Repository, project: Project, plan: Plan, task: Task, candidate: Candidate
) -> Pinning:
    """Find what changed among the gate's files; the candidate's parent says how they were.

    The parent is the attempt's base with everything that siblings landed meanwhile, so their changes count.
    """
    commands = [command.command for command in task_commands(plan, task)]
    setup = setup_command(plan.policy)
    gates = (*plan.gates, *((setup,) if setup else ()))
    rules = Rules(patterns=plan.policy.gate_files, scripts=scripts_in(gates, task.acceptance))
    said = [*commands, setup.command] if setup else commands
    touched = await _touched(repository, project, rules, candidate, said)
    added = [one for one in touched if one.kind is Kind.TEST and one.change.before is None]
    changed = [one for one in touched if one not in added]
    exempt = [one for one in changed if declared(one.path, (*task.scope, *task.approved))]
    undeclared = [one for one in changed if one not in exempt]
    pinned = [one for one in undeclared if one.kind is not Kind.BUILD]
    lost = [f"{one.path}: {what}" for one in pinned for what in _weakened(one)]
    facts = GateFiles(
        pinned=_named(pinned),
        exempt=_named(exempt),
        uncompared=_named([one for one in undeclared if not _is_compared(one)]),
        weakened=tuple(
            [*lost, *(f"{one.path}: {what}" for one in exempt for what in _weakened(one))][:_MOST]
        ),
        added_tests=len(added),
        answers=await answers_in(
            repository,
            candidate,
            subfolder=project.subfolder,
            rules=rules,
            commands=task_commands(plan, task),
        ),
    )
    if lost or not pinned:
        return Pinning(facts=facts, refused=tuple(lost[:_MOST]))
    # New tests may need the new configuration beside them; those that the commands name are wanted all the same.
    dropped = [one for one in added if not any(one.path in command for command in commands)]
    return Pinning(facts=facts, pinned=await _laid_over(repository, candidate, [*pinned, *dropped]))


async def _laid_over(repository: Repository, candidate: Candidate, taken: Sequence[_Touched]) -> Candidate:
    restore: list[FileChange] = []
    texts: dict[str, str] = {}
    for one in taken:
        text = pinned_text(one.path, one.before, one.after) if one.kind is Kind.MIXED else None
        if text is None or text == one.before:
            restore.append(one.change)
        else:
            texts[one.change.path] = text
    return await repository.laid_over(candidate, restore=restore, texts=texts)


async def _touched(
    repository: Repository, project: Project, rules: Rules, candidate: Candidate, commands: Sequence[str]
) -> list[_Touched]:
    """Return the changes that concern the gate, with the texts of those that are compared by reading."""
    found: list[_Touched] = []
    for change in candidate.changes:
        path = inside(project.subfolder, change.path)
        kind = kind_of(path, rules, existed=change.before is not None)
        if kind is not None:
            found.append(_Touched(change=change, path=path, kind=kind))
    ids = [entry.id for one in found if _is_read(one) for entry in _files(one.change)]
    texts = dict(zip(ids, await repository.contents(ids), strict=True)) if ids else {}
    read = [
        _Touched(
            change=one.change,
            path=one.path,
            kind=one.kind,
            before=texts.get(one.change.before.id) if one.change.before else None,
            after=texts.get(one.change.after.id) if one.change.after else None,
        )
        for one in found
    ]
    return [
        one
        for one in read
        if one.kind is not Kind.MIXED or steers_differently(one.path, one.before, one.after, commands)
    ]


def _is_read(one: _Touched) -> bool:
    return one.kind is Kind.MIXED or (one.kind is Kind.TEST and one.path.endswith(".py"))


def _files(change: FileChange) -> list[Entry]:
    entries = (change.before, change.after)
    return [entry for entry in entries if entry is not None and entry.mode not in (_LINK, _SUBMODULE)]


def _weakened(one: _Touched) -> list[str]:
    """Say what a changed Python test no longer asks for; of anything else nothing can be said by reading."""
    if one.kind is not Kind.TEST or one.before is None or not one.path.endswith(".py"):
        return []
    return weakened(one.before, one.after)


def _is_compared(one: _Touched) -> bool:
    return one.kind is Kind.TEST and one.before is not None and one.path.endswith(".py")


def _named(touched: Sequence[_Touched]) -> tuple[str, ...]:
    return tuple(one.path.encode("utf-8", "replace").decode() for one in touched[:_MOST])


def inside(subfolder: str, path: str) -> str:
    """Return a path as seen from the project's folder; one that lies elsewhere stays as it is."""
    folder = PurePosixPath(subfolder)
    pure = PurePosixPath(path)
    return str(pure.relative_to(folder)) if subfolder and pure.is_relative_to(folder) else path
