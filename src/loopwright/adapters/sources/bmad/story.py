"""What a BMAD story says about the whole of it, and a story without *Tasks / Subtasks*, which is one task."""

import re
from collections.abc import Iterator
from typing import Final

from loopwright.adapters.sources.lists.status_words import StatusWords, mark_of, waiting_reason
from loopwright.adapters.sources.spec.plan_format import MAX_CRITERION, MAX_DESCRIPTION, MAX_TITLE
from loopwright.adapters.sources.text.criteria import acceptance
from loopwright.adapters.sources.text.markdown import Kind, Markdown, read_markdown
from loopwright.adapters.sources.text.meaning import fingerprint
from loopwright.adapters.sources.text.problems import Unreadable
from loopwright.adapters.sources.text.reading import located_at
from loopwright.adapters.sources.text.titles import plain, plain_title
from loopwright.config.nearest import quoted
from loopwright.ports import Files, Mark, PlannedTask, PlannedWork, Progress

_STATUS: Final = re.compile(
    r"(?:[-*+][ \t]+)?(?:\*\*|__)?status(?:\*\*|__)?[ \t]*:(?:\*\*|__)?[ \t]*(.*)", re.IGNORECASE
)
_CODED: Final = re.compile(r"AC[- ]?([0-9]{1,3})\b[ \t]*[:.–-]*[ \t]*", re.IGNORECASE)
_READY: Final = frozenset({"draft", "drafted", "approved", "contexted"})
"""Words of BMAD for a story that is written and not begun."""
TASKS: Final = (
    "tareas",
    "tarefas",
    "tâches",
    "aufgaben",
    "taken",
    "attività",
    "zadania",
    "任务",
    "任務",
    "タスク",
    "задачи",
)
"""Tasks in other languages, as a heading such as `Tareas / Subtareas` has them."""
_MUST: Final = re.compile(r"(?im)^#{2,4}[ \t]+\**Acceptance Criteria\b")
_TASKS: Final = re.compile(
    rf"(?im)^#{{2,4}}[ \t]+\**(?:(?:sub)?tasks\b|task list|dev tasks|(?:{'|'.join(TASKS)})[ \t]*(?:/|&))"
)
_TITLE: Final = re.compile(r"(?m)^#[ \t]+\S")
_KEY: Final = "story"
_ABOUT: Final = (
    "status",
    "story info",
    "info",
    "metadata",
    "story metadata",
    "overview",
    "details",
    "story details",
)
"""Sections that may say what the status is."""
_CONTRADICTED: Final = "all of its acceptance criteria are ticked, but its status is {}: correct one of them"


def is_whole(text: str) -> bool:
    """Return whether a story has acceptance criteria and no section for its tasks."""
    return bool(_TITLE.search(text) and _MUST.search(text)) and _TASKS.search(text) is None


def parse_whole(content: bytes, name: str) -> PlannedWork:
    """Return the story as one task."""
    markdown = _read(content, name)
    section = next(one for one in markdown.sections if one.level == 1)
    mark, reason = _standing(markdown)
    said = tuple(words[:MAX_CRITERION] for _, words in acceptance_criteria(markdown) if words)
    at_status = _line(markdown)
    told = [line.text for at, line in enumerate(markdown.lines) if at != at_status]
    title = plain_title(section.title)[:MAX_TITLE]
    task = PlannedTask(
        key=_KEY,
        title=title,
        description=re.sub(r"\n{3,}", "\n\n", "\n".join(told)).strip()[:MAX_DESCRIPTION],
        criteria=said,
        acceptance=acceptance(said),
        mark=mark,
        reason=reason,
        line=section.line + 1,
    )
    note = f"{name}: the story has no section Tasks / Subtasks, so the whole of it is one task"
    return PlannedWork(title=title, tasks=(task,), sha256=fingerprint((task,), title), notes=(note,))


