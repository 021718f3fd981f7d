"""What an attempt did to the files that steer its gate, and the tree in which they are as they were before."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Final

from loopwright.core.asserts import weakened
from loopwright.core.gate_files import GateFiles, Kind, Rules, declared, kind_of
from loopwright.core.gate_scripts import PACKAGE, new_scripts
from loopwright.core.gates import each_once
from loopwright.core.globs import any_covers
from loopwright.core.mixed_files import only_redirects, pinned_text, steers_differently
from loopwright.core.moved_ids import told
from loopwright.core.named_tests import only_new_tests
from loopwright.core.new_tests import asks_for_nothing, how_it_acts, only_defines
from loopwright.core.search_paths import own_folders
from loopwright.engine.answers import answers_in
from loopwright.engine.gate_scripts import Judges, gate_rules, inside
from loopwright.engine.moved_tests import moved_in
from loopwright.ports import Candidate, Entry, FileChange, Repository

_MOST: Final = 200
"""So many are named on the record; no more steer any gate that a person still oversees."""
_READ_WHEN_NEW: Final = (".go", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx")
_NEW_ALONE: Final = (".pyc", ".pyo", ".gitattributes")
"""What is new and only changes what others are taken for: the tree without it is judged by itself."""
_CONFTEST: Final = "conftest.py"
_EMPTY: Final = frozenset({"__init__.py", ".gitkeep", ".gitignore"})
"""Files that are there for their folder: there is no test in them."""
_LOADS_CONFTEST: Final = re.compile(r"\b(?:import|from)\b[^#]*\bconftest\b")
_READ_LINES: Final = 1 << 20
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
    rules: Rules = field(default_factory=Rules)
    """What counted as a file of the gate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Touched:
    change: FileChange
    path: str
    """Relative to the project's folder, where it lies in there."""
    kind: Kind
    before: str | None = None
    after: str | None = None


async def pin(
    repository: Repository, judges: Judges, candidate: Candidate, *, seen: Iterable[str] = ()
) -> Pinning:
    """Find what changed among the gate's files; the candidate's parent says how they were.

    The parent is the attempt's base with everything that siblings landed meanwhile, so their changes count. In the
    files of `seen` tests were seen to run there.
    """
    commands = judges.commands
    rules = await gate_rules(repository, judges, candidate, seen=seen)
    concerned = await _touched(repository, judges.subfolder, rules, candidate)
    moved = await moved_in(repository, judges.subfolder, rules, candidate)
    same = {*moved, *moved.values()}
    touched = [
        _as_it_counts(one, judges.said)
        for one in concerned
        if _steers(one, judges.said) and one.path not in same
    ]
    new = [one for one in touched if one.kind is Kind.TEST and one.change.before is None]
    fixtures = [one for one in touched if one.change.after is not None and _is_conftest(one)]
    before = await _standing(repository, judges.subfolder, candidate) if new or fixtures else ()
    folders = own_folders(before, [inside(judges.subfolder, one.path) for one in _brought(candidate)])
    beside = _takes_a_place(before, new)
    acting = {one.path: how_it_acts(one.path, one.after or "", folders) for one in new}
    lone = [one for one in fixtures if _is_lone(one, rules, before, folders)]
    if lone and await _load_conftest(repository, candidate):
        lone = []
    added = [one for one in new if not (one in beside or acting[one.path])] + lone
    changed = [one for one in touched if one not in added]
    exempt = [one for one in changed if declared(one.path, judges.leave)]
    undeclared = [one for one in changed if one not in exempt]
    pinned = [one for one in undeclared if one.kind is not Kind.BUILD]
    lost = [f"{one.path}: {what}" for one in pinned for what in _weakened(one)]
    away = [one for one in pinned if one in fixtures]
    without = [one for one in commands if _needs(one, away, new, before)]
    facts = GateFiles(
        pinned=_named(pinned),
        pinned_without=tuple(without),
        acting=tuple(
            acting[one.path] or f"{one.path} is called like a module of the project"
            for one in undeclared[:_MOST]
            if _is_new_test(one) and _is_called(one, commands)
        ),
        exempt=_named(exempt),
        uncompared=_named([one for one in undeclared if not _is_compared(one)]),
        weakened=tuple(
            [*lost, *(f"{one.path}: {what}" for one in exempt for what in _weakened(one))][:_MOST]
        ),
        moved=tuple(told(old, new) for old, new in moved.items()),
        added_tests=len(new),
        answers=(
            *_judges_itself(concerned, commands),
            *await answers_in(
                repository,
                candidate,
                subfolder=judges.subfolder,
                rules=rules,
                commands=each_once(judges.acceptance, judges.gates),
            ),
        ),
    )
    if lost or not pinned:
        return Pinning(facts=facts, refused=tuple(lost[:_MOST]), rules=rules)
    # New tests may need the new configuration beside them; those that the commands name are wanted all the same.
    left = [one for one in commands if one not in without]
    kept = [one for one in (*added, *pinned) if _is_new_test(one) and _is_called(one, left)]
    kept += [one for one in lone if any(_is_below(each.path, one) for each in kept)]
    dropped = [one for one in (*added, *pinned) if one not in kept]
    if not dropped:
        return Pinning(facts=facts, rules=rules)
    laid = await _laid_over(repository, candidate, dropped)
    return Pinning(facts=facts, pinned=laid, rules=rules)


