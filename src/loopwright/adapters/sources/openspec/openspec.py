"""The `tasks.md` of an OpenSpec change."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import ClassVar, Final

from loopwright.adapters.sources.checklists.entries import Entry
from loopwright.adapters.sources.checklists.headings import boxed_or_headed
from loopwright.adapters.sources.checklists.source import ChecklistSource
from loopwright.adapters.sources.text.markdown import Markdown
from loopwright.adapters.sources.text.problems import Problems
from loopwright.ports import Mark, PlannedTask

_ARCHIVE: Final = "archive"


class OpenSpecSource(ChecklistSource):
    """Reads `- [ ] 1.1 Add the command` below headings such as `## 1. Command line`."""

    kind = "openspec"
    usual_places = ("openspec/changes/*/tasks.md",)
    beside: ClassVar = ("proposal.md", "design.md", "specs/*/spec.md", "specs/*/*/spec.md")

    def is_like(self, file: Path) -> bool:
        """Take the `tasks.md` of a change."""
        folders = file.absolute().parts[:-2]
        return file.name.casefold() == self.file_name and ("openspec", "changes") in pairwise(folders)

    def entries(self, markdown: Markdown) -> list[Entry]:
        """Return the tasks."""
        return boxed_or_headed(markdown)

    def adjusted(self, tasks: list[PlannedTask], name: str, problems: Problems) -> list[PlannedTask]:
        """Return the tasks of an archived change as skipped: OpenSpec archives what is finished."""
        left = [task for task in tasks if task.mark not in (Mark.DONE, Mark.SKIPPED)]
        if _ARCHIVE not in PurePosixPath(name).parts or not left:
            return tasks
        problems.warn(
            left[0].line or 1, "", f"this change is archived, so its {len(left)} open boxes are skipped"
        )
        return [replace(task, mark=Mark.SKIPPED) if task in left else task for task in tasks]
