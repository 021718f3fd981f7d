"""A source that is one Markdown file of tasks, with documents beside it."""

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import ClassVar, Final

from loopwright.adapters.sources.checklists.damaged import tell_damaged
from loopwright.adapters.sources.checklists.entries import Entry, is_aside, open_asides
from loopwright.adapters.sources.checklists.tasks import (
    Prose,
    bounded,
    outer_section,
    planned_tasks,
    unique_keys,
)
from loopwright.adapters.sources.spec.plan_format import MAX_TITLE
from loopwright.adapters.sources.text.markdown import MARKS, Markdown, read_markdown
from loopwright.adapters.sources.text.markdown_edits import MarkdownEdits
from loopwright.adapters.sources.text.meaning import fingerprint, without_marks
from loopwright.adapters.sources.text.problems import Problems, Unreadable, refuse
from loopwright.adapters.sources.text.reading import located_at, read_file
from loopwright.adapters.sources.text.sections import status_in
from loopwright.adapters.sources.text.titles import is_manual
from loopwright.config.nearest import quoted
from loopwright.core.values.errors import BadPlan
from loopwright.ports import Files, Mark, PlannedTask, PlannedWork, Progress, Source

MAX_TASKS: Final = 5_000
MAX_CONTEXT: Final = 12_000
MAX_DOCUMENTS: Final = 20
_SIGN: Final = " ✅"
"""What a heading without boxes gets when its task is done."""
_NEAR: Final = 12
"""How many lines at its top may say how far a file is."""
_CALLED: Final = re.compile(
    r"(?:implementation[ \t]+)?(?:tasks?|plan)(?:[ \t]+list)?[ \t]*(?:[:–—-][ \t]*|$)", re.IGNORECASE
)
_TICK: Final = re.compile(r"[ \t]*✅[ \t]*")


