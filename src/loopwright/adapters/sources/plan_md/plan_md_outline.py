"""The sections of a checkbox plan, and its tasks with their names and lines.

Reading and writing both start from here, so that they cannot disagree about which line is whose.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import chain
from typing import Final
from urllib.parse import quote, unquote

from loopwright.adapters.sources.plan_md.more_boxes import with_more_boxes
from loopwright.adapters.sources.spec.plan_format import MAX_ID
from loopwright.adapters.sources.text.markdown import MARKS, Kind, Line, Markdown
from loopwright.adapters.sources.text.near_boxes import is_almost, is_box, is_sign, tell_almost, wrong_mark
from loopwright.adapters.sources.text.problems import Problems, Unreadable
from loopwright.adapters.sources.text.sections import checks_tasks, section_at
from loopwright.adapters.sources.text.titles import (
    OURS,
    is_about_tasks,
    is_manual,
    plain,
    plain_title,
    says_nothing,
    slug,
    without_comments,
    without_prefix,
    without_sha,
)
from loopwright.config.nearest import quoted
from loopwright.ports import Mark

MAX_TASKS: Final = 10_000
MAX_LINE: Final = 20_000


class SectionKind(Enum):
    """What the boxes below a heading are."""

    PHASE = auto()
    ASIDE = auto()
    """Boxes that say what must be true, not what is to be done."""
    DISCOVERED = auto()
    """Work that agents found: you have not decided about it."""
    REPORT = auto()
    """What was written about the plan, not a part of it."""


_REPORTS: Final = (
    "business doc sync",
    "evaluation report",
    "execution evaluation report",
    "execution summary",
    "plan evaluation report",
    "retrospective",
)
DISCOVERED: Final = "discovered work"
SUMMARY: Final = f"## Execution Summary {OURS}"
"""The heading of the summary that Loopwright writes at the end: what you append there is not part of it."""
LABELS: Final = (
    "**Track**:",
    "**Tasks Completed**:",
    "**Tasks Blocked**:",
    "**Commits**:",
    "**Discovered Work**:",
    "**Ready for**:",
    "**Business Doc Sync Required**:",
    "**Reason**:",
    "**Affected Docs**:",
)
"""How the lines of that summary begin."""
ADDED: Final = "Added tasks"
"""The phase of tasks that were appended to that summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading with the lines below it, up to the next heading."""

    title: str
    kind: SectionKind
    level: int
    start: int
    """Index of its heading's line (of the line before its first one, if it has no heading); -1 above
    all headings."""
    end: int
    """Index after its last line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A checkbox that is a task, or work that was found on the way."""

    key: str
    name: str
    """What its own words call it: `Task 1.2`, or its key."""
    title: str
    mark: Mark
    section: int
    at: int
    """Index of its line."""
    end: int
    """Index after the last line that belongs to it and is not blank."""
    comments: tuple[str, ...]
    """What is in comments on its line, except for ours."""
    sha: str | None
    """The commit that another tool wrote at the end of its line."""
    ours: bool
    under: str = ""
    """Key of the task that it is a step of: a step that only a person can do is a separate item."""
    steps: tuple[tuple[int, int], ...] = ()
    """Where such steps below it begin and end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """The plan's sections and items, in the order of the file."""

    markdown: Markdown
    sections: tuple[Section, ...]
    tasks: tuple[Item, ...]
    found: tuple[Item, ...]
    """Work that was found on the way."""
    skipped: tuple[tuple[int, str], ...]
    """Lines and titles of sections whose boxes are not taken as tasks."""

    def around(self, section: int) -> Iterator[Section]:
        """Return a section and those around it, the innermost first."""
        level = self.sections[section].level + 1
        for one in reversed(self.sections[: section + 1]):
            if one.level < level:
                level = one.level
                yield one

    def body(self, item: Item) -> tuple[Line, ...]:
        """Return the lines below an item; those of a person's steps are blank."""
        apart = {at for start, end in item.steps for at in range(start, end)}
        lines = enumerate(self.markdown.lines[item.at + 1 : item.end], start=item.at + 1)
        return tuple(Line("", Kind.BLANK) if at in apart else line for at, line in lines)


