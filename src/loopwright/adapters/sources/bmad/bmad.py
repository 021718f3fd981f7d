"""A BMAD story, whose tasks are under *Tasks / Subtasks*, or the stories of a sprint-status.yaml."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final

from loopwright.adapters.sources.bmad.sprint import SPRINTS, parse_sprint, sprint_files, write_sprint
from loopwright.adapters.sources.bmad.story import (
    TASKS,
    acceptance_criteria,
    is_whole,
    parse_whole,
    status_of,
    write_whole,
)
from loopwright.adapters.sources.checklists.entries import Entry, boxed
from loopwright.adapters.sources.checklists.source import MAX_CONTEXT, ChecklistSource
from loopwright.adapters.sources.checklists.tasks import bounded
from loopwright.adapters.sources.lists.status_words import mark_of
from loopwright.adapters.sources.spec.plan_format import MAX_CRITERION
from loopwright.adapters.sources.text.criteria import acceptance
from loopwright.adapters.sources.text.markdown import Markdown, read_markdown
from loopwright.adapters.sources.text.plan_file import content as content_of
from loopwright.adapters.sources.text.problems import Problems, Unreadable
from loopwright.adapters.sources.text.reading import start_of, without_code
from loopwright.adapters.sources.text.titles import plain
from loopwright.config.nearest import quoted
from loopwright.ports import Files, Mark, PlannedTask, PlannedWork, Progress

_SUFFIX: Final = ".story.md"
_TASKS: Final = frozenset({"tasks / subtasks", "tasks/subtasks", "tasks & subtasks", "tasks and subtasks"})
_SHORT: Final = frozenset({"tasks", "subtasks", "task list", "dev tasks"})
_TOLD: Final = ("Story", "Acceptance Criteria", "Dev Notes", "Testing")
_TRANSLATED: Final = re.compile(rf"\**(?:{'|'.join(TASKS)})[ \t]*(?:/|&)", re.IGNORECASE)
_HEADING: Final = re.compile(
    r"(?m)^#{2,4}[ \t]+\**(?:Tasks(?:[ \t]*(?:/|&|and)[ \t]*Subtasks)?\**[ \t]*:?[ \t]*$"
    rf"|(?:{'|'.join(TASKS)})[ \t]*(?:/|&))",
    re.IGNORECASE,
)
_STORY: Final = re.compile(
    r"(?m)^#{1,2}[ \t]+(?:\**User )?\**Story(?:[ \t-]+[\w.-]{1,20})?(?:[ \t]*:|[ \t]+[–—-]|[ \t]*$)",
    re.IGNORECASE,
)
_REFERS: Final = re.compile(r"\(ACs?[ \t]*[:#]?[ \t]*([^()]{1,60})\)", re.IGNORECASE)
_NUMBER: Final = re.compile(r"[0-9]{1,3}")


class BmadSource(ChecklistSource):
    """Reads a story or a sprint, ticks the boxes of the story, and writes the status of stories in the sprint."""

    kind = "bmad"
    format_name = "BMAD"
    usual_places = (
        "_bmad-output/implementation-artifacts/sprint-status.yaml", "docs/sprint-artifacts/sprint-status.yaml",
        "docs/stories/sprint-status.yaml", "docs/sprint-status.yaml", "docs/stories/*.story.md",
    )  # fmt: skip
    file_name = "sprint-status.yaml"
    beside: ClassVar = (
        "../prd.md",
        "../architecture.md",
        "../planning-artifacts/*.md",
        "../epics.md",
        "epics.md",
    )

    def recognises(self, place: Path) -> bool:
        """Take a story, a sprint-status.yaml, and the folder that it is in."""
        if place.is_dir():
            return (place / self.file_name).is_file()
        return (place.name.casefold() in SPRINTS and place.is_file()) or super().recognises(place)

    def is_like(self, file: Path) -> bool:
        """Take a Markdown file that is a story and has a section for its tasks."""
        start = without_code(start_of(file))
        is_story = file.name.casefold().endswith(_SUFFIX) or _STORY.search(start) is not None
        return is_story and (_HEADING.search(start) is not None or is_whole(start))

    def files(self, place: Path) -> Files:
        """Return the story, or the sprint with the stories that are beside it."""
        file = place / self.file_name if place.is_dir() else place
        return sprint_files(file) if file.name.casefold() in SPRINTS else super().files(file)

    def status_files(self, files: Files) -> tuple[str, ...]:
        """Return the story, or the sprint alone: its stories are only read."""
        return tuple(files)[:1]

    def finished(self, place: Path) -> str:
        """Return that the sprint calls a story done which does not say itself how far it is."""
        sprints = (place.with_name(name) for name in SPRINTS)
        if place.is_dir() or place.name.casefold() in SPRINTS or _says_status(place):
            return ""
        said = re.compile(rf"(?m)^[ \t]+{re.escape(place.stem)}[ \t]*:[ \t]*[\"']?(?:done|completed?)\b")
        name = next((one.name for one in sprints if one.is_file() and said.search(start_of(one))), "")
        return f"{name} calls this story done" if name else ""

    def parse(self, files: Files, name: str) -> PlannedWork:
        """Return the tasks of a story, or the stories of a sprint."""
        if _is_sprint(files):
            return parse_sprint(files, name)
        content = next(iter(files.values()))
        if _is_whole(content):
            return parse_whole(content, name)
        work = super().parse(files, name)
        problems = Problems(name)
        markdown = read_markdown(content)
        tasks = _told(markdown, work.tasks, problems)
        return replace(work, tasks=tuple(tasks), notes=(*work.notes, *problems.notes))

    def written(self, files: Files, progress: Progress) -> Files:
        """Return the story with its boxes, or the sprint with the status of its stories."""
        if _is_sprint(files):
            return write_sprint(files, progress)
        file, content = next(iter(files.items()))
        return (
            write_whole(file, content, progress) if _is_whole(content) else super().written(files, progress)
        )

    def entries(self, markdown: Markdown) -> list[Entry]:
        """Return the outermost boxes under *Tasks / Subtasks*: every other box is a check list."""
        wanted = _sections(markdown, _TASKS) or _sections(markdown, _SHORT)
        return boxed(markdown, within=lambda at: any(one in wanted for one in markdown.around(at)))

    def may_have_tasks(self, markdown: Markdown, section: int) -> bool:
        """Return whether a section is *Tasks / Subtasks* or inside of it."""
        wanted = _sections(markdown, _TASKS) or _sections(markdown, _SHORT)
        return any(one in wanted for one in markdown.around(section))

    def context(self, markdown: Markdown, entries: Sequence[Entry]) -> str:
        """Return the story, its acceptance criteria and the notes for developers."""
        del entries
        wanted = {title.casefold() for title in _TOLD}
        parts = [
            markdown.text(section.line, section.last)
            for section in markdown.sections
            if plain(section.title) in wanted and section.level == 2
        ]
        return bounded("\n\n".join(parts), MAX_CONTEXT)


def _says_status(story: Path) -> bool:
    try:
        return bool(status_of(read_markdown(content_of(story)))[1])
    except Unreadable:
        return True


def _is_whole(content: bytes) -> bool:
    return is_whole(content.decode("utf-8", "replace").replace("\r\n", "\n"))


def _told(markdown: Markdown, tasks: Sequence[PlannedTask], problems: Problems) -> list[PlannedTask]:
    """Return the tasks with the acceptance criteria that they name, and with what the story's status says."""
    found = list(acceptance_criteria(markdown))
    named = [_with_criteria(task, found) for task in tasks]
    line, status = status_of(markdown)
    if not status or all(task.mark in (Mark.DONE, Mark.SKIPPED) for task in named):
        return named
    if mark_of(status) is Mark.DONE:
        reason = f"the status of the story is {quoted(status)}, but this task is open: correct one of them"
        return [
            task if task.mark is Mark.DONE else replace(task, mark=Mark.BLOCKED, reason=reason)
            for task in named
        ]
    if status.casefold() in ("draft", "blocked"):
        problems.warn(line + 1, "", f"the status of the story is {quoted(status)}")
    return named


def _is_sprint(files: Files) -> bool:
    return next(iter(files), "").casefold().endswith((".yaml", ".yml"))


def _sections(markdown: Markdown, titles: frozenset[str]) -> set[int]:
    found = {at for at, section in enumerate(markdown.sections) if plain(section.title) in titles}
    translated = titles is _TASKS and not found
    return found | {
        at for at, section in enumerate(markdown.sections) if translated and _TRANSLATED.match(section.title)
    }


def _with_criteria(task: PlannedTask, found: Sequence[tuple[str, str]]) -> PlannedTask:
    refers = _REFERS.search(task.title)
    if refers is None:
        return task
    named = set(_NUMBER.findall(refers[1]))
    said = tuple(words[:MAX_CRITERION] for number, words in found if number in named and words)
    title = _REFERS.sub("", task.title).strip() or task.title
    return replace(task, title=title, criteria=(*task.criteria, *said), acceptance=acceptance(said))
