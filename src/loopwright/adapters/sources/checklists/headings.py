"""Headings that are tasks, such as `### Task 3: Title`, with the boxes below them."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from loopwright.adapters.sources.checklists.entries import (
    Entry,
    boxed,
    manual_steps,
    named,
    without_steps,
)
from loopwright.adapters.sources.text.markdown import MARKS, Item, Markdown
from loopwright.adapters.sources.text.sections import (
    own_text,
    says_done,
    status_in,
    without_finished,
)
from loopwright.adapters.sources.text.titles import is_manual, plain_title
from loopwright.ports import Mark

TASK: Final = re.compile(
    r"\W{0,4}(?:(?:Task|Tarea|Tarefa|Aufgabe|Tâche|Zadanie|Задача)[ \t]+#?|(?:任务|任務|タスク|작업|태스크)[ \t]?)"
    r"[A-Z]?[0-9]{1,4}(?:[.-][0-9]{1,4}){0,3}[a-z]?\b",
    re.IGNORECASE,
)
_FEW: Final = 2


def is_task_heading(title: str) -> bool:
    """Return whether a heading is called like a task: `Task 3: Title`."""
    return TASK.match(title) is not None


def boxed_or_headed(markdown: Markdown, marks: Mapping[str, Mark] = MARKS) -> list[Entry]:
    """Return the outermost boxes; if most of them are below headings such as `Task 3`, the headings are the tasks."""
    found = boxed(markdown, marks=marks)
    headings = headed(markdown, is_task_heading, marks=marks)
    tasks = [one for one in headings if one.box is None]
    inside = {line for one in tasks for line in one.below}
    below = sum(one.line in inside for one in found)
    return headings if len(tasks) >= _FEW and 2 * below >= len(found) else found


def headed(
    markdown: Markdown, is_task: Callable[[str], bool], *, marks: Mapping[str, Mark] = MARKS
) -> list[Entry]:
    """Return the headings that are tasks; a task is done when all boxes below it are ticked or its heading says so."""
    boxes = [one for one in markdown.items if one.box in marks]
    starts = [one.line for one in boxes]
    found: list[Entry] = []
    until = 0
    for at, section in enumerate(markdown.sections):
        if section.line < until or section.line < 0 or not is_task(section.title):
            continue
        until = section.last
        below = boxes[bisect_left(starts, section.line) : bisect_left(starts, section.last)]
        entry = _headed_entry(markdown, at, below, marks)
        steps = [] if is_manual(entry.title) else list(manual_steps(markdown, entry, below, marks))
        if steps:
            left_out = without_steps(entry, steps).left_out
            kept = [one for one in below if one.line not in left_out]
            entry = without_steps(_headed_entry(markdown, at, kept, marks), steps)
        found += [entry, *steps]
    return found


def _headed_entry(markdown: Markdown, at: int, boxes: Sequence[Item], marks: Mapping[str, Mark]) -> Entry:
    section = markdown.sections[at]
    words = markdown.lines[section.line].words
    parts = named(without_finished(words))
    said = status_in(own_text(markdown, section))
    is_done = bool(boxes) and all(marks[one.box or ""] in (Mark.DONE, Mark.SKIPPED) for one in boxes)
    if says_done(words) or said is Mark.DONE:
        is_done = True
    last = section.last
    while last > section.line + 1 and not markdown.lines[last - 1].text.strip().strip("-"):
        last -= 1
    return Entry(
        line=section.line,
        end=last,
        section=at,
        words=words,
        name=parts.name,
        title=parts.title,
        tags=parts.tags,
        mark=Mark.DONE if is_done else Mark.OPEN,
        below=tuple(one.line for one in boxes),
        criteria=tuple(_criteria(markdown, boxes)),
    )


def _criteria(markdown: Markdown, boxes: Sequence[Item]) -> Iterator[str]:
    """Return the boxes below a label or heading that is about acceptance."""
    starts = [label.line for label in markdown.labels] if boxes else []
    for item in boxes:
        above = bisect_left(starts, item.line) - 1
        label = markdown.labels[above] if above >= 0 and item.line < markdown.labels[above].end else None
        title = label.title if label is not None else markdown.sections[item.section].title
        if re.match(
            r"\W*(?:acceptance|success|definition of done|criteria|done when|verif)", title, re.IGNORECASE
        ):
            yield plain_title(item.words)
