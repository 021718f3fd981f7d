"""The tasks of Backlog.md: one Markdown file each, or a folder of them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import ClassVar, Final

from loopwright.adapters.sources.checklists.source import called
from loopwright.adapters.sources.checklists.tasks import bounded
from loopwright.adapters.sources.spec.plan_format import MAX_CRITERION, MAX_DESCRIPTION, MAX_ID, MAX_TITLE
from loopwright.adapters.sources.text.criteria import acceptance
from loopwright.adapters.sources.text.located import Located, plain, read_yaml, words
from loopwright.adapters.sources.text.markdown import Kind, Markdown, read_markdown
from loopwright.adapters.sources.text.markdown_edits import MarkdownEdits
from loopwright.adapters.sources.text.meaning import fingerprint
from loopwright.adapters.sources.text.problems import Problems, Unreadable, refuse
from loopwright.adapters.sources.text.reading import located_at, read_file, start_of
from loopwright.adapters.sources.text.titles import is_manual, plain_title, slug
from loopwright.adapters.sources.text.titles import plain as plain_words
from loopwright.config.nearest import quoted
from loopwright.core.policy.graph import find_cycle
from loopwright.core.values.errors import BadPlan
from loopwright.ports import Files, Mark, PlannedTask, PlannedWork, Progress, Source

_LOOK: Final = 20_000
_MOST_FRONT: Final = 80
"""How many lines the front matter of a task may have."""
_FOLDERS: Final = ("tasks", "completed", "drafts")
_TASKS: Final = "tasks"
_BACKLOGS: Final = ("backlog", ".backlog")
_CONFIG: Final = ("config.yml", "config.yaml")
_MAX_FILES: Final = 5_000
_STATUSES: Final = {
    "backlog": Mark.OPEN, "open": Mark.OPEN, "new": Mark.OPEN, "next": Mark.OPEN, "planned": Mark.OPEN,
    "proposed": Mark.OPEN, "ready": Mark.OPEN, "to do": Mark.OPEN, "todo": Mark.OPEN, "": Mark.OPEN,
    "doing": Mark.RUNNING, "in progress": Mark.RUNNING, "started": Mark.RUNNING, "wip": Mark.RUNNING,
    "closed": Mark.DONE, "complete": Mark.DONE, "completed": Mark.DONE, "done": Mark.DONE, "finished": Mark.DONE,
    "merged": Mark.DONE, "released": Mark.DONE,
    "archived": Mark.SKIPPED, "canceled": Mark.SKIPPED, "cancelled": Mark.SKIPPED, "rejected": Mark.SKIPPED,
    "won't do": Mark.SKIPPED, "wontfix": Mark.SKIPPED,
    "blocked": Mark.BLOCKED, "on hold": Mark.BLOCKED,
}  # fmt: skip
_WRITTEN: Final = {Mark.OPEN: "To Do", Mark.RUNNING: "In Progress", Mark.DONE: "Done"}
_PRIORITIES: Final = {"critical": 10, "highest": 10, "high": 25, "medium": 50, "low": 75, "lowest": 90}
_CRITERIA: Final = ("acceptance criteria", "definition of done")
_NOT_TOLD: Final = ("final summary", "comments")
_NUMBER: Final = re.compile(r"#[0-9]{1,4}[ \t]+")
_DIGITS: Final = re.compile(r"[0-9]+")
_AT: Final = re.compile(
    r"(?m)^([ \t]*(?:assignee|reporter|due_date):[ \t]*|[ \t]*-[ \t]+)(@[^\s\"'#]+)[ \t]*$"
)
_LIST_AT: Final = re.compile(r"(?m)^[ \t]*(?:assignee|reporter):[ \t]*\[.*\][ \t]*$")


class BacklogMdSource(Source):
    """Reads one task, or every task of a backlog."""

    kind = "backlog_md"
    format_name = "Backlog.md"
    usual_places: ClassVar = ("backlog/tasks", ".backlog/tasks")

    def recognises(self, place: Path) -> bool:
        """Take a Markdown file with an id and a status in its front matter, and a folder of such files."""
        if place.is_dir():
            folder = _folder(place)
            return folder.name == _TASKS and any(
                self.recognises(one) for one in sorted(folder.glob("*.md"))[:20]
            )
        if place.suffix.casefold() != ".md" or not place.is_file():
            return False
        keys = _front_keys(start_of(place)[:_LOOK])
        # Other documents have an id and a status as well.
        own = place.absolute().parent.name in _FOLDERS or "created_date" in keys
        return own and {"id", "status"} <= keys

    def canonical(self, place: Path) -> Path:
        """Return the backlog of its folder of tasks: its configuration is there."""
        is_inside = place.name == _TASKS and place.is_dir() and place.parent.name in _BACKLOGS
        return place.parent if is_inside else place

    def files(self, place: Path) -> Files:
        """Return the tasks, and the configuration that names their statuses."""
        if not place.is_dir():
            return {place.name: read_file(place)}
        found = sorted(_folder(place).glob("*.md"))
        if not found or len(found) > _MAX_FILES:
            raise BadPlan(place.name, (f"expected between 1 and {_MAX_FILES} tasks here: name one of them",))
        config = [place / name for name in _CONFIG if (place / name).is_file()]
        return {path.relative_to(place).as_posix(): read_file(path) for path in (*found, *config[:1])}

    def status_files(self, files: Files) -> tuple[str, ...]:
        """Return the tasks."""
        return tuple(name for name in files if name.casefold().endswith(".md"))

    def parse(self, files: Files, name: str) -> PlannedWork:
        """Return the work, or raise `BadPlan` with located problems."""
        ends = _last_status(files)
        gathered: list[Problems] = []
        found: list[tuple[tuple[float, ...], PlannedTask]] = []
        keys = _Keys()
        for file in self.status_files(files):
            problems = Problems(called(name, file))
            gathered.append(problems)
            task = _task(files[file], file, ends, problems, alone=len(files) == 1)
            if task is not None:
                key = keys.of(task[1].key, file)
                if key != task[1].key:
                    told = f"another file is the task {quoted(task[1].key)} too, so this one is called {quoted(key)}"
                    problems.warn(1, "id", told)
                found.append((task[0], replace(task[1], key=key)))
        found.sort(key=lambda one: one[0])
        tasks = _graph([task for _, task in found], keys.known, gathered[-1])
        if not tasks:
            gathered[-1].note(1, "", "found no task here: a task has an id and a status in its front matter")
        refuse(name, *gathered)
        title = tasks[0].title if len(tasks) == 1 else PurePosixPath(name).name
        notes = tuple(note for one in gathered for note in one.notes)
        return PlannedWork(title=title, tasks=tuple(tasks), sha256=fingerprint(tasks), notes=notes[:50])

    def written(self, files: Files, progress: Progress) -> Files:
        """Return the tasks whose status changes."""
        changed: dict[str, bytes] = {}
        ends = _last_status(files)
        keys = _Keys()
        for file in self.status_files(files):
            markdown = _markdown(files[file], file)
            front = _front(markdown)
            own = words(front, "id")[:MAX_ID] if front is not None else ""
            item = progress.items.get(keys.of(own, file)) if own else None
            if front is None or item is None:
                continue
            present = _mark(words(front, "status"), ends)
            wanted = item.mark if item.mark in _WRITTEN else Mark.OPEN if present is Mark.DONE else present
            if wanted is not present and wanted in _WRITTEN:
                edits = MarkdownEdits(markdown)
                edits.set_front("status", ends if wanted is Mark.DONE and ends else _WRITTEN[wanted])
                changed[file] = edits.content
        return changed


class _Keys:
    """Gives each file its key: its id, or if another file has that too, with the name of the file."""

    def __init__(self) -> None:
        self.known: dict[str, list[str]] = {}
        """By the id in lower case."""

    def of(self, own: str, file: str) -> str:
        """Return the key of a file with this id."""
        taken = self.known.setdefault(own.casefold(), [])
        key = f"{own}~{slug(PurePosixPath(file).stem)}"[:MAX_ID] if taken else own
        taken.append(key)
        return key


def _front_keys(text: str) -> set[str]:
    """Return the keys of a file's front matter; none if it has no front matter."""
    first, *lines = text.removeprefix("\ufeff").split("\n", _MOST_FRONT + 2)
    if first.rstrip() != "---":
        return set()
    keys: set[str] = set()
    for line in lines[:_MOST_FRONT]:
        if line.startswith("---"):
            return keys
        keys.add(line.partition(":")[0].strip())
    return set()