def outline(markdown: Markdown, problems: Problems) -> Outline:
    """Find sections and items; what makes them uncertain is noted as a problem."""
    if markdown.opened is not None:
        fence = markdown.lines[markdown.opened].text.strip()[:3]
        raise Unreadable(markdown.opened + 1, f"this {fence} block is never closed")
    markdown = with_more_boxes(markdown)
    boxes = _outermost(markdown)
    sections = tuple(_sections(markdown, boxes))
    names = _Names(problems)
    tasks: list[Item] = []
    found: list[Item] = []
    skipped: dict[int, str] = {}
    boxed = [
        any(line.box in MARKS for line in markdown.lines[max(one.start, 0) : one.end]) for one in sections
    ]
    has_tasks = any(boxed[at] and one.kind is SectionKind.PHASE for at, one in enumerate(sections))
    labels = {
        at: label
        for label in markdown.labels
        if _section_kind(label.title) is SectionKind.ASIDE
        for at in range(label.line, label.end)
    }
    for number, section in enumerate(sections):
        # In a section without tasks, brackets can be a list of options or a legend.
        beside = boxed[number] or not has_tasks
        inside = _boxes(markdown, boxes, section.start + 1, section.end)
        for at, end in chain(_headed(markdown, section), inside):
            line = markdown.lines[at]
            if not is_box(line) or (section.kind is SectionKind.PHASE and not beside and is_sign(line)):
                if section.kind is SectionKind.PHASE:
                    tell_almost(line, at + 1, problems, beside=beside)
                continue
            label = labels.get(at)
            if section.kind is SectionKind.PHASE and label is not None:
                skipped.setdefault(label.line + 1, label.title)
                continue
            if section.kind is SectionKind.PHASE and len(tasks) == MAX_TASKS:
                problems.note(at + 1, "", f"a plan has at most {MAX_TASKS} tasks")
                break
            if section.kind is SectionKind.PHASE and says_nothing(line.words):
                continue
            if section.kind is SectionKind.PHASE:
                tasks += _with_steps(
                    names, names.item(line, section.title, number, at, end), section.title, markdown
                )
            elif section.kind is SectionKind.DISCOVERED and len(found) < MAX_TASKS:
                found.append(_Names(problems).item(markdown.lines[at], "", number, at, end))
                if found[-1].mark is Mark.OPEN and not found[-1].ours:
                    skipped.setdefault(section.start + 1, section.title)
            elif section.kind is SectionKind.ASIDE or (
                section.kind is SectionKind.REPORT and markdown.lines[at].box == " "
            ):
                skipped.setdefault(section.start + 1, section.title)
    return Outline(
        markdown=markdown,
        sections=sections,
        tasks=tuple(tasks),
        found=tuple(found),
        skipped=tuple(skipped.items()),
    )


def _with_steps(names: "_Names", item: Item, phase: str, markdown: Markdown) -> Iterator[Item]:
    """Return a task, then the steps below it that only a person can do."""
    steps = list(_steps(markdown, item))
    yield replace(item, steps=tuple(steps))
    for start, end in steps:
        yield replace(names.item(markdown.lines[start], phase, item.section, start, end), under=item.key)


def _steps(markdown: Markdown, item: Item) -> Iterator[tuple[int, int]]:
    if is_manual(item.title) or item.end == item.at + 1:
        return
    starts = [one.line for one in markdown.items]
    until = item.at
    for one in markdown.items[bisect_right(starts, item.at) : bisect_left(starts, item.end)]:
        if one.line < until or one.mark is None:
            continue
        if one.optional:
            until = one.end
        elif is_manual(plain_title(one.words)):
            until = one.end
            yield one.line, one.end


def id_comment(key: str) -> str:
    """Return the comment that gives a task this key."""
    return f"<!-- id: {quote(key, safe='./@')} -->"


def reference(words: str) -> str:
    """Return the key that a reference means: `Task 1.2`, `1.2`, `#1.2` and `"1.2"` are the same task."""
    words = words.strip().strip("\"'`*[]#").strip()
    match = _CALLED.match(words + ":")
    return _key_of(match) if match is not None and match.end() == len(words) + 1 else unquote(words)


