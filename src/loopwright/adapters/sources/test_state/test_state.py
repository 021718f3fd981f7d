"""Tests to be made pass, in a test-state.json with its config.json: reading them, and writing back how they stand."""

import os
import posixpath
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path, PurePosixPath
from typing import Any, Final

from loopwright.adapters.sources.lists.status_words import mark_of, waiting_reason
from loopwright.adapters.sources.lists.work_items import text_at, texts
from loopwright.adapters.sources.test_state.test_state_schema import (
    AS_ASKED,
    CONFIG,
    COUNTS,
    NOT_AUTOMATABLE,
    RENAMED,
    RETIRED,
    TEST_STATE,
    UNUSED,
    USUAL_PRIORITY,
    LoopConfig,
    filled,
    loop_config,
)
from loopwright.adapters.sources.test_state.test_state_writing import health, next_health, tell_tests
from loopwright.adapters.sources.text.criteria import acceptance
from loopwright.adapters.sources.text.json_edits import JsonEdits, opened
from loopwright.adapters.sources.text.located import Located, inner, line_of, plain, tables, words
from loopwright.adapters.sources.text.meaning import fingerprint
from loopwright.adapters.sources.text.problems import Problems, Unreadable, check_graph, refuse
from loopwright.adapters.sources.text.reading import called, folder_of, read_file
from loopwright.adapters.sources.text.reasons import UNKNOWN, has_reason, reason_in, theirs
from loopwright.adapters.sources.text.schema_check import check_schema
from loopwright.config.kinds import is_inside
from loopwright.config.nearest import nearest, quoted
from loopwright.core.values.criteria import in_words
from loopwright.core.values.errors import BadPlan
from loopwright.ports import Files, Mark, PlannedTask, PlannedWork, Progress, Source, Specs

FILE: Final = "test-state.json"
CONFIG_FILE: Final = "config.json"
ABOVE: Final = f"../{CONFIG_FILE}"
"""Where the configuration lies of tests that are in the folder of their specifications."""
MAX_CONFIG: Final = 262_144
# Any of these makes a config.json beside the tests theirs.
_TELLING: Final = (b'"test_state_file"', b'"specs_dir"')