def _folder(place: Path) -> Path:
    return place if place.name == _TASKS else place / _TASKS


def _markdown(content: bytes, name: str) -> Markdown:
    try:
        return read_markdown(content)
    except Unreadable as broken:
        raise located_at(name, broken) from broken


def _front(markdown: Markdown) -> Located | None:
    """Return the front matter; Backlog.md takes `@name` without quotes, which is not YAML."""
    text = "\n".join(line.text for line in markdown.lines[1 : max(markdown.front - 1, 1)])
    text = _LIST_AT.sub("", _AT.sub(r'\1"\2"', text))
    return read_yaml(text) if text.strip() else None


def _last_status(files: Files) -> str:
    """Return the last status of the configuration, which is the one of finished tasks."""
    for name in _CONFIG:
        if name in files:
            try:
                statuses = plain(read_yaml(files[name].decode("utf-8-sig", "replace")), "statuses", [])
            except Unreadable:
                return ""  # the usual statuses count
            return str(statuses[-1]) if isinstance(statuses, list) and statuses else ""
    return ""


def _mark(status: str, ends: str) -> Mark:
    plain_status = " ".join(status.casefold().replace("-", " ").replace("_", " ").split()).strip("✔✅○◒ ")
    if ends and status.casefold() == ends.casefold():
        return Mark.DONE
    return _STATUSES.get(plain_status, Mark.BLOCKED)


