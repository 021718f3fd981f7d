"""The stories of a BMAD sprint-status.yaml: epics are containers, and a retrospective is for people."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from loopwright.adapters.sources.lists.status_words import StatusWords, mark_of, waiting_reason
from loopwright.adapters.sources.spec.plan_format import MAX_DESCRIPTION, MAX_TITLE
from loopwright.adapters.sources.text.located import Located, inner, read_yaml, words
from loopwright.adapters.sources.text.meaning import fingerprint
from loopwright.adapters.sources.text.plan_file import decoded
from loopwright.adapters.sources.text.problems import Problems, Unreadable, refuse
from loopwright.adapters.sources.text.reading import located_at, read_file
from loopwright.adapters.sources.text.yaml_edits import with_mapped
from loopwright.config.nearest import quoted
from loopwright.core.values.errors import BadPlan
from loopwright.ports import Files, Mark, PlannedTask, PlannedWork, Progress

SPRINTS: Final = frozenset({"sprint-status.yaml", "sprint-status.yml"})
STORIES: Final = "development_status"
_MAX_STORIES: Final = 1_000
_MAX_FILES: Final = 300
_EPIC: Final = re.compile(r"epic[-_ ]?[\w.]{1,20}$", re.IGNORECASE)
_RETROSPECTIVE: Final = re.compile(r"retrospective|retro$", re.IGNORECASE)
_KEY: Final = re.compile(r"([0-9]{1,4}[a-z]?)[-.]([0-9]{1,4}[a-z]?)[-.](.+)", re.IGNORECASE)
_HEADING: Final = re.compile(r"(?m)^#[ \t]+(.+?)[ \t]*$")
_READY: Final = frozenset({"drafted", "contexted", "draft"})
"""Words of BMAD for a story that is written and not begun."""


def sprint_files(place: Path) -> Files:
    """Return the sprint, and the file of each story that is beside it."""
    found = {place.name: read_file(place)}
    try:
        document = read_yaml(decoded(found[place.name]))
    except Unreadable:
        return found  # `parse` reports it
    for key, _ in _stories(document):
        path = place.parent / f"{key}.md"
        if PurePosixPath(key).name == key and path.is_file() and len(found) <= _MAX_FILES:
            found[path.name] = read_file(path)
    return found


def parse_sprint(files: Files, name: str) -> PlannedWork:
    """Return a task for each story, in the order of the file."""
    file = next(iter(files))
    shown = name if name.endswith((".yaml", ".yml")) else f"{name}/{file}"
    problems = Problems(shown)
    document = _document(files, shown)
    held = inner(document, STORIES)
    if held is None or not isinstance(held.value, dict):
        problems.note(document.line, STORIES, "missing: expected a mapping of stories to their status")
    stories = list(_stories(document))
    if len(stories) > _MAX_STORIES:
        problems.note(stories[_MAX_STORIES][1].line, STORIES, f"a sprint has at most {_MAX_STORIES} stories")
    if not stories and not problems.count:
        problems.note(document.line, STORIES, "there is no story in it: plan the sprint first")
    refuse(shown, problems)
    bare = [key for key, found in stories if f"{key}.md" not in files and _standing(found)[0] is Mark.OPEN]
    if bare:
        listed = ", ".join(bare[:5]) + (", …" if len(bare) > 5 else "")
        problems.warn(
            document.line, "", f"these stories have no file yet, so agents get only the title: {listed}"
        )
    tasks: list[PlannedTask] = []
    for key, found in stories:
        text = _text(files, key)
        heading = _HEADING.search(text)
        mark, reason = _standing(found)
        tasks.append(
            PlannedTask(
                key=key,
                title=(heading[1] if heading is not None else _title(key))[:MAX_TITLE],
                description=text[:MAX_DESCRIPTION],
                after=(tasks[-1].key,) if tasks else (),
                phase=_epic(key),
                mark=mark,
                reason=reason,
                line=found.line,
            )
        )
    title = words(document, "project") or "Sprint"
    return PlannedWork(
        title=title[:MAX_TITLE], tasks=tuple(tasks), sha256=fingerprint(tasks, title), notes=problems.notes
    )


def write_sprint(files: Files, progress: Progress) -> Files:
    """Return the sprint with the status of each story that the progress knows."""
    file, content = next(iter(files.items()))
    document = _document(files, file)
    stories = dict(_stories(document))
    spelled = StatusWords(found.text for found in stories.values())
    values: dict[str, str] = {}
    for key, found in stories.items():
        item = progress.items.get(key)
        if item is not None and _standing(found)[0] is not item.mark:
            values[key] = _word(item.mark, spelled)
    try:
        made = with_mapped(content, STORIES, values)
    except Unreadable as broken:
        raise located_at(file, broken) from broken
    return {file: made} if made != content else {}


def _word(mark: Mark, spelled: StatusWords) -> str:
    usual = {
        Mark.OPEN: "ready-for-dev",
        Mark.RUNNING: "in-progress",
        Mark.DONE: "done",
        Mark.BLOCKED: "blocked",
    }
    return usual.get(mark) or spelled.word(mark)


def _document(files: Files, name: str) -> Located:
    try:
        document = read_yaml(decoded(next(iter(files.values()))))
    except Unreadable as broken:
        raise located_at(name, broken) from broken
    if not isinstance(document.value, dict):
        raise BadPlan(name, (f"{name}:{document.line}: expected a mapping with {STORIES}",))
    return document


def _stories(document: Located) -> Iterator[tuple[str, Located]]:
    held = inner(document, STORIES)
    entries: Mapping[str, Located] = held.value if held is not None and isinstance(held.value, dict) else {}
    for key, found in entries.items():
        is_story = not _EPIC.match(key) and not _RETROSPECTIVE.search(key)
        if is_story and isinstance(found.value, str | None) and 0 < len(key) <= 128:
            yield key, found


def _standing(found: Located) -> tuple[Mark, str]:
    word = found.text.strip()
    mark = Mark.OPEN if word.casefold() in _READY else mark_of(word)
    if mark is None or mark is Mark.BLOCKED:
        return Mark.BLOCKED, f"the status of the story is {quoted(word)}" if mark else waiting_reason(word)
    return mark, ""


def _text(files: Files, key: str) -> str:
    content = files.get(f"{key}.md")
    try:
        return decoded(content).strip() if content is not None else ""
    except Unreadable:
        return ""  # its path is in the prompt all the same


def _title(key: str) -> str:
    match = _KEY.fullmatch(key)
    named = (match[3] if match is not None else key).replace("-", " ").replace("_", " ").strip()
    story = f"Story {match[1]}.{match[2]}: " if match is not None else ""
    return f"{story}{named[:1].upper()}{named[1:]}"


def _epic(key: str) -> str:
    match = _KEY.fullmatch(key)
    return f"Epic {match[1]}" if match is not None else ""
