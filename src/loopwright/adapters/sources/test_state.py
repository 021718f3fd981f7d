"""Tests to be made pass, in a test-state.json with its config.json: reading them, and writing back how they stand."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path, PurePosixPath
from typing import Any, Final

from loopwright.adapters.sources.criteria import acceptance
from loopwright.adapters.sources.json_edits import JsonEdits, opened
from loopwright.adapters.sources.located import Located, Unreadable, inner, line_of, plain, tables, words
from loopwright.adapters.sources.meaning import fingerprint
from loopwright.adapters.sources.problems import Problems, check_graph, refuse
from loopwright.adapters.sources.reading import folder_of, read_file
from loopwright.adapters.sources.reasons import reason_in, theirs
from loopwright.adapters.sources.schema_check import check_schema
from loopwright.adapters.sources.test_state_schema import (
    CONFIG,
    COUNTS,
    NOT_AUTOMATABLE,
    RENAMED,
    RETIRED,
    TEST_STATE,
    LoopConfig,
    loop_config,
)
from loopwright.adapters.sources.test_state_writing import health, next_health, tell_tests
from loopwright.config.kinds import is_inside
from loopwright.config.nearest import quoted
from loopwright.core.errors import BadPlan
from loopwright.ports import Files, Mark, PlannedTask, PlannedWork, Progress

FILE: Final = "test-state.json"
CONFIG_FILE: Final = "config.json"
# Any of these makes a config.json beside the tests theirs.
_TELLING: Final = (b'"test_state_file"', b'"specs_dir"')


class LoopTestsSource:
    """Reads and writes a test-state.json, with the config.json beside it if there is one."""

    kind = "test_state"

    def recognises(self, place: Path) -> bool:
        """Take the file by its name, its folder, or the configuration that names it."""
        if place.is_dir():
            return (place / FILE).is_file()
        if place.name == CONFIG_FILE and place.is_file():
            try:
                return _is_ours(read_file(place))
            except BadPlan:
                return False  # too large, or not to be read: another kind of file in any case
        return place.name == FILE and place.is_file()

    def files(self, place: Path) -> Files:
        """Return the tests, their configuration, and the health file that it asks for."""
        folder = folder_of(place)
        found: dict[str, bytes] = {}
        if (folder / CONFIG_FILE).is_file() and _is_ours(content := read_file(folder / CONFIG_FILE)):
            found[CONFIG_FILE] = content
        config = _settled(found)
        state = FILE
        if place.is_file() and place.name != CONFIG_FILE:
            state = place.name
        elif config is not None:
            state = _named(folder, config.test_state_file)
        found[state] = read_file(folder / state)
        if config is not None and config.health_check["enabled"]:
            health_file = config.health_check["file"]
            if (folder / health_file).is_file():
                found[health_file] = read_file(folder / health_file)
        return found

    def parse(self, files: Files, name: str) -> PlannedWork:
        """Return the tests as tasks, or raise `BadPlan` with located problems in either file."""
        config_problems = Problems(_beside(name, files, CONFIG_FILE))
        config = _config(files, config_problems)
        state = _state_of(files, config)
        problems = Problems(_beside(name, files, state))
        document = _document(files[state], problems)
        if document is not None:
            document = migrated(document, problems)
            check_schema(document, TEST_STATE, problems)
        refuse(name, config_problems, problems)
        assert document is not None  # else there was a problem
        tests = tables(inner(document, "tests"))
        edges = _graph(tests, problems)
        refuse(name, problems)
        _compare_summary(document, problems)
        tasks = tuple(_task(test, edges[words(test, "id")]) for test in tests)
        context = (
            f"The specifications are in {config.specs_dir}: read what concerns your task." if config else ""
        )
        title = words(document, "loopName")
        settings = _settings(config, files)
        return PlannedWork(
            title=title,
            tasks=tasks,
            settings=settings,
            sha256=fingerprint(tasks, title, context, settings),
            context=context,
            notes=(*config_problems.notes, *problems.notes),
        )

    def carries(self, files: Files) -> tuple[str, ...]:
        """Return the tests: the configuration has no place for status."""
        return (_state_of(files, _settled(files)),)

    def written(self, files: Files, progress: Progress) -> Files:
        """Return the tests with their status."""
        state = _state_of(files, _settled(files))
        edits = opened(state, files[state])
        tell_tests(edits, progress)
        return {state: edits.bytes()} if edits.bytes() != files[state] else {}

    def sign_file(self, files: Files) -> str | None:
        """Return the health file, where the configuration asks for it."""
        config = _settled(files)
        return (
            str(config.health_check["file"])
            if config is not None and config.health_check["enabled"]
            else None
        )

    def sign(self, files: Files, progress: Progress, pid: int | None) -> bytes | None:
        """Return the health file as it is now; None while the one that is there is younger than its interval."""
        config = _settled(files)
        assert config is not None  # else nobody asks for it
        name = config.health_check["file"]
        _refuse_other_file(name, files.get(name))
        state = _state_of(files, config)
        standing = tell_tests(opened(state, files[state]), progress)
        interval = timedelta(seconds=config.health_check["interval_seconds"])
        return next_health(files.get(name), health(config.name, standing, progress, pid), interval)


def _refuse_other_file(name: str, content: bytes | None) -> None:
    """Raise when something else than a health file is in its place: it is written as a whole."""
    if content is not None and inner(opened(name, content).document, "loop_name") is None:
        raise BadPlan(CONFIG_FILE, (f"health_check.file: {name} is there already, and no health file",))


def _is_ours(content: bytes) -> bool:
    return any(key in content for key in _TELLING)


def _settled(files: Files) -> LoopConfig | None:
    """Return the configuration if there is a good one; what is wrong with it is said by `parse`."""
    return _config(files, Problems(CONFIG_FILE))


def _config(files: Files, problems: Problems) -> LoopConfig | None:
    if CONFIG_FILE not in files:
        return None
    document = _document(files[CONFIG_FILE], problems)
    if document is None:
        return None
    check_schema(document, CONFIG, problems)
    for group, key in (("", "test_state_file"), ("", "specs_dir"), ("health_check", "file")):
        table = inner(document, group) if group else document
        path = plain(table, key) if table is not None else None
        if table is not None and isinstance(path, str) and not is_inside(path):
            place = f"{group}.{key}" if group else key
            problems.note(line_of(table, key), place, "expected a path relative to this folder, without ..")
        elif table is not None and group and path in (CONFIG_FILE, plain(document, "test_state_file"), FILE):
            problems.note(line_of(table, key), f"{group}.{key}", "expected a file of its own")
    return None if problems.count else loop_config(document.plain())


def _document(content: bytes, problems: Problems) -> Located | None:
    try:
        return JsonEdits(content).document
    except Unreadable as broken:
        problems.note(broken.line or 1, "", broken.message)
        return None


def _named(folder: Path, wanted: str) -> str:
    """Return the tests' file; a configuration may name it relative to the project instead of to its own folder."""
    return wanted if (folder / wanted).is_file() else PurePosixPath(wanted).name


