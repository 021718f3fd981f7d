"""The stories of a BMAD sprint-status.yaml: epics are containers, and a retrospective is for people.

BMAD's own file maps each story to its status (`development_status`). Others list stories, also sprint by sprint.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from loopwright.adapters.sources.lists.item_order import needs
from loopwright.adapters.sources.lists.item_status import STATUS, standing
from loopwright.adapters.sources.lists.status_words import StatusWords, mark_of, waiting_reason
from loopwright.adapters.sources.lists.work_items import (
    PHASE,
    TITLE,
    Item,
    criteria,
    description,
    read_items,
    text_at,
)
from loopwright.adapters.sources.spec.plan_format import MAX_DESCRIPTION, MAX_TITLE
from loopwright.adapters.sources.text.criteria import acceptance
from loopwright.adapters.sources.text.located import Located, inner, line_of, read_yaml, words
from loopwright.adapters.sources.text.meaning import fingerprint
from loopwright.adapters.sources.text.plan_file import decoded
from loopwright.adapters.sources.text.problems import Problems, Unreadable, refuse
from loopwright.adapters.sources.text.reading import located_at, read_file
from loopwright.adapters.sources.text.yaml_edits import with_entries
from loopwright.config.nearest import quoted
from loopwright.core.values.errors import BadPlan
from loopwright.ports import Files, Mark, PlannedTask, PlannedWork, Progress

SPRINTS: Final = frozenset({"sprint-status.yaml", "sprint-status.yml"})
STORIES: Final = "development_status"
_LISTS: Final = ("stories", "user_stories", "backlog")
_FOLDERS: Final = ("", "stories/")
"""Where the file of a story lies, from the sprint."""
_MAX_STORIES: Final = 1_000
_MAX_FILES: Final = 300
_EPIC: Final = re.compile(
    r"(?:(?:.{0,40}[-_ ])?epic[-_ ]?[0-9][\w.]{0,20}|epic[-_ ]?\w{1,20})", re.IGNORECASE
)
_NAMED_EPIC: Final = re.compile(r"epic[-_ ]?[0-9]{1,4}[a-z]?[-_][^0-9].{0,100}", re.IGNORECASE)
_RETROSPECTIVE: Final = re.compile(r"retrospective|retro$", re.IGNORECASE)
_KEY: Final = re.compile(r"([0-9]{1,4}[a-z]?)[-.]([0-9]{1,4}[a-z]?)[-.](.+)", re.IGNORECASE)
_HEADING: Final = re.compile(r"(?m)^#[ \t]+(.+?)[ \t]*$")
_OUTER: Final = re.compile(r"(?m)^([A-Za-z_][\w-]{0,60}:[ \t]+)([^\s|>&*!#\[].*)$")
_READY: Final = frozenset({"drafted", "contexted", "draft"})
"""Words of BMAD for a story that is written and not begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Story:
    """A story of a sprint, wherever the file has it."""

    key: str
    status: Located
    at: tuple[int, str]
    """The line and the key of its status."""
    mark: Mark
    reason: str
    item: Item | None = None
    """Its entry, if the file lists stories."""


def sprint_files(place: Path) -> Files:
    """Return the sprint, and the file of each story that is beside it."""
    found = {place.name: read_file(place)}
    problems = Problems(place.name)
    try:
        stories = _stories(_read(found[place.name]), problems)
    except Unreadable:
        return found  # `parse` reports it
    for story in stories:
        for folder in _FOLDERS:
            path = place.parent / folder / f"{story.key}.md"
            if PurePosixPath(story.key).name == story.key and path.is_file() and len(found) <= _MAX_FILES:
                found[f"{folder}{path.name}"] = read_file(path)
    return found


def parse_sprint(files: Files, name: str) -> PlannedWork:
    """Return a task for each story, in the order of the file."""
    file = next(iter(files))
    shown = name if name.endswith((".yaml", ".yml")) else f"{name}/{file}"
    problems = Problems(shown)
    document = _document(files, shown)
    stories = _stories(document, problems)
    if len(stories) > _MAX_STORIES:
        problems.note(stories[_MAX_STORIES].at[0], STORIES, f"a sprint has at most {_MAX_STORIES} stories")
    edges = needs([story.item for story in stories if story.item is not None], problems)
    refuse(shown, problems)
    if not stories:
        problems.warn(document.line, "", "there is no story in it: plan the sprint to have it done")
    bare = [story.key for story in stories if not _text(files, story.key) and story.mark is Mark.OPEN]
    if bare:
        listed = ", ".join(bare[:5]) + (", …" if len(bare) > 5 else "")
        message = f"these stories have no file yet, so agents get only the title: {listed}"
        problems.warn(document.line, "", message)
    tasks: list[PlannedTask] = []
    for story in stories:
        before = (tasks[-1].key,) if tasks else ()
        tasks.append(_task(story, _text(files, story.key), edges.get(story.key, ()), before))
    title = words(document, "project") or "Sprint"
    return PlannedWork(
        title=title[:MAX_TITLE], tasks=tuple(tasks), sha256=fingerprint(tasks, title), notes=problems.notes
    )