_NUMBER: Final = r"[0-9A-Za-z]{0,20}[0-9][0-9A-Za-z]{0,20}(?:[._-][0-9A-Za-z]{1,20}){0,5}"
_CALLED: Final = re.compile(
    rf"(?P<word>task|fix|step|story|item)[ \t]{{1,3}}#?(?P<number>{_NUMBER})"
    r"(?:(?:\*\*|__)?[ \t]?(?:[:)]|\.(?=[ \t]|$))|[ \t]+[-–—](?=[ \t]))"
    r"|(?P<plain>task)[ \t]{1,3}#?(?P<count>[0-9]{1,4}(?:\.[0-9]{1,4}){0,5})(?=[ \t])",
    re.IGNORECASE,
)
_NUMBERED: Final = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,4}){1,5}|[0-9]{1,4}(?=[.:)]))[.:)]?[ \t]")
_CODED: Final = re.compile(
    r"(T[0-9]{1,5}(?:\.[0-9]{1,4}){0,3}[a-z]?|[A-Z][A-Z0-9]{0,15}-[0-9]{1,6}(?:\.[0-9]{1,4}){0,3})(?![\w-])"
)


def _key_of(match: re.Match[str]) -> str:
    word, number = _called(match)
    return number if word == "Task" else f"{word.lower()}-{number}"


def _called(match: re.Match[str]) -> tuple[str, str]:
    return (match["word"] or match["plain"]).capitalize(), match["number"] or match["count"]