class LoopTestsSource(Source):
    """Reads and writes a test-state.json, with the config.json that it belongs to if there is one."""

    kind = "test_state"
    format_name = "Test state"
    usual_places = (
        "test-state.json",
        "specs/test-state.json",
        "coding-loops/*",
        "docs/specs/*/test-state.json",
    )

    def recognises(self, place: Path) -> bool:
        """Take the file by its name, its folder, or the configuration that names it, with its folder."""
        if place.is_dir():
            return (place / FILE).is_file() or _TELLING[0] in (_ours(place / CONFIG_FILE) or b"")
        if place.name == CONFIG_FILE:
            return _ours(place) is not None
        return place.name == FILE and place.is_file()

    def canonical(self, place: Path) -> Path:
        """Return the tests of a folder, unless its configuration names others."""
        if not place.is_dir() or not (place / FILE).is_file():
            return place
        config = _ours(place / CONFIG_FILE)
        is_own = config is None or _named(place, config) == FILE
        return place / FILE if is_own else place

    def files(self, place: Path) -> Files:
        """Return the tests, their configuration, and the health file that it asks for."""
        folder = folder_of(place)
        is_named = place.is_file() and place.name != CONFIG_FILE
        state = place.name if is_named else FILE
        found: dict[str, bytes] = {}
        # A path that names the configuration is meant, whatever the file says.
        is_config = place.is_file() and place.name == CONFIG_FILE
        if (beside := read_file(place) if is_config else _ours(folder / CONFIG_FILE)) is not None:
            found[CONFIG_FILE] = beside
            if not is_named:
                state = _named(folder, beside)
        elif (above := _ours(folder / ABOVE)) is not None and _leads_to(folder, above, state):
            found[ABOVE] = above
        found[state] = read_file(folder / state)
        health_file = _health_file(_settled(found), state)
        if health_file is not None and (folder / health_file).is_file():
            found[health_file] = read_file(folder / health_file)
        return found

    def parse(self, files: Files, name: str) -> PlannedWork:
        """Return the tests as tasks, or raise `BadPlan` with located problems in either file."""
        config_problems = Problems(_beside(name, files, _config_name(files) or CONFIG_FILE))
        config = _config(files, config_problems)
        state = _state_of(files, config)
        problems = Problems(_beside(name, files, state))
        document = _document(files[state], problems)
        if document is not None:
            document = migrated(document, problems)
            check_schema(document, TEST_STATE, problems)
            note_near_misses(document, problems)
        refuse(name, config_problems, problems)
        assert document is not None  # else there was a problem
        tests = tables(inner(document, "tests"))
        edges = _graph(tests, problems)
        refuse(name, problems)
        _compare_summary(document, problems)
        tasks = tuple(
            _task(test, edges[words(test, "id")], _specification(document, words(test, "id")))
            for test in tests
        )
        named_in = _config_name(files)
        specs = Specs(folder=config.specs_dir, named_in=named_in) if config and named_in else None
        title = words(document, "loopName") or (config.name if config is not None else "Tests")
        settings = _settings(config)
        return PlannedWork(
            title=title,
            tasks=tasks,
            settings=settings,
            priority=config.priority if config is not None else USUAL_PRIORITY,
            sha256=fingerprint(tasks, title, specs.folder if specs else "", settings),
            specs=specs,
            notes=(*config_problems.notes, *problems.notes),
        )

    def status_files(self, files: Files) -> tuple[str, ...]:
        """Return the tests: the configuration has no place for status."""
        return (_state_of(files, _settled(files)),)

    def written(self, files: Files, progress: Progress) -> Files:
        """Return the tests with their status."""
        state = _state_of(files, _settled(files))
        edits = opened(state, files[state])
        tell_tests(edits, progress)
        return {state: edits.bytes()} if edits.bytes() != files[state] else {}

    def heartbeat_file(self, files: Files) -> str | None:
        """Return the health file, where the configuration asks for it."""
        config = _settled(files)
        return _health_file(config, _state_of(files, config))

    def heartbeat(self, files: Files, progress: Progress, pid: int | None) -> bytes | None:
        """Return the health file as it is now; None while the one that is there is younger than its interval."""
        config = _settled(files)
        assert config is not None  # without a configuration there is no health file
        state = _state_of(files, config)
        name = _health_file(config, state)
        assert name is not None
        _refuse_other_file(name, files.get(name))
        standing = tell_tests(opened(state, files[state]), progress)
        interval = timedelta(seconds=config.health_check["interval_seconds"])
        return next_health(files.get(name), health(config.name, standing, progress, pid), interval)


def _refuse_other_file(name: str, content: bytes | None) -> None:
    """Raise when something else than a health file is in its place: it is written as a whole."""
    if content is not None and inner(opened(name, content).document, "loop_name") is None:
        raise BadPlan(CONFIG_FILE, (f"health_check.file: {name} is there already, and no health file",))


def _ours(path: Path) -> bytes | None:
    """Return a configuration of tests; None if there is none, or if another tool wrote it."""
    try:
        content = read_file(path) if path.is_file() else b""
    except BadPlan:
        return None  # too large, or not to be read: another kind of file in any case
    return content if any(key in content for key in _TELLING) else None


def _config_name(files: Files) -> str | None:
    return next((name for name in (CONFIG_FILE, ABOVE) if name in files), None)


def _health_file(config: LoopConfig | None, state: str) -> str | None:
    """Return the health file, which lies beside the tests; None if the configuration does not ask for it."""
    if config is None or not config.health_check["enabled"]:
        return None
    return posixpath.join(posixpath.dirname(state), config.health_check["file"])


def _settled(files: Files) -> LoopConfig | None:
    """Return the configuration if there is a good one; what is wrong with it is said by `parse`."""
    return _config(files, Problems(CONFIG_FILE))


def _config(files: Files, problems: Problems) -> LoopConfig | None:
    name = _config_name(files)
    document = _config_document(files[name], problems) if name is not None else None
    if document is None:
        return None
    check_schema(document, CONFIG, problems)
    for group, key in (("", "test_state_file"), ("", "specs_dir"), ("health_check", "file")):
        table = inner(document, group) if group else document
        path = plain(table, key) if table is not None else None
        if table is not None and isinstance(path, str) and not is_inside(path):
            place = f"{group}.{key}" if group else key
            problems.note(line_of(table, key), place, "expected a path without .. in it, not from the root")
        elif table is not None and group and path in (CONFIG_FILE, plain(document, "test_state_file"), FILE):
            problems.note(line_of(table, key), f"{group}.{key}", "expected a separate file")
    if problems.count:
        return None
    _warn_of_unused(document, problems)
    return loop_config(document.plain())


