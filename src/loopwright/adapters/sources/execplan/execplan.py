"""An ExecPlan: one file with the sections *Progress*, *Decision Log* and others."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from loopwright.adapters.sources.checklists.entries import Entry, boxed
from loopwright.adapters.sources.checklists.source import MAX_CONTEXT, ChecklistSource
from loopwright.adapters.sources.checklists.tasks import bounded
from loopwright.adapters.sources.text.markdown import Markdown, read_markdown
from loopwright.adapters.sources.text.plan_file import content
from loopwright.adapters.sources.text.problems import Problems, Unreadable
from loopwright.adapters.sources.text.reading import start_of
from loopwright.adapters.sources.text.titles import plain

_PROGRESS: Final = "progress"
_LIVING: Final = (
    "surprises",
    "decision log",
    "outcomes",
    "concrete steps",
    "plan of work",
    "validation and acceptance",
)
_HEADING: Final = re.compile(r"^#{1,4}[ \t]+(.+?)[ \t]*$", re.MULTILINE)
_AT: Final = re.compile(r"^\(?(?:20[0-9]{2}-[0-9]{2}-[0-9]{2}|YYYY-MM-DD)[^)\]]{0,30}?\)[ \t]*[:–—-]?[ \t]*")


class ExecPlanSource(ChecklistSource):
    """Reads the boxes of *Progress*; everything else in the file is for all tasks."""

    kind = "execplan"
    format_name = "ExecPlan"
    file_name = "EXECPLAN.md"
    usual_places = ("EXECPLAN.md", "execplans/[!Rr]*.md", "docs/exec-plans/active/[!Rr]*.md")

    def is_like(self, file: Path) -> bool:
        """Take a file with a *Progress* that has boxes, and two other sections of an ExecPlan."""
        titles = [plain(title) for title in _HEADING.findall(start_of(file))]
        if (
            _PROGRESS not in titles
            or sum(any(one.startswith(word) for one in titles) for word in _LIVING) < 2
        ):
            return False
        try:
            return bool(self.entries(read_markdown(content(file))))
        except Unreadable:
            return True

    def entries(self, markdown: Markdown) -> list[Entry]:
        """Return the boxes of *Progress*, without the times at their beginning."""
        inside = {at for at in range(len(markdown.sections)) if self.may_have_tasks(markdown, at)}
        found = boxed(markdown, within=lambda section: section in inside)
        return [replace(entry, title=_AT.sub("", entry.title) or entry.title) for entry in found]

    def may_have_tasks(self, markdown: Markdown, section: int) -> bool:
        """Return whether a section is *Progress* or inside of it."""
        return any(plain(markdown.sections[one].title) == _PROGRESS for one in markdown.around(section))

    def check(self, markdown: Markdown, entries: Sequence[Entry], problems: Problems) -> None:
        """Take down that there is no task."""
        if not entries:
            problems.note(1, "", "found no box under Progress: write each step as `- [ ] Add the login form`")
        super().check(markdown, entries, problems) if entries else None

    def context(self, markdown: Markdown, entries: Sequence[Entry]) -> str:
        """Return the whole plan without its progress."""
        del entries
        parts = [
            markdown.text(section.line, section.end)
            for at, section in enumerate(markdown.sections)
            if all(plain(markdown.sections[one].title) != _PROGRESS for one in markdown.around(at))
        ]
        return bounded("\n\n".join(part for part in parts if part.strip()), MAX_CONTEXT)
