"""The `tasks.md` of GitHub Spec Kit."""

import re
from pathlib import Path
from typing import ClassVar, Final

from loopwright.adapters.sources.checklists.entries import Entry, boxed
from loopwright.adapters.sources.checklists.headings import headed, is_task_heading
from loopwright.adapters.sources.checklists.source import ChecklistSource
from loopwright.adapters.sources.text.markdown import Markdown
from loopwright.adapters.sources.text.reading import start_of
from loopwright.ports import Mark

_CODE: Final = re.compile(r"T-?[0-9]{1,5}(?:\.[0-9]{1,4})*[a-z]?$")
_HEADING: Final = re.compile(r"(?:Task[ \t]+)?T-?[0-9]{1,5}[a-z]?\b", re.IGNORECASE)
_TASK: Final = re.compile(r"^[ \t]*[-*+][ \t]+\[[ xX~]\][ \t]+(?:\*\*)?\[?T-?[0-9]{2,5}\b", re.MULTILINE)
_OTHERS: Final = frozenset({".kiro", "openspec", "conductor"})


class SpecKitSource(ChecklistSource):
    """Reads `- [ ] T012 [P] [US1] Create the model`, in phases; or headings such as `### T012: Create the model`."""

    kind = "speckit"
    format_name = "Spec Kit"
    usual_places = ("specs/*/tasks.md",)
    beside: ClassVar = (
        "spec.md", "plan.md", "requirements.md", "design.md", "data-model.md", "research.md", "quickstart.md",
        "contracts/*",
    )  # fmt: skip
    signs: ClassVar = {Mark.OPEN: " ", Mark.DONE: "X"}

    def is_like(self, file: Path) -> bool:
        """Take `specs/NAME/tasks.md`, and any `tasks.md` with tasks such as T001."""
        if file.name.casefold() != self.file_name or _OTHERS & set(file.absolute().parts):
            return False
        return file.absolute().parent.parent.name == "specs" or bool(_TASK.search(start_of(file)))

    def entries(self, markdown: Markdown) -> list[Entry]:
        """Return the tasks; where most boxes have a code, a section without any has no tasks."""
        found = boxed(markdown)
        coded = {entry.section for entry in found if _CODE.match(entry.name)}
        headings = headed(markdown, lambda title: bool(_HEADING.match(title)))
        if not coded and (headings or not found):
            return headings or headed(markdown, is_task_heading)
        if 2 * sum(entry.section in coded for entry in found) < len(found):
            return found
        return [entry for entry in found if entry.section in coded]
