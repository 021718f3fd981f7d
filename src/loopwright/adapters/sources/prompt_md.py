"""PROMPT.md: one task, whose text is the file."""

import hashlib
from pathlib import Path

from loopwright.adapters.sources.located import Unreadable, check_text
from loopwright.adapters.sources.plan_file import decoded
from loopwright.adapters.sources.plan_format import MAX_DESCRIPTION, MAX_TITLE
from loopwright.adapters.sources.reading import located_at, read_file
from loopwright.ports import Files, PlannedTask, PlannedWork


class PromptSource:
    """Reads a prompt; it has no place for a status."""

    kind = "prompt_md"

    def recognises(self, place: Path) -> bool:
        """Take a file of that name."""
        return place.name.casefold() == "prompt.md" and place.is_file()

    def files(self, place: Path) -> Files:
        """Return the one file."""
        return {place.name: read_file(place)}

    def parse(self, files: Files, name: str) -> PlannedWork:
        """Return the task `prompt`, or raise `BadPlan`."""
        ((_, content),) = files.items()
        try:
            text = check_text(decoded(content), 1).replace("\r\n", "\n").strip()
            if not text:
                raise Unreadable(1, "the prompt is empty: say what is to be done")
            if len(text) > MAX_DESCRIPTION:
                raise Unreadable(1, f"a prompt has at most {MAX_DESCRIPTION} characters")
        except Unreadable as broken:
            raise located_at(name, broken) from broken
        title = text.partition("\n")[0].lstrip("# \t").strip()[:MAX_TITLE] or name
        task = PlannedTask(key="prompt", title=title, description=text, line=1)
        return PlannedWork(title=title, tasks=(task,), sha256=hashlib.sha256(content).hexdigest())
