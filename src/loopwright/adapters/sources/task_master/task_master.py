"""Tasks of a Task Master tasks.json: the tasks of one tag, their subtasks as steps, and their status written back."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from loopwright.adapters.sources.lists.item_order import needs, note_near_misses, priority
from loopwright.adapters.sources.lists.item_status import KEYS, StatusStyle, standing
from loopwright.adapters.sources.lists.status_words import StatusWords, mark_of
from loopwright.adapters.sources.lists.work_items import (
    Item,
    context,
    criteria,
    description,
    list_title,
    read_items,
)
from loopwright.adapters.sources.text.criteria import acceptance
from loopwright.adapters.sources.text.json_edits import JsonEdits, opened
from loopwright.adapters.sources.text.located import Located, inner, line_of, plain, tables, words
from loopwright.adapters.sources.text.meaning import fingerprint
from loopwright.adapters.sources.text.problems import Problems, refuse
from loopwright.adapters.sources.text.reading import read_file, start_of
from loopwright.config.nearest import quoted
from loopwright.ports import Files, Mark, PlannedTask, PlannedWork, Progress, Source

FILE: Final = "tasks.json"
FOLDER: Final = ".taskmaster"
STATE: Final = "../state.json"
MAIN: Final = "master"
_MEDIUM: Final = 50
_DEFERRED: Final = "deferred"
_NAMED: Final = 5
"""How many tasks a note names."""
_WORDS: Final = ("pending", "in-progress", "done", "blocked", "cancelled")
_TELLING: Final = ('"testStrategy"', '"subtasks"')
_SUBTASK_KEYS: Final = ("subtasks", "complexity", "recommendedSubtasks", "expansionPrompt", "updatedAt")


class TaskMasterSource(Source):
    """Reads and writes a tasks.json; its state.json names the tag that is meant."""

    kind = "task_master"
    format_name = "Task Master"
    usual_places = (".taskmaster/tasks/tasks.json", ".taskmaster/tasks.json", "tasks/tasks.json")

    def recognises(self, place: Path) -> bool:
        """Take the folder `.taskmaster`, and a tasks.json that is in it or has the keys of Task Master."""
        if place.is_dir():
            return place.name == FOLDER and _tasks_in(place) is not None
        if place.name.lower() != FILE or not place.is_file():
            return False
        return FOLDER in place.absolute().parts or any(key in start_of(place) for key in _TELLING)

    def canonical(self, place: Path) -> Path:
        """Return the tasks.json of a folder."""
        return (_tasks_in(place) or place) if place.is_dir() else place

    def files(self, place: Path) -> Files:
        """Return the tasks, and the state that names the current tag if it is there."""
        path = _tasks_in(place) if place.is_dir() else place
        assert path is not None  # else the folder is not recognised
        name = path.relative_to(place).as_posix() if place.is_dir() else path.name
        found = {name: read_file(path)}
        state = path.parent.parent / "state.json"
        if path.parent.parent.name == FOLDER and state.is_file():
            found[STATE] = read_file(state)
        return found

    def status_files(self, files: Files) -> tuple[str, ...]:
        """Return the tasks: the state has no place for status."""
        return tuple(name for name in files if name != STATE)

    def parse(self, files: Files, name: str) -> PlannedWork:
        """Return the tasks of the current tag, or raise `BadPlan` with located problems."""
        file = next(one for one in files if one != STATE)
        name = name if name.endswith(FILE) else f"{name}/{file}"
        document = opened(name, files[file]).document
        problems = Problems(name)
        tag, holder = _tag(document, files, problems)
        items = _items(holder, problems)
        edges = needs([_without_subtasks(one) for one in items], problems)
        refuse(name, problems)
        if not items:
            problems.warn(holder.line, tag, "the list is empty: add a task to have it done")
        note_near_misses(items, (*KEYS, *_SUBTASK_KEYS), problems)
        tasks = tuple(_of_tag(tag, _task(item, edges[item.key], problems)) for item in items)
        _tell_deferred(items, problems)
        title = list_title(inner(holder, "metadata") or holder, f"Tasks of {tag}" if tag else "Tasks")
        about = context(inner(holder, "metadata") or holder)
        return PlannedWork(
            title=title,
            tasks=tasks,
            sha256=fingerprint(
                (
                    replace(task, description=_described(item, with_status=False))
                    for task, item in zip(tasks, items, strict=True)
                ),
                title,
                tag,
            ),
            part=tag,
            context=about if not about.startswith("Tasks for ") else "",
            notes=problems.notes,
        )

    def written(self, files: Files, progress: Progress) -> Files:
        """Return the tasks with the status of each that the progress knows; a done task has no open subtask.

        The keys name the tag, so a plan's status goes to its own tag, whatever the current one is.
        """
        file = next(one for one in files if one != STATE)
        edits = opened(file, files[file])
        problems = Problems(file)
        tag, holder = _told_tag(edits.document, progress.items, problems)
        items = _items(holder, problems)
        style = StatusStyle(items, edits.document, usual="status", known=_WORDS)
        spelled = StatusWords(words(one.found, "status") for one in items)
        for task in items:
            item = progress.items.get(_key(tag, task.key))
            if item is not None and not (item.mark is Mark.SKIPPED and _is_deferred(task.found)):
                style.tell(edits, task.found, item, progress.at)
                if item.mark is Mark.BLOCKED and _is_deferred(task.found):
                    edits.put(task.found, "status", spelled.word(Mark.BLOCKED))
                if item.mark is Mark.DONE:
                    _finish(edits, task, spelled.word(Mark.DONE))
        made = edits.bytes()
        return {file: made} if made != files[file] else {}


def _key(tag: str, number: str) -> str:
    """Return the key of a task: the tags number their tasks independently."""
    return number if tag in ("", MAIN) else f"{tag}:{number}"


def _of_tag(tag: str, task: PlannedTask) -> PlannedTask:
    return replace(task, key=_key(tag, task.key), depends_on=tuple(_key(tag, one) for one in task.depends_on))


def _told_tag(document: Located, keys: Iterable[str], problems: Problems) -> tuple[str, Located]:
    """Return the tag that these keys belong to, and what is in it."""
    tags = _tags(document)
    if tags is None:
        return "", document
    told = {one for key in keys for one in tags if one != MAIN and key.startswith(f"{one}:")}
    tag = max(told, key=len, default=MAIN)
    if tag in tags:
        return tag, tags[tag]
    problems.note(document.line, "", f"there is no tag {quoted(tag)}")
    return tag, document


def _tasks_in(folder: Path) -> Path | None:
    return next((path for one in ("tasks", ".") if (path := folder / one / FILE).is_file()), None)


def _tag(document: Located, files: Files, problems: Problems) -> tuple[str, Located]:
    """Return the current tag and what is in it; a file without tags is all that there is."""
    tags = _tags(document)
    if tags is None:
        return "", document
    if not tags:
        message = "expected an object with tasks, or one with a tag such as master that has tasks"
        problems.note(document.line, "", message)
        return "", document
    current = words(opened("state.json", files[STATE]).document, "currentTag") if STATE in files else ""
    if current and current not in tags:
        message = f"state.json names the tag {quoted(current)}, which is not here"
        problems.warn(document.line, "", message)
    tag = next((one for one in (current, MAIN) if one in tags), next(iter(tags)))
    others = [f"{one} ({count} open)" for one in tags if one != tag and (count := _open(tags[one]))]
    if others:
        switch = "`task-master use-tag NAME` chooses another one"
        problems.warn(
            tags[tag].line, tag, f"Loopwright reads this tag only, not {', '.join(others)}: {switch}"
        )
    return tag, tags[tag]


def _tags(document: Located) -> dict[str, Located] | None:
    """Return what is in each tag; None if the file has no tags."""
    if isinstance(inner(document, "tasks"), Located) or not isinstance(document.value, dict):
        return None
    return {key: one for key, one in document.value.items() if isinstance(_tasks_of(one), list)}


def _tasks_of(found: Located) -> object:
    held = inner(found, "tasks") if isinstance(found.value, dict) else None
    return held.value if held is not None else None


def _open(tag: Located) -> int:
    marks = [standing(one)[0] for one in tables(inner(tag, "tasks"))]
    return sum(mark not in (Mark.DONE, Mark.SKIPPED) for mark in marks)


def _items(holder: Located, problems: Problems) -> tuple[Item, ...]:
    return read_items(holder, ("tasks",), problems).items if not problems.count else ()


def _without_subtasks(item: Item) -> Item:
    """Return the item with each dependency on a subtask (`3.2`) turned into one on its task."""
    held = inner(item.found, "dependencies")
    if held is None or not isinstance(held.value, list):
        return item
    named = [Located(one.value, one.line, one.text.partition(".")[0]) for one in held.value]
    others = [one for one in named if one.text != item.key]
    found = dict(item.found.value) if isinstance(item.found.value, dict) else {}
    found["dependencies"] = Located(others, held.line)
    return Item(
        key=item.key,
        found=Located(found, item.found.line),
        place=item.place,
        title=item.title,
        group=item.group,
    )


def _task(item: Item, depends_on: tuple[str, ...], problems: Problems) -> PlannedTask:
    said = criteria(item)
    mark, reason = (Mark.SKIPPED, "") if _is_deferred(item.found) else standing(item.found)
    return PlannedTask(
        key=item.key,
        title=item.title,
        description=_described(item, with_status=True),
        criteria=said,
        acceptance=acceptance(said),
        depends_on=depends_on,
        priority=int(min(max(priority(item, _MEDIUM, problems), 0), 1000)),
        mark=mark,
        reason=reason,
        line=line_of(item.found, "id"),
    )


def _is_deferred(found: Located) -> bool:
    """Return whether the user put a task off: it is neither work to do now nor given up."""
    return words(found, "status").strip().casefold() == _DEFERRED


def _is_settled(found: Located) -> bool:
    """Return whether a subtask needs no work now: it is done, cancelled or deferred."""
    return _is_deferred(found) or mark_of(words(found, "status")) in (Mark.DONE, Mark.SKIPPED)


def _tell_deferred(items: Sequence[Item], problems: Problems) -> None:
    deferred = [item for item in items if _is_deferred(item.found)]
    if deferred:
        shown = ", ".join(item.key for item in deferred[:_NAMED]) + (", …" if len(deferred) > _NAMED else "")
        line = line_of(deferred[0].found, "status")
        told = f"deferred tasks are skipped: {shown}; set the status of one to pending to have it done"
        problems.warn(line, f"{deferred[0].place}.status", told)


def _described(item: Item, *, with_status: bool) -> str:
    """Return what the task says, with its subtasks; without which of them are settled."""
    steps = "\n".join(_steps(item, with_status=with_status))
    parts = (description(item), f"Subtasks:\n\n{steps}" if steps else "")
    return "\n\n".join(part for part in parts if part)


def _steps(item: Item, *, with_status: bool) -> Iterator[str]:
    for one in tables(inner(item.found, "subtasks")):
        number = words(one, "id").removeprefix(f"{item.key}.")
        parts = (str(plain(one, key, "")).strip() for key in ("description", "details", "testStrategy"))
        more = "".join(f"\n  {line}" for part in parts for line in part.splitlines())
        settled = f" ({words(one, 'status').strip()}: leave it)" if with_status and _is_settled(one) else ""
        yield f"- {item.key}.{number} {words(one, 'title')}{settled}{more}"


def _finish(edits: JsonEdits, task: Item, word: str) -> None:
    """Mark the subtasks of a finished task as done; those that were settled before keep their status."""
    for one in tables(inner(task.found, "subtasks")):
        if not _is_settled(one):
            edits.put(one, "status", word)