def _warn_of_unused(document: Located, problems: Problems) -> None:
    """Say which keys of a configuration ask for something that is not done."""
    defaults = filled(CONFIG, {})
    for dotted, instead in UNUSED.items():
        group, _, key = dotted.rpartition(".")
        table, usual = (inner(document, group), defaults[group]) if group else (document, defaults)
        said = plain(table, key) if table is not None else None
        if said not in (None, usual.get(key), AS_ASKED.get(dotted)):
            problems.warn(line_of(document, dotted), dotted, f"is not used: {instead}")


def _config_document(content: bytes, problems: Problems) -> Located | None:
    if len(content) > MAX_CONFIG:
        problems.note(1, "", f"a configuration has at most {MAX_CONFIG} bytes")
        return None
    return _document(content, problems)


def _document(content: bytes, problems: Problems) -> Located | None:
    try:
        return JsonEdits(content).document
    except Unreadable as broken:
        problems.note(broken.line or 1, "", broken.message)
        return None


def _places(folder: Path, content: bytes) -> Iterator[str]:
    """Return where the tests of a configuration may be, relative to its folder.

    Originally they are in `specs_dir`, which is relative to the project; both are also written relative to this folder.
    """
    document = _config_document(content, Problems(CONFIG_FILE))
    if document is None:
        return
    specs, state = words(document, "specs_dir"), words(document, "test_state_file")
    if not (is_inside(specs) and is_inside(state)):
        return
    here = folder.resolve()
    for above in (here, *_up_to_repository(here)):
        yield posixpath.normpath(os.path.relpath(above / specs / state, here))
    yield posixpath.normpath(state)
    yield PurePosixPath(state).name


def _up_to_repository(folder: Path) -> tuple[Path, ...]:
    parents = tuple(folder.parents)
    tops = [n for n, one in enumerate((folder, *parents)) if (one / ".git").exists()]
    return parents[: tops[0]] if tops else ()


def _named(folder: Path, config: bytes) -> str:
    """Return the tests that a configuration names; what is wrong with one that names none is said by `parse`."""
    places = list(_places(folder, config))
    if not places:
        return FILE
    found = next((name for name in places if (folder / name).is_file()), None)
    if found is None:
        name = called(folder / CONFIG_FILE)
        raise BadPlan(
            name, (f"{name}: test_state_file: there is no {places[0]}, nor is it beside this file",)
        )
    return found


def _leads_to(folder: Path, config: bytes, state: str) -> bool:
    """Return whether the configuration in the folder above is that of the tests in this one."""
    above = folder.resolve().parent
    places = list(_places(above, config))
    found = next((above / name for name in places if (above / name).is_file()), None)
    # One that cannot be read is said to be wrong, and not passed over.
    return not places or (found is not None and found.resolve() == (folder / state).resolve())


def _state_of(files: Files, config: LoopConfig | None) -> str:
    names = set(files) - {CONFIG_FILE, ABOVE}
    names -= {_health_file(config, name) for name in names}
    if len(names) != 1:
        raise BadPlan(FILE, ("expected one file of tests",))
    return names.pop()


def _beside(name: str, files: Files, file: str) -> str:
    """Return what a person calls one of the files, given what they call the source."""
    place = PurePosixPath(name)
    if any(place.name == PurePosixPath(each).name for each in files):
        return posixpath.normpath(place.parent / file) if place.name != file else name
    return posixpath.normpath(place / file)


def migrated(document: Located, problems: Problems) -> Located:
    """Return a document of the older shape in today's; the file itself stays as it is."""
    if not isinstance(document.value, dict):
        return document
    table: dict[str, Located] = {}
    for key, found in document.value.items():
        if key in RETIRED:
            problems.warn(found.line, key, "a key of an older shape; it is ignored")
        elif key in RENAMED and RENAMED[key] not in document.value:
            problems.warn(found.line, key, f"a key of an older shape; it is read as {RENAMED[key]}")
            table[RENAMED[key]] = found
        else:
            table[key] = found
    return replace(document, value=table)