def _judges_itself(concerned: Sequence[_Touched], commands: Sequence[str]) -> list[str]:
    """Name what judges the task, was made by it, and asks for nothing that anybody but its author wrote."""
    found = []
    for one in concerned:
        if _is_new_test(one) and _is_called(one, commands) and asks_for_nothing(one.path, one.after or ""):
            found.append(f"{one.path}, which judges it, is its own and asks for nothing")
        if one.kind is Kind.MIXED and PurePosixPath(one.path).name == PACKAGE:
            found += [
                f"{one.path}: the script {name!r}, which judges it, is its own"
                for name in new_scripts(one.before, one.after, commands)
            ]
    return found


def _is_new_test(one: _Touched) -> bool:
    return one.kind is Kind.TEST and one.change.before is None


def _is_called(one: _Touched, commands: Sequence[str]) -> bool:
    return any(one.path in command for command in commands)


def _is_conftest(one: _Touched) -> bool:
    return PurePosixPath(one.path).name == _CONFTEST


def _is_below(path: str, one: _Touched) -> bool:
    """Say whether a file lies in the folder of another, or below it."""
    return PurePosixPath(path).is_relative_to(PurePosixPath(one.path).parent)


def _is_lone(one: _Touched, rules: Rules, before: Collection[str], folders: Collection[str]) -> bool:
    """Say whether a `conftest.py` is new, only defines something, and concerns no file that was there before."""
    if one.change.before is not None or one.after is None or one.path in rules.scripts:
        return False
    if any_covers((each.removeprefix("!") for each in rules.patterns), one.path):
        return False  # the project says what it is
    old = (path for path in before if PurePosixPath(path).name not in _EMPTY)
    return not any(_is_below(path, one) for path in old) and only_defines(one.path, one.after, folders)


async def _load_conftest(repository: Repository, candidate: Candidate) -> bool:
    """Say whether something imports a `conftest` by this name: then another one may be taken instead."""
    lines = await repository.mentions(candidate.parent, [PurePosixPath(_CONFTEST).stem], limit=_READ_LINES)
    return lines is None or any(_LOADS_CONFTEST.search(line.text) for line in lines)


def _needs(command: str, away: Sequence[_Touched], new: Sequence[_Touched], before: Collection[str]) -> bool:
    """Say whether a command names new tests alone, and each may need a `conftest.py` that is not there as it is."""
    if not away:
        return False
    named = only_new_tests(command, [one.path for one in new], before)
    return bool(named) and all(any(_is_below(path, one) for one in away) for path in named)


