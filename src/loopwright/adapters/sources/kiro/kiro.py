"""The `tasks.md` of a Kiro spec."""

from pathlib import Path
from typing import ClassVar

from loopwright.adapters.sources.checklists.entries import Entry
from loopwright.adapters.sources.checklists.headings import boxed_or_headed
from loopwright.adapters.sources.checklists.source import ChecklistSource
from loopwright.adapters.sources.text.markdown import Markdown
from loopwright.ports import Mark


class KiroSource(ChecklistSource):
    """Reads `- [ ] 1. Build the model` with its parts; `- [ ]*` is optional, and `- [-]` is in progress."""

    kind = "kiro"
    format_name = "Kiro"
    usual_places = (".kiro/specs/*/tasks.md",)
    beside: ClassVar = (
        "requirements.md", "bugfix.md", "design.md", "research.md", "../../steering/*.md",
    )  # fmt: skip
    marks: ClassVar = {" ": Mark.OPEN, "~": Mark.OPEN, "-": Mark.RUNNING, "x": Mark.DONE, "X": Mark.DONE}
    signs: ClassVar = {Mark.OPEN: " ", Mark.RUNNING: "-", Mark.DONE: "x"}

    def is_like(self, file: Path) -> bool:
        """Take the `tasks.md` of a spec."""
        *_, root, specs, _, name = ("", "", "", *file.absolute().parts)
        return name.casefold() == self.file_name and (root, specs) == (".kiro", "specs")

    def entries(self, markdown: Markdown) -> list[Entry]:
        """Return the tasks."""
        return boxed_or_headed(markdown, self.marks)
