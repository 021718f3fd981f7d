"""Find the judging files that an attempt changed, and build its candidate with the old versions of these."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from loopwright.core.gates.witnesses import files_named, tests_named
from loopwright.core.integrity.gate_files import (
    GateFiles,
    Kind,
    Rules,
    is_restored_if_permitted,
    kind_of,
    takes_a_place,
)
from loopwright.core.integrity.mixed_files import only_redirects, pinned_text, steers_differently
from loopwright.core.values.globs import any_covers
from loopwright.engine.integrity.gate_scripts import Judges, gate_rules, inside
from loopwright.engine.integrity.suspicion import places_in
from loopwright.ports import Candidate, Entry, FileChange, Repository

_MOST: Final = 200
"""At most this many files are named in the record."""
_NAME: Final = re.compile(r"\w+")
_LINK: Final = "120000"
_SUBMODULE: Final = "160000"


@dataclass(frozen=True, slots=True, kw_only=True)
class OldChecks:
    """Which judging files changed, and the tree to check besides the candidate itself."""

    facts: GateFiles
    restored: Candidate | None = None
    """The candidate with every judging file as it was before; None if it is the candidate itself."""
    rules: Rules = field(default_factory=Rules)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Touched:
    change: FileChange
    path: str
    """Relative to the project's folder."""
    kind: Kind
    before: str | None = None
    after: str | None = None


async def with_old_checks(repository: Repository, judges: Judges, candidate: Candidate) -> OldChecks:
    """Return the candidate with its judging files restored: changed and deleted ones as before, added ones absent.

    The candidate's parent has the old versions. Test files that `judges.may_change` names are restored too:
    what they contradict is permitted, and recorded. Other files that it names keep the work's version.
    """
    rules = await gate_rules(repository, judges, candidate)
    touched = await _touched(repository, judges, rules, candidate)
    exempt = [
        one
        for one in touched
        if any_covers(judges.may_change, one.path) and not is_restored_if_permitted(one.path)
    ]
    build = [one for one in touched if one.kind is Kind.BUILD and one not in exempt]
    pinned = [one for one in touched if one not in exempt and one not in build]
    facts = GateFiles(
        pinned=_named(pinned),
        pinned_without=await _needing_added(repository, judges, candidate, pinned, rules),
        exempt=_named(exempt),
        build_files=_named(build),
        added_tests=sum(one.kind is Kind.TEST and one.change.before is None for one in touched),
        suspicious=await places_in(repository, candidate, judges.subfolder),
    )
    if not pinned:
        return OldChecks(facts=facts, rules=rules)
    restored = await _restored(repository, candidate, pinned)
    return OldChecks(facts=replace(facts, pinned_tree=restored.tree), restored=restored, rules=rules)


async def _needing_added(
    repository: Repository, judges: Judges, candidate: Candidate, pinned: Sequence[_Touched], rules: Rules
) -> tuple[str, ...]:
    """Return the acceptance commands that name a file, or a test in a changed file, which only the work has.

    A gate of the project needs nothing that the work adds. A command that named something else before does
    not need the new file that takes its place.
    """
    new = [one.path for one in pinned if one.change.before is None]
    added = frozenset(path for path in new if not takes_a_place(path, rules))
    gates = {gate.command for gate in judges.gates}
    ids = {command: tests_named(command) for command in judges.commands if command not in gates}
    changed = {one.path for one in pinned}.difference(new)
    asked = sorted({file for named in ids.values() for file, _ in named if file in changed})
    top = f"{judges.subfolder}/" if judges.subfolder else ""
    found = await repository.files_at(candidate.parent, [f"{top}{path}" for path in asked]) if asked else {}
    old = {
        path.removeprefix(top): frozenset(_NAME.findall(text.decode("utf-8", "replace")))
        for path, text in found.items()
    }
    return tuple(
        command
        for command, named in ids.items()
        if added.intersection(_files_in(command))
        or any(
            file in old and not old[file].issuperset(_NAME.findall(" ".join(names))) for file, names in named
        )
    )


def _files_in(command: str) -> list[str]:
    """Return the files that a command names; `tests` is not `tests.py`, except as a module of unittest."""
    return [
        path
        for path in files_named(command)
        if path in command or "/" in path or "unittest" in command.split()
    ]


async def _restored(repository: Repository, candidate: Candidate, pinned: Sequence[_Touched]) -> Candidate:
    restore: list[FileChange] = []
    texts: dict[str, str] = {}
    for one in pinned:
        text = pinned_text(one.path, one.before, one.after) if one.kind is Kind.MIXED else None
        if text is None or text == one.before:
            restore.append(one.change)
        else:
            texts[one.change.path] = text
    return await repository.laid_over(candidate, restore=restore, texts=texts)


async def _touched(
    repository: Repository, judges: Judges, rules: Rules, candidate: Candidate
) -> list[_Touched]:
    """Return the changes of judging files; a mixed file counts if its judging keys changed."""
    found: list[_Touched] = []
    for change in candidate.changes:
        path = inside(judges.subfolder, change.path)
        kind = kind_of(path, rules, existed=change.before is not None)
        if kind is not None:
            found.append(_Touched(change=change, path=path, kind=kind))
    ids = [entry.id for one in found if one.kind is Kind.MIXED for entry in _files(one.change)]
    texts = dict(zip(ids, await repository.contents(ids), strict=True)) if ids else {}
    counted = []
    for one in found:
        before, after = (
            texts.get(each.id) if each is not None else None for each in (one.change.before, one.change.after)
        )
        read = replace(one, before=before, after=after)
        if one.kind is not Kind.MIXED:
            counted.append(one)
        elif steers_differently(one.path, before, after, judges.said):
            # Where packages are installed from cannot be restored in part.
            only = only_redirects(one.path, before, after, judges.said)
            counted.append(replace(read, kind=Kind.BUILD) if only else read)
    return counted


def _files(change: FileChange) -> list[Entry]:
    entries = (change.before, change.after)
    return [entry for entry in entries if entry is not None and entry.mode not in (_LINK, _SUBMODULE)]


def _named(touched: Sequence[_Touched]) -> tuple[str, ...]:
    return tuple(one.path.encode("utf-8", "replace").decode() for one in touched[:_MOST])
