"""A plan whose tasks are headings such as `### Task 3: Title`."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from loopwright.adapters.sources.checklists.entries import Entry, boxed
from loopwright.adapters.sources.checklists.headings import TASK, headed, is_task_heading
from loopwright.adapters.sources.checklists.source import ChecklistSource
from loopwright.adapters.sources.text.markdown import Markdown, read_markdown
from loopwright.adapters.sources.text.plan_file import content
from loopwright.adapters.sources.text.problems import Problems, Unreadable
from loopwright.adapters.sources.text.reading import start_of

_HEADING: Final = re.compile(rf"^#{{2,5}}[ \t]+{TASK.pattern}", re.MULTILINE | re.IGNORECASE)
_HEADER: Final = re.compile(
    r"superpowers:(?:executing-plans|subagent-driven-development)|REQUIRED (?:SUB-)?SKILL"
)
_STEP: Final = re.compile(
    r"\W{0,4}(?:(?:Step|Paso|Passo|Schritt|Étape|Шаг)[ \t]+|(?:ステップ|步骤|步驟|단계)[ \t]?)[0-9]{1,3}\b",
    re.IGNORECASE,
)
_STORY: Final = re.compile(r"(?m)^#[ \t]+Story[ \t]+[0-9]", re.IGNORECASE)
"""How a BMAD story begins."""
_OTHERS: Final = frozenset({".kiro", ".planning", "conductor", "openspec", "thoughts"})
"""Folders of other forms."""
_PLANS: Final = (("docs", "plans"), ("superpowers", "plans"))


class SuperpowersSource(ChecklistSource):
    """Reads each heading `Task N` as a task; the boxes below it are its steps."""

    kind = "superpowers"
    format_name = "Superpowers plan"
    file_name = ""
    usual_places = ("docs/superpowers/plans/[!Rr]*.md", "docs/plans/[!Rr]*.md")

    def recognises(self, place: Path) -> bool:
        """Take a file: a folder of plans has several."""
        return place.is_file() and super().recognises(place)

    def is_like(self, file: Path) -> bool:
        """Take a plan with such headings if it names a skill, has steps, is in a usual folder, or has no boxes."""
        start = start_of(file)
        parts = file.absolute().parts
        if not _HEADING.search(start) or _OTHERS & set(parts) or _STORY.search(start):
            return False
        if parts[-3:-2] == ("specs",) and file.name.casefold() == "tasks.md":
            return False  # the tasks of a specification, with headings
        if _HEADER.search(start) or tuple(parts[-3:-1]) in _PLANS:
            return True
        try:
            markdown = read_markdown(content(file))
        except Unreadable:
            return False
        boxes = boxed(markdown)
        return bool(self.entries(markdown)) and all(_STEP.match(entry.words) for entry in boxes)

    def entries(self, markdown: Markdown) -> list[Entry]:
        """Return the headings that are tasks."""
        return headed(markdown, is_task_heading)

    def check(self, markdown: Markdown, entries: Sequence[Entry], problems: Problems) -> None:
        """Take down that there is no task, in the words of this form."""
        if not entries:
            problems.note(
                1,
                "",
                "found no task here: write each as a heading such as `### Task 1: Add the login form`",
            )
        else:
            super().check(markdown, entries, problems)