def _state_of(files: Files, config: LoopConfig | None) -> str:
    health_file = config.health_check["file"] if config is not None else None
    names = [name for name in files if name not in (CONFIG_FILE, health_file)]
    if len(names) != 1:
        raise BadPlan(FILE, ("expected one file of tests",))
    return names[0]


def _beside(name: str, files: Files, file: str) -> str:
    """Return what a person calls one of the files, given what they call the source."""
    place = PurePosixPath(name)
    if any(place.name == PurePosixPath(each).name for each in files):
        return str(place.parent / file) if place.name != file else name
    return str(place / file)


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
            problems.note(
                line_of(test, "id"), f"tests[{index}].id", f"{quoted(key)} stands here a second time"
            )
            continue
        needs = plain(test, "dependsOn", [])
        edges[key] = tuple(dict.fromkeys([needs] if isinstance(needs, str) else needs))
        places[key] = (line_of(test, "dependsOn"), f"tests[{index}].dependsOn")
    check_graph(problems, edges, places, "test")
    return edges


def _task(test: Located, depends_on: tuple[str, ...]) -> PlannedTask:
    key, category, notes = words(test, "id"), words(test, "category"), str(plain(test, "notes", ""))
    criteria = tuple(entry.strip() for entry in plain(test, "passCriteria", []) if entry.strip())
    mark, reason = _standing(test, notes)
    return PlannedTask(
        key=key,
        title=(" ".join(criteria[0].split()) if criteria else category or key)[:200],
        description=theirs(notes).strip(),
        criteria=criteria,
        acceptance=acceptance(criteria),
        depends_on=depends_on,
        type=category,
        mark=mark,
        reason=reason,
        line=line_of(test, "id"),
    )


def _standing(test: Located, notes: str) -> tuple[Mark, str]:
    status = words(test, "status")
    if status == "passed":
        return Mark.DONE, ""
    if status == "blocked":
        return Mark.BLOCKED, reason_in(notes)
    if plain(test, "automatable") is False:
        return Mark.BLOCKED, NOT_AUTOMATABLE
    # What failed has attempts left: without any it is blocked.
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


def _settings(config: LoopConfig | None, files: Files) -> dict[str, Any]:
    """Return what the configuration says; what it leaves out is for the project's own settings to say."""
    if config is None:
        return {}
    written = json.loads(files[CONFIG_FILE].decode("utf-8-sig"))
    return {key: written[key] for key in ("max_attempts", "model") if key in written}