class _Names:
    """Gives each item its key: its own number or name, else its words."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._lines: dict[str, int] = {}
        self._phases: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def item(self, line: Line, phase: str, section: int, at: int, end: int) -> Item:
        words, comments = without_comments(line.words[:MAX_LINE])
        words, sha = without_sha(words, done=MARKS.get(line.box or "") is Mark.DONE)
        words = without_prefix(words)
        ours = OURS in line.text
        bare = words.strip("*_ \t") if words.startswith(("**", "__")) else words
        called = _CALLED.match(bare)
        key, name, title = "", "", words
        if called is not None:
            key, name = _key_of(called), " ".join(_called(called))
            title = bare[called.end() :].strip("*_ \t") or name
        elif (match := _NUMBERED.match(bare) or _CODED.match(bare)) is not None:
            key = match[1]
        given = next((value for comment in comments for field, value in fields(comment) if field == "id"), "")
        key = reference(given)[:MAX_ID] or key
        if len(line.text) > MAX_LINE:
            self._problems.note(at + 1, "", f"a task on one line has at most {MAX_LINE} characters")
        if not words and line.box in MARKS:
            self._problems.note(at + 1, "", "a box without words: say what is to be done")
        if key in self._lines and not given and phase != self._phases.get(key):
            key = self._in_phase(key, phase, at)
        if key in self._lines:
            self._problems.note(
                at + 1,
                "",
                f"{quoted(name or key)} is already on line {self._lines[key]}: each task needs its own name",
            )
        else:
            key = key or self._from_words(title, phase)
            self._lines[key] = at + 1
            self._phases[key] = phase
        if line.box not in MARKS:
            self._problems.note(at + 1, "", wrong_mark(line.box or ""))
        return Item(
            key=key,
            name=name or key,
            title=plain_title(title) or title,
            mark=MARKS.get(line.box or "", Mark.OPEN),
            section=section,
            at=at,
            end=end,
            comments=tuple(comments),
            sha=sha,
            ours=ours,
        )

    def _in_phase(self, key: str, phase: str, at: int) -> str:
        """Return the name of a task whose number is used in an earlier phase: numbers may begin again in each."""
        within = f"{slug(phase)[:40] or 'more'}/{key}"[:MAX_ID]
        if not self._counts.get("/"):
            self._counts["/"] = 1
            self._problems.warn(
                at + 1,
                "",
                f"{quoted(key)} is already on line {self._lines[key]}, so this task is called {quoted(within)}",
            )
        return within

    def _from_words(self, title: str, phase: str) -> str:
        """Return a name that stays the same as long as these words do, wherever the line is moved."""
        plain = slug(title) or "task"
        if plain not in self._lines:
            return plain
        within = f"{slug(phase)[:40] or 'more'}/{plain}"[: MAX_ID - 8]
        if within not in self._lines:
            return within
        count = self._counts.get(within, 1) + 1
        while f"{within}-{count}" in self._lines:
            count += 1
        self._counts[within] = count
        return f"{within}-{count}"


_FIELDS: Final = {
    "deps": "deps",
    "dep": "deps",
    "depends": "deps",
    "depends on": "deps",
    "depends_on": "deps",
    "parallel": "parallel",
    "id": "id",
    "key": "id",
    "blocked": "blocked",
}


def fields(comment: str) -> Iterator[tuple[str, str]]:
    """Return the fields of a comment such as `deps: 1.1, 1.2, parallel: pg-1`, a value at a time."""
    field = ""
    for part in comment.replace(";", ",").split(","):
        name, colon, value = part.partition(":")
        known = _FIELDS.get(name.strip().casefold()) if colon else None
        if known is not None:
            field = known
            yield field, value.strip()
        elif field:
            yield field, part.strip()


def _sections(markdown: Markdown, boxes: Mapping[int, int]) -> Iterator[Section]:
    around: list[tuple[int, SectionKind]] = []
    for at, one in enumerate(markdown.sections):
        kind = SectionKind.ASIDE if checks_tasks(markdown, at) else _section_kind(one.title)
        section = Section(title=one.title, kind=kind, level=one.level, start=one.line, end=one.end)
        while around and around[-1][0] >= one.level:
            around.pop()
        if section.kind is SectionKind.PHASE and around:
            section = replace(section, kind=around[-1][1])
        is_summary = one.line >= 0 and markdown.lines[one.line].text.rstrip() == SUMMARY
        if one.line >= 0:
            around.append((one.level, SectionKind.PHASE if is_summary else section.kind))
        yield from _apart(markdown, boxes, section) if is_summary else (section,)


def _apart(markdown: Markdown, boxes: Mapping[int, int], section: Section) -> Iterator[Section]:
    """Yield our summary; what people appended to it is a phase behind it, if there is a box in it."""
    if next(_boxes(markdown, boxes, section.start + 1, section.end), None) is None:
        yield section
        return
    start = section.start + 1
    while markdown.lines[start].kind is Kind.BLANK or markdown.lines[start].text.startswith(LABELS):
        start += 1
    yield replace(section, end=start)
    yield replace(section, title=ADDED, kind=SectionKind.PHASE, start=start - 1)


def _section_kind(title: str) -> SectionKind:
    words = plain(title)
    if is_about_tasks(title):
        return SectionKind.ASIDE
    if words == DISCOVERED:
        return SectionKind.DISCOVERED
    if words.startswith(_REPORTS):
        return SectionKind.REPORT
    return SectionKind.PHASE


def _outermost(markdown: Markdown) -> dict[int, int]:
    """Return the lines of the checkboxes that are in no other, with the lines where they end."""
    found: dict[int, int] = {}
    boxed: set[int] = set()
    for number, item in enumerate(markdown.items):
        if item.parent in boxed:
            boxed.add(number)
        elif is_box(markdown.lines[item.line]):
            boxed.add(number)
            found[item.line] = item.end
    return found


def _headed(markdown: Markdown, section: Section) -> Iterator[tuple[int, int]]:
    """Return where a heading with a box begins and ends, without the rule below its text."""
    at = max(section.start, 0)
    if section.start >= 0 and markdown.lines[at].kind is Kind.HEADING and markdown.lines[at].box is not None:
        end = markdown.sections[section_at(markdown, at)].last
        while end > at + 1 and not markdown.lines[end - 1].text.strip("-*_ \t"):
            end -= 1
        yield at, end


def _boxes(markdown: Markdown, boxes: Mapping[int, int], start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Return where each of these boxes between two lines begins and ends; also what only looks like a box."""
    last = start
    for at in range(start, stop):
        if at in boxes:
            last = boxes[at]
            yield at, last
        elif at >= last and is_almost(markdown.lines[at]):
            yield at, at + 1