def _task(
    content: bytes, file: str, ends: str, problems: Problems, *, alone: bool
) -> tuple[tuple[float, ...], PlannedTask] | None:
    try:
        markdown = read_markdown(content)
        front = _front(markdown)
    except Unreadable as broken:
        problems.note(broken.line or 1, "", broken.message)
        return None
    key = words(front, "id")[:MAX_ID] if front is not None else ""
    if front is None or not key:
        if alone:
            problems.note(1, "", "the front matter has no id: it says which task this is")
        return None  # a README in the folder is not a task
    status = words(front, "status")
    mark = _mark(status, ends)
    reason = f"its status is {quoted(status)}" if mark is Mark.BLOCKED else ""
    criteria = tuple(_criteria(markdown))
    title = plain_title(words(front, "title")) or PurePosixPath(file).stem
    needs = plain(front, "dependencies", [])
    priority = words(front, "priority").casefold()
    ordinal = plain(front, "ordinal")
    place = float(ordinal) if isinstance(ordinal, int | float) else 1e9
    return (place, *(float(one) for one in _DIGITS.findall(key)[:4])), PlannedTask(
        key=key,
        title=title[:MAX_TITLE],
        description=bounded(_description(markdown), MAX_DESCRIPTION),
        criteria=tuple(one[:MAX_CRITERION] for one in criteria),
        acceptance=acceptance(criteria),
        depends_on=tuple(str(one) for one in needs) if isinstance(needs, list) else (),
        manual=is_manual(title),
        priority=_PRIORITIES.get(priority, 50),
        phase=words(front, "milestone"),
        type=words(front, "type"),
        mark=mark,
        reason=reason,
        line=1,
    )


def _criteria(markdown: Markdown) -> list[str]:
    return [
        _NUMBER.sub("", plain_title(item.words), count=1)
        for item in markdown.items
        if item.parent is None and plain_words(markdown.sections[item.section].title).startswith(_CRITERIA)
    ]


def _description(markdown: Markdown) -> str:
    """Return the task's text without comments, and without what was written after the work."""
    left_out = {
        at
        for section in markdown.sections
        if plain_words(section.title) in _NOT_TOLD
        for at in range(section.line, section.end)
    }
    lines = (
        line.text
        for at, line in enumerate(markdown.lines)
        if at >= markdown.front and at not in left_out and line.kind is not Kind.COMMENT
    )
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _graph(
    tasks: Sequence[PlannedTask], known: Mapping[str, Sequence[str]], problems: Problems
) -> list[PlannedTask]:
    """Return the tasks with the dependencies that are here; others are finished, or in another folder."""
    result = []
    missing: dict[str, None] = {}
    for task in tasks:
        needs = tuple(dict.fromkeys(key for one in task.depends_on for key in known.get(one.casefold(), ())))
        missing |= {
            one: None for one in task.depends_on if one.casefold() not in known and task.mark is not Mark.DONE
        }
        result.append(replace(task, depends_on=tuple(one for one in needs if one != task.key)))
    if missing:
        shown = ", ".join(list(missing)[:5]) + (", …" if len(missing) > 5 else "")
        problems.warn(1, "", f"tasks depend on {shown}, which are not here: they count as finished")
    cycle = find_cycle({task.key: task.depends_on for task in result})
    if cycle is not None:
        problems.note(1, "dependencies", f"these tasks wait for each other: {' -> '.join(cycle[:20])}")
    return result