def _task(story: _Story, text: str, depends_on: tuple[str, ...], before: tuple[str, ...]) -> PlannedTask:
    heading = _HEADING.search(text)
    item = story.item
    said = item.title if item is not None and text_at(item.found, TITLE) else _title(story.key)
    listed = criteria(item) if item is not None else ()
    return PlannedTask(
        key=story.key,
        title=(heading[1] if heading is not None else said)[:MAX_TITLE],
        description=(text or (description(item) if item is not None else ""))[:MAX_DESCRIPTION],
        criteria=listed,
        acceptance=acceptance(listed),
        depends_on=depends_on,
        after=tuple(one for one in before if one not in depends_on),
        phase=(item.group or text_at(item.found, PHASE)) if item is not None else _epic(story.key),
        mark=story.mark,
        reason=story.reason,
        line=story.at[0],
    )


def write_sprint(files: Files, progress: Progress) -> Files:
    """Return the sprint with the status of each story that the progress knows."""
    file, content = next(iter(files.items()))
    stories = _stories(_document(files, file), Problems(file))
    spelled = StatusWords(story.status.text for story in stories)
    values: dict[tuple[int, str], str] = {}
    for story in stories:
        item = progress.items.get(story.key)
        if item is not None and story.mark is not item.mark:
            values[story.at] = (
                spelled.word(item.mark) if story.item is not None else _word(item.mark, spelled)
            )
    masked = _masked(content)
    try:
        made = with_entries(masked, values)
    except Unreadable as broken:
        raise located_at(file, broken) from broken
    made = _unmasked(content, masked, made)
    return {file: made} if made != content else {}


def _word(mark: Mark, spelled: StatusWords) -> str:
    usual = {
        Mark.OPEN: "ready-for-dev",
        Mark.RUNNING: "in-progress",
        Mark.DONE: "done",
        Mark.BLOCKED: "blocked",
    }
    return usual.get(mark) or spelled.word(mark)


def _read(content: bytes) -> Located:
    return read_yaml(decoded(_masked(content)))


def _masked(content: bytes) -> bytes:
    """Return the file as YAML: a value such as `{project-root}/stories` is none, so as many letters replace it."""
    text = decoded(content)
    try:
        read_yaml(text)
    except Unreadable:
        return _OUTER.sub(_Mask(), text).encode()
    return content


class _Mask:
    """Makes a value plain; a key that is there a second time becomes a comment."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def __call__(self, found: re.Match[str]) -> str:
        key = found[1].partition(":")[0]
        first = "#" if key in self._seen else found[1][0]
        self._seen.add(key)
        return first + found[1][1:] + "x" * len(found[2])


def _unmasked(content: bytes, masked: bytes, made: bytes) -> bytes:
    """Return what was made of the masked text with every other line as it was in the file."""
    if masked == content:
        return made
    lines = zip(content.split(b"\n"), masked.split(b"\n"), made.split(b"\n"), strict=True)
    return b"\n".join(was if now == hidden else now for was, hidden, now in lines)


def _document(files: Files, name: str) -> Located:
    try:
        document = _read(next(iter(files.values())))
    except Unreadable as broken:
        raise located_at(name, broken) from broken
    if not isinstance(document.value, dict):
        raise BadPlan(name, (f"{name}:{document.line}: expected a mapping with {STORIES}",))
    return document


def _stories(document: Located, problems: Problems) -> list[_Story]:
    held = inner(document, STORIES)
    if held is None and document.value and _has_list(document):
        return list(_listed(document, problems))
    if held is None or not isinstance(held.value, dict | None):
        problems.note(document.line, STORIES, "missing: expected a mapping of stories to their status")
        return []
    return list(_mapped(held.value or {}))


def _mapped(entries: Mapping[str, Located]) -> Iterator[_Story]:
    for key, found in entries.items():
        is_epic = _EPIC.fullmatch(key) or (_NAMED_EPIC.fullmatch(key) and "story" not in key.casefold())
        if is_epic or _RETROSPECTIVE.search(key) or not 0 < len(key) <= 128:
            continue
        status = inner(found, "status") if isinstance(found.value, dict) else found
        if status is not None and isinstance(status.value, str | None):
            mark, reason = _standing(status)
            at = (status.line, "status" if isinstance(found.value, dict) else key)
            yield _Story(key=key, status=status, at=at, mark=mark, reason=reason)


def _has_list(document: Located) -> bool:
    return bool(read_items(document, _LISTS, Problems("")).lists)


def _listed(document: Located, problems: Problems) -> Iterator[_Story]:
    for item in read_items(document, _LISTS, problems).items:
        key = next((one for one in STATUS if isinstance(_plain(item.found, one), str)), None)
        if key is None:
            message = "this story has no status: write `status: backlog`"
            problems.note(line_of(item.found, "id"), item.place, message)
            continue
        status = inner(item.found, key)
        assert status is not None
        mark, reason = standing(item.found)
        yield _Story(key=item.key, status=status, at=(status.line, key), mark=mark, reason=reason, item=item)


def _plain(found: Located, key: str) -> object:
    held = inner(found, key)
    return held.value if held is not None else None


def _standing(found: Located) -> tuple[Mark, str]:
    word = found.text.strip()
    mark = Mark.OPEN if word.casefold() in _READY else mark_of(word)
    if mark is None or mark is Mark.BLOCKED:
        return Mark.BLOCKED, f"the status of the story is {quoted(word)}" if mark else waiting_reason(word)
    return mark, ""


def _text(files: Files, key: str) -> str:
    content = next((files[name] for one in _FOLDERS if (name := f"{one}{key}.md") in files), None)
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