def _brought(candidate: Candidate) -> list[FileChange]:
    return [one for one in candidate.changes if one.before is None]


async def _standing(repository: Repository, subfolder: str, candidate: Candidate) -> frozenset[str]:
    """Return the files of the project that were there before the work."""
    top = f"{subfolder}/" if subfolder else ""
    listed = await repository.listed(candidate.parent)
    return frozenset(path.removeprefix(top) for path in listed if path.startswith(top))


def _takes_a_place(before: Collection[str], new: Sequence[_Touched]) -> list[_Touched]:
    """Return the new modules among the tests that are called like one of the project: tests may load them instead."""
    modules = [
        one
        for one in new
        if one.path.endswith(".py") and not PurePosixPath(one.path).name.startswith(("test", "__"))
    ]
    if not modules:
        return []
    names = {part for path in before if path.endswith(".py") for part in _importable(path)}
    return [one for one in modules if PurePosixPath(one.path).stem in names]


def _importable(path: str) -> Iterator[str]:
    """Yield the name by which a module at the top of the project, or of its source folder, is imported."""
    first, *rest = PurePosixPath(path.removeprefix("src/").removeprefix("lib/")).parts
    if not rest or rest[-1] == "__init__.py":
        yield first.removesuffix(".py")


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
    repository: Repository, subfolder: str, rules: Rules, candidate: Candidate
) -> list[_Touched]:
    """Return the changes that concern the gate, with the texts of those that are compared by reading."""
    found: list[_Touched] = []
    for change in candidate.changes:
        path = inside(subfolder, change.path)
        kind = kind_of(path, rules, existed=change.before is not None)
        if kind is not None:
            found.append(_Touched(change=change, path=path, kind=kind))
    ids = [entry.id for one in found if _is_read(one) for entry in _files(one.change)]
    texts = dict(zip(ids, await repository.contents(ids), strict=True)) if ids else {}
    return [
        _Touched(
            change=one.change,
            path=one.path,
            kind=one.kind,
            before=texts.get(one.change.before.id) if one.change.before else None,
            after=texts.get(one.change.after.id) if one.change.after else None,
        )
        for one in found
    ]


def _steers(one: _Touched, commands: Sequence[str]) -> bool:
    return one.kind is not Kind.MIXED or steers_differently(one.path, one.before, one.after, commands)


def _as_it_counts(one: _Touched, commands: Sequence[str]) -> _Touched:
    """Return a change of from where packages are installed as one that is named only: there is no part to put back."""
    if one.kind is Kind.MIXED and only_redirects(one.path, one.before, one.after, commands):
        return replace(one, kind=Kind.BUILD)
    return one


def _is_read(one: _Touched) -> bool:
    read = one.path.endswith(".py") or (one.change.before is None and one.path.endswith(_READ_WHEN_NEW))
    fixtures = one.change.before is None and _is_conftest(one)
    return one.kind is Kind.MIXED or fixtures or (one.kind is Kind.TEST and read)


def _files(change: FileChange) -> list[Entry]:
    entries = (change.before, change.after)
    return [entry for entry in entries if entry is not None and entry.mode not in (_LINK, _SUBMODULE)]


def _weakened(one: _Touched) -> list[str]:
    """Say what a changed Python test no longer asks for; of anything else nothing can be said by reading."""
    if one.kind is not Kind.TEST or one.before is None or not one.path.endswith(".py"):
        return []
    return weakened(one.before, one.after)


def _is_compared(one: _Touched) -> bool:
    """Say whether nothing is left to ask: it was read on both sides, or is new and the run without it says all.

    Of a new test that acts on others, and cannot be left out, that is said.
    """
    if _is_new_test(one):
        return True
    alone = one.change.before is None and one.path.endswith(_NEW_ALONE)
    return alone or (one.kind is Kind.TEST and one.before is not None and one.path.endswith(".py"))


def _named(touched: Sequence[_Touched]) -> tuple[str, ...]:
    return tuple(one.path.encode("utf-8", "replace").decode() for one in touched[:_MOST])
