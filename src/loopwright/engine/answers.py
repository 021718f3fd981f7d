"""Whether work may only look right to the tests that judge it: both are read, the tests as they were before."""

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final, TypeVar

from loopwright.core.doctests import lost_examples
from loopwright.core.gate_files import Kind, Rules, kind_of
from loopwright.core.known_answers import LARGEST, MOST, Changed, known_answers, written_in
from loopwright.core.policy import GateCommand
from loopwright.core.seeming import seeming
from loopwright.core.silencing import silenced, stands_for, unseen_by
from loopwright.ports import Candidate, Entry, FileChange, Repository

T = TypeVar("T")

_SOURCE: Final = frozenset(
    {".py", ".pyi", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".vue", ".svelte", ".go", ".rs", ".rb"}
    | {".java", ".kt", ".scala", ".cs", ".fs", ".php", ".swift", ".c", ".h", ".cc", ".cpp", ".hpp", ".dart"}
    | {".ex", ".exs", ".lua", ".pl", ".sh", ".sql", ".json", ".yaml", ".yml", ".toml", ".csv"}
)
"""What a program is made of, with what it reads; what only people read is left out."""
_DATA: Final = frozenset({".sql", ".json", ".yaml", ".yml", ".toml", ".csv"})
"""What of it is only read by the rest: it may hold an answer, and asks nothing."""
_FILE: Final = "100"
"""How the mode of a plain file begins."""
_BYTES: Final = 16 * LARGEST
_READ: Final = 4 * LARGEST
"""So many characters of a change are read for what it knows of its tests, the shortest files first."""
_SHORT: Final = 20_000


async def answers_in(
    repository: Repository,
    candidate: Candidate,
    *,
    subfolder: str,
    rules: Rules,
    commands: Sequence[GateCommand],
) -> tuple[str, ...]:
    """Name the places at which work may only look right to its tests: it holds their answers, or knows of them."""
    top = f"{subfolder}/" if subfolder else ""

    def is_source(path: str) -> bool:
        mine = path.removeprefix(top)
        return PurePosixPath(path).suffix in _SOURCE and kind_of(mine, rules, existed=True) is None

    new = [one for one in candidate.changes if _is_file(one.after)]
    changed = [one for one in new if is_source(one.path)]
    if not changed:
        return ()
    # A new file among the tests is none of them if the source itself loads it.
    beside = [one for one in new if one.before is None and one not in changed and _is_code(one.path)]
    changed += await _lent(repository, changed, beside)
    entries = [entry for one in changed for entry in (one.after, one.before) if entry and _is_file(entry)]
    texts = await repository.texts(list(dict.fromkeys(one.id for one in entries)), limit=_BYTES)
    files = [
        Changed(
            path=one.path.removeprefix(top),
            before=texts.get(one.before.id, "") if one.before else "",
            after=texts[one.after.id],
        )
        for one in changed
        if one.after and one.after.id in texts and (one.before is None or one.before.id in texts)
    ]
    unread = {one.path.removeprefix(top) for one in changed if _is_code(one.path)} - {
        one.path for one in files
    }
    said = [one.command for one in commands]
    return (
        *(f"{path} is too long to be read" for path in sorted(unread)),
        *await _stubs(repository, candidate, top, said),
        *await _beside(files, lambda: list(_seemings(files, said))),
        *await _answers(repository, candidate, top, rules, commands, files),
    )[:MOST]


async def _stubs(repository: Repository, candidate: Candidate, top: str, said: Sequence[str]) -> list[str]:
    """Name the new files that a type checker of the commands reads in the place of the source."""
    new = [one.path.removeprefix(top) for one in candidate.changes if one.before is None and one.after]
    stubs = [path for path in new if stands_for(path)]
    if not stubs:
        return []
    listed = await repository.listed(candidate.sha)
    files = {path.removeprefix(top) for path in listed if path.startswith(top)}
    found = ((path, unseen_by(path, files, said)) for path in stubs)
    return [f"{path}:1 {words}" for path, words in found if words is not None]