class ChecklistSource(Source):
    """Reads the tasks of one Markdown file and ticks their boxes."""

    file_name: ClassVar[str] = "tasks.md"
    """What the file is called in a folder of this form."""
    beside: ClassVar[tuple[str, ...]] = ()
    """Glob patterns of the documents beside the file that agents should read."""
    marks: ClassVar[Mapping[str, Mark]] = MARKS
    """What each sign in a box says."""
    signs: ClassVar[Mapping[Mark, str]] = {Mark.OPEN: " ", Mark.DONE: "x"}
    """What is written into a box. A mark without a sign leaves the box open: the tool of the form knows no other."""

    @abstractmethod
    def is_like(self, file: Path) -> bool:
        """Return whether a file is in this form."""

    @abstractmethod
    def entries(self, markdown: Markdown) -> list[Entry]:
        """Return the tasks of a file."""

    def recognises(self, place: Path) -> bool:
        """Take the file, and the folder that it is in."""
        file = self.canonical(place)
        return file.suffix.casefold() == ".md" and file.is_file() and self.is_like(file)

    def canonical(self, place: Path) -> Path:
        """Return the file of a folder."""
        return place / self.file_name if place.is_dir() else place

    def files(self, place: Path) -> Files:
        """Return the file of tasks."""
        file = self.canonical(place)
        return {file.name: read_file(file)}

    def documents(self, place: Path) -> tuple[str, ...]:
        """Return the documents of the form that are beside the file."""
        folder = place if place.is_dir() else place.parent
        own = self.file_name if place.is_dir() else place.name
        found = (path for pattern in self.beside for path in sorted(folder.glob(pattern)) if path.is_file())
        return tuple(
            dict.fromkeys(path.relative_to(folder).as_posix() for path in found if path.name != own)
        )[:MAX_DOCUMENTS]

    def parse(self, files: Files, name: str) -> PlannedWork:
        """Return the work, or raise `BadPlan` with located problems."""
        file, content = _only(files, self.file_name)
        shown = called(name, file)
        markdown = _markdown(content, shown)
        problems = Problems(shown)
        entries = self.entries(markdown)
        self.check(markdown, entries, problems)
        refuse(shown, problems)
        keys = unique_keys(entries, markdown, problems)
        tasks = self.adjusted(planned_tasks(markdown, entries, keys, problems), name, problems)
        refuse(shown, problems)
        title = self.title(markdown) or _folder_name(name)
        context = self.context(markdown, entries)
        return PlannedWork(
            title=title[:MAX_TITLE],
            tasks=tuple(tasks),
            context=context,
            sha256=fingerprint(map(_without_status, tasks), title, _unmarked(context)),
            notes=problems.notes,
        )

    def check(self, markdown: Markdown, entries: Sequence[Entry], problems: Problems) -> None:
        """Take down what makes the file unusable, and what was guessed about it."""
        if not entries and status_in(line.text for line in markdown.lines[:_NEAR]) is Mark.DONE:
            problems.warn(1, "", "there is no task here, and the file says that it is finished")
        elif not entries:
            problems.note(
                1, "", "found no task here: write each as a line such as `- [ ] Add the login form`"
            )
        if len(entries) > MAX_TASKS:
            problems.note(entries[MAX_TASKS].line + 1, "", f"a file has at most {MAX_TASKS} tasks")
        tell_damaged(
            markdown, entries, problems, self.marks, lambda section: self.may_have_tasks(markdown, section)
        )
        for line, title in open_asides(markdown, entries, self.marks):
            problems.warn(line + 1, "", f"the boxes under {quoted(title)} are read as text, not as tasks")

    def may_have_tasks(self, markdown: Markdown, section: int) -> bool:
        """Return whether boxes of a section are tasks."""
        return not is_aside(markdown, section)

    def title(self, markdown: Markdown) -> str:
        """Return what the plan is called; empty if its heading says no more than `Tasks`."""
        return _CALLED.sub("", markdown.title, count=1) if _CALLED.match(markdown.title) else markdown.title

    def context(self, markdown: Markdown, entries: Sequence[Entry]) -> str:
        """Return the text above the first section that has tasks."""
        first = min((outer_section(markdown, entry) for entry in entries), default=0)
        line = max(markdown.sections[first].line, 0)
        return bounded(Prose(markdown, entries).text(markdown.front, line), MAX_CONTEXT)

    def adjusted(self, tasks: list[PlannedTask], name: str, problems: Problems) -> list[PlannedTask]:
        """Return the tasks with what the form says about all of them."""
        del name, problems
        return tasks

    def written(self, files: Files, progress: Progress) -> Files:
        """Return the file with the boxes that change."""
        file, content = _only(files, self.file_name)
        markdown = _markdown(content, file)
        entries = self.entries(markdown)
        edits = MarkdownEdits(markdown)
        used = (one.box for one in markdown.items if one.box is not None and one.mark is Mark.DONE)
        done = next(used, self.signs[Mark.DONE])
        for key, entry in zip(unique_keys(entries, markdown, Problems(file)), entries, strict=True):
            item = progress.items.get(key)
            if item is not None:
                self._tell(edits, markdown, entry, item.mark, done)
        changed = edits.content
        return {file: changed} if changed != content else {}

    def _tell(self, edits: MarkdownEdits, markdown: Markdown, entry: Entry, mark: Mark, done: str) -> None:
        wanted = mark if mark in self.signs else Mark.OPEN
        ends = Mark.DONE in (entry.mark, wanted)
        begins = Mark.RUNNING in self.signs and {entry.mark, wanted} == {Mark.OPEN, Mark.RUNNING}
        if entry.mark is wanted or not (ends or begins):
            return
        sign = done if wanted is Mark.DONE else self.signs[wanted]
        if entry.box is not None:
            edits.set_box(entry.box, sign)
        if not ends:
            return
        for line in entry.below:
            is_done = self.marks.get(markdown.lines[line].box or "") is Mark.DONE
            if is_done is not (wanted is Mark.DONE):
                edits.set_box(line, done if wanted is Mark.DONE else " ")
        if entry.box is None and (not entry.below or wanted is not Mark.DONE):
            text = edits.text(entry.line).rstrip()
            bare = text.removesuffix(_SIGN)
            edits.replace(entry.line, f"{bare}{_SIGN}" if wanted is Mark.DONE else bare)


def called(name: str, file: str) -> str:
    """Return what the user calls one of the files."""
    path = PurePosixPath(name)
    if path.name == file:
        return name
    return str(path.with_name(file) if path.name.casefold().endswith(".md") else path / file)


def _only(files: Files, name: str) -> tuple[str, bytes]:
    if not files:
        raise BadPlan(name, (f"{name} is gone: restore it, or cancel the plan",))
    return next(iter(files.items()))


def _markdown(content: bytes, name: str) -> Markdown:
    try:
        return read_markdown(content)
    except Unreadable as broken:
        raise located_at(name, broken) from broken


def _folder_name(name: str) -> str:
    path = PurePosixPath(name)
    return (path.parent.name if path.suffix else path.name) or path.stem


def _unmarked(text: str) -> str:
    """Return a text as if nothing in it were done yet."""
    return _TICK.sub("", without_marks(text)).strip()


def _without_status(task: PlannedTask) -> PlannedTask:
    # Whether words contradict an open box depends on the box.
    return replace(
        task,
        description=_unmarked(task.description),
        section=_unmarked(task.section),
        manual=is_manual(task.title),
    )


__all__ = ["MAX_CONTEXT", "MAX_TASKS", "ChecklistSource", "called"]
