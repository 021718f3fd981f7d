"""The roadmap of a GSD project: each phase of its list is a task, and the details of the phase are what it asks for."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final

from loopwright.adapters.sources.checklists.entries import Entry, boxed
from loopwright.adapters.sources.checklists.source import ChecklistSource
from loopwright.adapters.sources.text.markdown import Kind, Markdown, read_markdown
from loopwright.adapters.sources.text.plan_file import content
from loopwright.adapters.sources.text.problems import Problems, Unreadable
from loopwright.adapters.sources.text.titles import plain_title
from loopwright.ports import Mark

FOLDER: Final = ".planning"
_PHASE: Final = re.compile(
    r"\W{0,4}Phase[ \t]+([0-9]{1,4}(?:\.[0-9]{1,3})?[a-z]?)[ \t]*[:.–—-]", re.IGNORECASE
)
_MUST: Final = re.compile(r"[*_]{0,2}success criteria\b", re.IGNORECASE)
_NUMBERED: Final = re.compile(r"[ \t]*[0-9]{1,3}[.)][ \t]+(.+)")


class RoadmapSource(ChecklistSource):
    """Reads `- [ ] **Phase 3: Name** - what it brings`; the boxes of its plans are parts of the phase."""

    kind = "gsd"
    format_name = "GSD"
    file_name = "ROADMAP.md"
    beside: ClassVar = ("PROJECT.md", "REQUIREMENTS.md", "STATE.md")

    def is_like(self, file: Path) -> bool:
        """Take a roadmap with boxes for its phases."""
        if FOLDER not in file.absolute().parts or not file.name.endswith(self.file_name):
            return False
        try:
            return bool(self.entries(read_markdown(content(file))))
        except Unreadable:
            return True

    def entries(self, markdown: Markdown) -> list[Entry]:
        """Return the phases of the list, with the boxes of their plans."""
        details = _details(markdown)
        inside = {at for section in details.values() for at in _lines(markdown, section)}
        found = []
        for entry in boxed(markdown):
            match = _PHASE.match(entry.words)
            if match is not None and entry.line not in inside:
                found.append(_with_details(markdown, entry, match[1], details.get(match[1])))
        return found

    def check(self, markdown: Markdown, entries: Sequence[Entry], problems: Problems) -> None:
        """Take the details of a phase as a part of it."""
        details = _details(markdown).values()
        parts = [
            replace(entry, line=markdown.sections[at].line, end=markdown.sections[at].last)
            for at in details
            for entry in entries
            if entry.section == at
        ]
        super().check(markdown, [*entries, *parts] if entries else [], problems)


def _details(markdown: Markdown) -> Mapping[str, int]:
    """Return the section of each phase by its number: the last one, as numbers may begin again in a milestone."""
    found = ((at, _PHASE.match(section.title)) for at, section in enumerate(markdown.sections))
    return {match[1]: at for at, match in found if match is not None}


def _lines(markdown: Markdown, section: int) -> range:
    one = markdown.sections[section]
    return range(one.line, one.last)


def _with_details(markdown: Markdown, entry: Entry, number: str, section: int | None) -> Entry:
    title = plain_title(entry.words)
    if section is None:
        return replace(entry, name=f"phase-{number}", title=title)
    lines = _lines(markdown, section)
    boxes = [item for item in markdown.items if item.line in lines and item.mark is not None]
    is_done = bool(boxes) and all(item.mark is Mark.DONE for item in boxes)
    return replace(
        entry,
        name=f"phase-{number}",
        title=title,
        section=section,
        below=(*entry.below, *(item.line for item in boxes)),
        criteria=tuple(_criteria(markdown, lines)),
        disputed=entry.disputed or (entry.mark is Mark.OPEN and is_done),
    )


def _criteria(markdown: Markdown, lines: range) -> Iterator[str]:
    """Return the numbered lines below `Success Criteria`."""
    is_below = False
    for at in lines:
        line = markdown.lines[at]
        match = _NUMBERED.match(line.text)
        if _MUST.match(line.text):
            is_below = True
        elif match is not None and is_below:
            yield plain_title(match[1])
        elif line.kind is not Kind.BLANK and not line.text.startswith(" "):
            is_below = False