async def _beside(files: Sequence[Changed], read: Callable[[], T]) -> T:
    """Read what an agent wrote: what is long beside the event loop, which others need meanwhile."""
    if sum(len(one.before) + len(one.after) for one in files) < _SHORT:
        return read()
    return await asyncio.to_thread(read)


def _seemings(files: Sequence[Changed], commands: Sequence[str]) -> Iterator[str]:
    left = _READ
    for one in sorted(files, key=lambda file: len(file.after)):
        if len(one.after) <= min(left, LARGEST):
            left -= len(one.after)
            found = (
                *seeming(one.path, one.before, one.after),
                *silenced(one.path, one.before, one.after, commands),
                *lost_examples(one.path, one.before, one.after, commands),
            )
            yield from (f"{one.path}:{n} {words}" for n, words in found)
        elif _is_code(one.path):
            yield f"{one.path} is too long to be read"


async def _lent(
    repository: Repository, source: Sequence[FileChange], beside: Sequence[FileChange]
) -> list[FileChange]:
    """Return the files among the tests that the source loads, or that such a one loads."""
    if not beside:
        return []
    ids = [one.after.id for one in (*source, *beside) if one.after]
    texts = await repository.texts(list(dict.fromkeys(ids)), limit=_BYTES)
    found: list[FileChange] = []
    looked = list(source)
    while looked:
        said = "\n".join(texts.get(one.after.id, "") for one in looked if one.after)
        looked = [one for one in beside if one not in found and _is_loaded(one.path, said)]
        found += looked
    return found


def _is_loaded(path: str, text: str) -> bool:
    """Say whether a text may load a file, by its path or as a module."""
    pure = PurePosixPath(path)
    stem = str(pure.with_suffix("")).removesuffix("/__init__").removeprefix("src/")
    folder, _, name = stem.rpartition("/")
    if not folder:
        return False
    imported = rf"\b(?:from|import)\s+[.\w]*\b{re.escape(folder.replace('/', '.'))}\b"
    by_name = re.search(imported, text) is not None and re.search(rf"\b{re.escape(name)}\b", text) is not None
    return by_name or stem in text or stem.replace("/", ".") in text


def _is_code(path: str) -> bool:
    return PurePosixPath(path).suffix in _SOURCE - _DATA


async def _answers(
    repository: Repository,
    candidate: Candidate,
    top: str,
    rules: Rules,
    commands: Sequence[GateCommand],
    files: Sequence[Changed],
) -> tuple[str, ...]:
    written = await _beside(files, lambda: written_in(files))
    if not written:
        return ()
    tests = await _tests(repository, candidate, top, rules, commands)
    if sum(len(one.after) for one in files) + sum(len(text) for _, text in tests) < _SHORT:
        return known_answers(written, tests, commands)
    return await asyncio.to_thread(known_answers, written, tests, commands)


async def _tests(
    repository: Repository, candidate: Candidate, top: str, rules: Rules, commands: Sequence[GateCommand]
) -> list[tuple[str, str]]:
    """Return the tests as they were before the work, first those that the commands name."""
    known = {
        path.removeprefix(top): entry
        for path, entry in (await repository.listed(candidate.parent)).items()
        if path.startswith(top) and _is_file(entry)
    }
    tests = [path for path in known if _is_test(path, rules)]
    named = {path for path in tests if any(path in command.command for command in commands)}
    tests.sort(key=lambda path: (path not in named, path))
    if not tests:
        return []
    texts = await repository.texts([known[path].id for path in tests], limit=_BYTES)
    return [(path, texts[known[path].id]) for path in tests if known[path].id in texts]


def _is_test(path: str, rules: Rules) -> bool:
    # Most files of a large project are told apart by this alone.
    likely = "test" in path.lower() or "spec" in path.lower() or path in rules.scripts
    return likely and kind_of(path, rules, existed=True) in (Kind.TEST, Kind.STEERING)


def _is_file(entry: Entry | None) -> bool:
    return entry is not None and entry.mode.startswith(_FILE)
