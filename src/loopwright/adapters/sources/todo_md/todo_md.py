"""A list of work without a single checkbox: its bullets are tasks, or else its headings."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Final

from loopwright.adapters.sources.checklists.entries import Entry, named, whole_words
from loopwright.adapters.sources.checklists.headings import headed
from loopwright.adapters.sources.checklists.source import ChecklistSource
from loopwright.adapters.sources.text.markdown import Item, Kind, Markdown, read_markdown
from loopwright.adapters.sources.text.markdown_edits import MarkdownEdits
from loopwright.adapters.sources.text.plan_file import content
from loopwright.adapters.sources.text.problems import Problems, Unreadable
from loopwright.adapters.sources.text.titles import Settled, plain, says_nothing, settled_by
from loopwright.config.nearest import quoted
from loopwright.ports import Mark

_NAMES: Final = frozenset(
    {"todo", "to-do", "todos", "fix_plan", "@fix_plan", "fix-plan", "implementation_plan"}
)
_FINISHED: Final = re.compile(
    r"\W*(?:already )?(?:completed?|done|finished|implemented|shipped|fixed)\b", re.IGNORECASE
)
_NOT_WORK: Final = re.compile(
    r"\W*(?:about|assumptions|background|context|goals?|ideas?|introduction|key (?:learnings|decisions)|"
    r"learnings?|links|maybe|non-?goals|notes?|out of scope|overview|principles|questions|references|"
    r"resources|risks|rules|someday|summary|thoughts?|thought bubbles|vision|wish ?list|what (?:works|is)|"
    r"wont ?fix|won't)\b",
    re.IGNORECASE,
)
_DONE: Final = "✅ "
"""What is written before a bullet that is done: a box would make the file a checkbox plan."""
_STRUCK: Final = re.compile(r"(?:\[x\]|✅|☑|✔|~~)", re.IGNORECASE)
_PHASE: Final = re.compile(r"\W*(?:phase|stage|step|milestone|task|sprint)[ \t]+[0-9]", re.IGNORECASE)


class TodoMdSource(ChecklistSource):
    """Reads bullets; where sections consist of text, each heading is a task."""

    kind = "todo_md"
    format_name = "To-do list"
    file_name = "TODO.md"
    usual_places = ("TODO.md", "fix_plan.md", ".ralph/fix_plan.md", "IMPLEMENTATION_PLAN.md")

    def is_like(self, file: Path) -> bool:
        """Take a file of such a name that has bullets and not a single checkbox; a plan in phases is a phase plan."""
        if not is_called_todo(file.name):
            return False
        try:
            markdown = read_markdown(content(file))
        except Unreadable:
            return False
        if any(item.box is not None for item in markdown.items):
            return False
        phases = sum(_PHASE.match(section.title) is not None for section in markdown.sections)
        if phases > 1 and "plan" in file.stem.casefold():
            return False
        entries = self.entries(markdown)
        return bool(entries) and (entries[0].box is None or _is_mostly_list(markdown))

    def recognises(self, place: Path) -> bool:
        """Take a file: a folder with a TODO.md is a project, not a list."""
        return place.is_file() and super().recognises(place)

    def entries(self, markdown: Markdown) -> list[Entry]:
        """Return the outermost bullets, or the innermost headings if most of those have text below them."""
        parents = {section.parent for section in markdown.sections}
        leaves = [at for at, one in enumerate(markdown.sections) if at not in parents and one.level > 2]
        told = [at for at in leaves if _begins_with_text(markdown, at)]
        if len(told) > 2 and 2 * len(told) > len(leaves):
            titles = {markdown.sections[at].title for at in leaves if not _is_left_out(markdown, at)}
            found = headed(markdown, lambda title: title in titles)
            return [
                replace(entry, mark=Mark.DONE) if _is_finished(markdown, entry.section) else entry
                for entry in found
            ]
        return [
            _bullet(markdown, item)
            for item in markdown.items
            if item.parent is None
            and not _is_left_out(markdown, item.section)
            and not _is_below_rules(markdown, item)
            and not says_nothing(item.words)
        ]

    def check(self, markdown: Markdown, entries: Sequence[Entry], problems: Problems) -> None:
        """Take down that bullets are guessed to be tasks, and which sections are not."""
        super().check(markdown, entries, problems)
        if entries:
            what = "bullet" if entries[0].box is not None else "heading"
            problems.warn(
                entries[0].line + 1, "", f"the file has no checkbox, so every {what} is read as a task"
            )
        for at in sorted({item.section for item in markdown.items}):
            section = markdown.sections[at]
            if _NOT_WORK.match(section.title):
                problems.warn(section.line + 1, "", f"{quoted(section.title)} is read as text, not as tasks")

    def _tell(self, edits: MarkdownEdits, markdown: Markdown, entry: Entry, mark: Mark, done: str) -> None:
        if entry.box is None:
            super()._tell(edits, markdown, entry, mark, done)
        elif (mark is Mark.DONE) is not (entry.mark is Mark.DONE):
            line = markdown.lines[entry.line]
            at = line.text.index(line.words) if line.words else len(line.text)
            words = f"{_DONE}{line.text[at:]}" if mark is Mark.DONE else line.text[at:].removeprefix(_DONE)
            edits.replace(entry.line, f"{line.text[:at]}{words}")


def is_called_todo(name: str) -> bool:
    """Return whether a file of this name is a list of work, so that its plain bullets may be meant as tasks."""
    return PurePath(name).stem.casefold() in _NAMES


def tell_without_box(markdown: Markdown, problems: Problems) -> None:
    """Note how many bullets of a list that has boxes are not read as tasks."""
    bare = [
        item
        for item in markdown.items
        if item.parent is None
        and item.box is None
        and markdown.lines[item.line].almost is None
        and not _is_left_out(markdown, item.section)
        and _bullet(markdown, item).mark is not Mark.DONE
    ]
    if bare:
        are = (
            "1 list item without a box is" if len(bare) == 1 else f"{len(bare)} list items without a box are"
        )
        first = quoted(bare[0].words)
        told = f"{are} read as text, the first is {first}: write `- [ ]` before those that are tasks"
        problems.warn(bare[0].line + 1, "", told)


def _is_mostly_list(markdown: Markdown) -> bool:
    """Return whether at least half of the text is in lists: a description of a design has bullets as well."""
    inside = sum(item.end - item.line for item in markdown.items if item.parent is None)
    words = (Kind.TEXT, Kind.BULLET, Kind.CODE, Kind.FENCE)
    return 2 * inside >= sum(line.kind in words for line in markdown.lines)


def _begins_with_text(markdown: Markdown, at: int) -> bool:
    section = markdown.sections[at]
    first = next((line for line in markdown.lines[section.line + 1 : section.end] if line.text.strip()), None)
    return first is not None and first.kind is Kind.TEXT


def _is_left_out(markdown: Markdown, section: int) -> bool:
    return any(
        _NOT_WORK.match(markdown.sections[at].title)
        for at in markdown.around(section)
        if markdown.sections[at].level > 1
    )


def _is_finished(markdown: Markdown, section: int) -> bool:
    """Return whether a heading around a place says that everything below it is done."""
    return any(_FINISHED.match(plain(markdown.sections[at].title)) for at in markdown.around(section))


def _is_below_rules(markdown: Markdown, item: Item) -> bool:
    """Return whether the line above a list is `Rules:` or the like."""
    at = item.line - 1
    while at >= 0 and markdown.lines[at].kind in (Kind.BLANK, Kind.BULLET):
        at -= 1
    above = markdown.lines[at] if at >= 0 else None
    if above is None or above.kind is not Kind.TEXT or not above.words.rstrip("* ").endswith(":"):
        return False
    return _NOT_WORK.match(above.words) is not None


def _bullet(markdown: Markdown, item: Item) -> Entry:
    settled = settled_by(item.words)
    is_done = (
        item.mark is Mark.DONE
        or bool(_STRUCK.match(item.words))
        or settled is Settled.DONE
        or _is_finished(markdown, item.section)
    )
    words = whole_words(markdown, item).removeprefix(_DONE)
    return Entry(
        line=item.line,
        end=item.end,
        section=item.section,
        words=words,
        title=named(words).title,
        mark=Mark.DONE if is_done else Mark.SKIPPED if settled is not None else Mark.OPEN,
        box=item.line,
    )