def _graph(tests: list[Located], problems: Problems) -> dict[str, tuple[str, ...]]:
    edges: dict[str, tuple[str, ...]] = {}
    places: dict[str, tuple[int, str]] = {}
    for index, test in enumerate(tests):
        key = words(test, "id")
        if key in edges:
            problems.note(line_of(test, "id"), f"tests[{index}].id", f"{quoted(key)} is here a second time")
            continue
        needs = plain(test, "dependsOn", [])
        edges[key] = tuple(dict.fromkeys([needs] if isinstance(needs, str) else needs))
        places[key] = (line_of(test, "dependsOn"), f"tests[{index}].dependsOn")
    check_graph(problems, edges, places, "test")
    return edges


def _specification(document: Located, key: str) -> str:
    """Return where the specification of a test is, by the longest beginning of its id that names one."""
    named = plain(document, "specFiles", {})
    begins = [one for one in named if key.startswith(one)] if isinstance(named, dict) else []
    path = named[max(begins, key=len)] if begins else None
    return f"Specification: {path}" if isinstance(path, str) and path.strip() else ""


def note_near_misses(document: Located, problems: Problems) -> None:
    """Note each key once that is nearly a known key; every other key stays and means nothing here."""
    known = frozenset(TEST_STATE["properties"]["tests"]["items"]["properties"])
    seen: set[str] = set()
    for index, test in enumerate(tables(inner(document, "tests"))):
        assert isinstance(test.value, dict)
        for key, held in test.value.items():
            guess = nearest(key, known, cutoff=0.8) if key not in known and key not in seen else None
            seen.add(key)
            if guess is not None and guess not in test.value:
                message = f"unknown key, it is ignored: did you mean {guess}?"
                problems.warn(held.line, f"tests[{index}].{key}", message)


def _task(test: Located, depends_on: tuple[str, ...], section: str) -> PlannedTask:
    key, category, notes = words(test, "id"), words(test, "category"), str(plain(test, "notes", ""))
    criteria = texts(inner(test, "passCriteria"))
    mark, reason = _standing(test, notes)
    description = theirs(notes).strip()
    gates = acceptance(criteria)
    said = in_words(criteria, [one.command for one in gates])
    made = [f"Make `{one.command}` pass" for one in gates[:1]]
    # Without criteria the notes are all that says what the test is; else they may say why it is blocked.
    notes_say = () if criteria else description.splitlines()[:1]
    named = text_at(test, ("name", "title", "description"))
    title = next(line for line in (named, *said[:1], *made, *notes_say, category, key) if line)
    return PlannedTask(
        key=key,
        title=" ".join(title.split())[:200],
        description=description,
        criteria=criteria,
        acceptance=gates,
        depends_on=depends_on,
        section=section,
        type=category,
        mark=mark,
        reason=reason,
        attempts=int(plain(test, "attempts", 0)),
        line=line_of(test, "id"),
    )


def _standing(test: Located, notes: str) -> tuple[Mark, str]:
    status = words(test, "status")
    mark = mark_of(status)
    if mark in (Mark.DONE, Mark.SKIPPED):
        return mark, ""
    if mark is None or (mark is Mark.BLOCKED and status != "blocked"):
        return Mark.BLOCKED, reason_in(notes) if has_reason(notes) else waiting_reason(status)
    if mark is Mark.BLOCKED:
        # Notes that say what the test is do not say why it is blocked.
        says_why = has_reason(notes) or plain(test, "passCriteria")
        return Mark.BLOCKED, reason_in(notes) if says_why else UNKNOWN
    if plain(test, "automatable") is False:
        return Mark.BLOCKED, NOT_AUTOMATABLE
    # A test that failed has attempts left: without any it is blocked.
    return Mark.OPEN, ""


def _compare_summary(document: Located, problems: Problems) -> None:
    summary = inner(document, "summary")
    statuses = [words(test, "status") for test in tables(inner(document, "tests"))]
    for key in COUNTS if summary is not None else ():
        assert summary is not None
        count = len(statuses) if key == "total" else statuses.count(key)
        if plain(summary, key, count) != count:
            message = f"says {words(summary, key)}, but there are {count}"
            problems.warn(line_of(summary, key), f"summary.{key}", message)


def _settings(config: LoopConfig | None) -> dict[str, Any]:
    """Return what the configuration says of the plan."""
    if config is None:
        return {}
    said: dict[str, Any] = {"max_attempts": config.max_attempts}
    said |= {"model": config.model} if config.model else {}
    # A project that heals does so here too, unless the loop asks for it itself: false is only the default.
    return said | ({"auto_heal": True} if config.auto_heal else {})