def write_whole(file: str, content: bytes, progress: Progress) -> Files:
    """Return the story with its status; one that says nothing gets a line for it below its title."""
    markdown = _read(content, file)
    line, status = status_of(markdown)
    item = progress.items.get(_KEY)
    if item is None or item.mark is _standing(markdown)[0]:
        return {}
    word = StatusWords([status] if status else ["in-progress"]).word(item.mark)
    lines = content.split(b"\n")
    ending = b"\r" if lines[0].endswith(b"\r") else b""
    if status:
        before, found, behind = lines[line].rpartition(status.encode())
        lines[line] = before + (word.encode() if found else b"") + behind
    else:
        title = next(one.line for one in markdown.sections if one.level == 1)
        lines[title + 1 : title + 1] = [ending, f"Status: {word}".encode() + ending]
    return {file: b"\n".join(lines)}


def _read(content: bytes, name: str) -> Markdown:
    try:
        return read_markdown(content)
    except Unreadable as broken:
        raise located_at(name, broken) from broken


def _line(markdown: Markdown) -> int:
    """Return the line of the status, which is not part of what is asked for; -1 without one."""
    line, status = status_of(markdown)
    return line if status else -1


def _standing(markdown: Markdown) -> tuple[Mark, str]:
    """Return how far a story is by its status, and by the boxes of its acceptance criteria."""
    _, status = status_of(markdown)
    mark = Mark.OPEN if status.casefold() in _READY else mark_of(status)
    if mark is None or mark is Mark.BLOCKED:
        return Mark.BLOCKED, waiting_reason(status)
    boxes = [
        item.box
        for item in markdown.items
        if item.box is not None
        and plain(markdown.sections[item.section].title).startswith("acceptance criteria")
    ]
    is_met = bool(boxes) and all(box in ("x", "X") for box in boxes)
    if not is_met or mark is Mark.DONE:
        return mark, ""
    return (Mark.BLOCKED, _CONTRADICTED.format(quoted(status))) if status else (Mark.DONE, "")


def status_of(markdown: Markdown) -> tuple[int, str]:
    """Return the line and the word of the story's status: `Status: done`, or the first line below `## Status`."""
    for at, line in enumerate(markdown.lines[: markdown.front]):
        if (match := _STATUS.match(line.text.strip())) is not None:
            return at, match[1].strip(" \t'\"")
    wanted = ("", *_ABOUT, *_story_titles(markdown))
    for section in markdown.sections:
        if section.level > 3 or plain(section.title) not in wanted:
            continue
        for at in range(max(section.line + 1, 0), section.end):
            line = markdown.lines[at]
            if line.kind not in (Kind.TEXT, Kind.BULLET):
                continue
            match = _STATUS.match(line.text.strip())
            if match is not None or plain(section.title) == "status":
                said = match[1] if match is not None else line.words
                return at, re.split(r"[(,;]| [-–—] ", said.replace("*", "").replace("`", ""))[0].strip()
    return 0, ""


def _story_titles(markdown: Markdown) -> tuple[str, ...]:
    return tuple(plain(section.title) for section in markdown.sections if section.level == 1)


def acceptance_criteria(markdown: Markdown) -> Iterator[tuple[str, str]]:
    """Return the number and the words of each acceptance criterion: a list item, or a heading such as `AC1: …`."""
    for at, section in enumerate(markdown.sections):
        around = [plain(markdown.sections[one].title) for one in markdown.around(at)]
        if not any(title.startswith("acceptance criteria") for title in around):
            continue
        coded = _CODED.match(section.title)
        if coded is not None:
            yield coded[1], plain_title(section.title[coded.end() :])
    number = 0
    for item in markdown.items:
        title = plain(markdown.sections[item.section].title)
        if item.parent is None and title.startswith("acceptance criteria"):
            number += 1
            words = plain_title(item.words)
            coded = _CODED.match(words)
            yield (coded[1], words[coded.end() :]) if coded is not None else (str(number), words)
