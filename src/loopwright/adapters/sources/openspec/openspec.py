"""The `tasks.md` of an OpenSpec change."""

from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Final

from loopwright.adapters.sources.checklists.entries import Entry
from loopwright.adapters.sources.checklists.headings import boxed_or_headed
from loopwright.adapters.sources.checklists.source import ChecklistSource
from loopwright.adapters.sources.text.markdown import Markdown

_ARCHIVED: Final = ("changes", "archive")


class OpenSpecSource(ChecklistSource):
    """Reads `- [ ] 1.1 Add the command` below headings such as `## 1. Command line`."""

    kind = "openspec"
    format_name = "OpenSpec"
    usual_places = ("openspec/changes/*/tasks.md",)
    beside: ClassVar = ("proposal.md", "design.md", "specs/*/spec.md", "specs/*/*/spec.md")

    def is_like(self, file: Path) -> bool:
        """Take the `tasks.md` of a change."""
        folders = file.absolute().parts[:-2]
        return file.name.casefold() == self.file_name and ("openspec", "changes") in pairwise(folders)

    def entries(self, markdown: Markdown) -> list[Entry]:
        """Return the tasks."""
        return boxed_or_headed(markdown)

    def finished(self, place: Path) -> str:
        """Return that a change is archived: OpenSpec archives what is finished."""
        return "this change is archived" if _ARCHIVED in pairwise(place.absolute().parts) else ""
