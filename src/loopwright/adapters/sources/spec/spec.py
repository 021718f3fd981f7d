"""Our own plan file with status written back: `status` beside each task."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

from loopwright.adapters.sources.spec.yaml_plan import YamlSource
from loopwright.adapters.sources.text.json_edits import opened, storable
from loopwright.adapters.sources.text.located import inner, tables, words
from loopwright.adapters.sources.text.meaning import fingerprint
from loopwright.adapters.sources.text.plan_file import MAX_BYTES
from loopwright.adapters.sources.text.problems import Unreadable
from loopwright.adapters.sources.text.reading import located_at
from loopwright.adapters.sources.text.yaml_edits import with_values
from loopwright.ports import Files, ItemProgress, Mark, PlannedWork, Progress

KEY: Final = "status"
_WANTED: Final = re.compile(
    rb'^[ \t{,]*"?write_status"?[ \t]*:[ \t]*true\b|[{,]\s*"write_status"\s*:\s*true\b', re.MULTILINE
)
"""At the beginning of a line, as people write it; or anywhere between braces, as programs do."""
_REASON: Final = 500


class SpecSource(YamlSource):
    """Reads a plan that says `write_status: true`, and writes there how its tasks stand."""

    kind = "spec"
    format_name = "Plan file"

    def recognises(self, place: Path) -> bool:
        """Take a plan file that asks for it."""
        if not super().recognises(place):
            return False
        try:
            with place.open("rb") as file:
                return _WANTED.search(file.read(MAX_BYTES)) is not None
        except OSError:
            return False

    def parse(self, files: Files, name: str) -> PlannedWork:
        """Return the work; its hash is that of what is asked for, whatever the status."""
        work = super().parse(files, name)
        gates = [repr(gate) for gate in work.gates or ()]
        sha256 = fingerprint(work.tasks, work.title, gates, dict(work.settings), sorted(work.held_files))
        return replace(work, sha256=sha256)

    def written(self, files: Files, progress: Progress) -> Files:
        """Return the file with the status of each task that has begun, or had one before."""
        name, content = next(iter(files.items()))
        told = {key: standing(item) for key, item in progress.items.items()}
        try:
            if name.lower().endswith(".json"):
                made = _in_json(name, content, told)
            else:
                made = with_values(content, "tasks", "id", KEY, told, usual=Mark.OPEN.value)
        except Unreadable as broken:
            raise located_at(name, broken) from broken
        return {name: made} if made != content else {}


def standing(item: ItemProgress) -> str:
    """Return how a task stands, in the words of the file."""
    match item.mark:
        case Mark.DONE if item.commit:
            return f"done in {item.commit}"
        case Mark.BLOCKED:
            reason = " ".join(storable(item.reason).split())[:_REASON].strip()
            return f"blocked: {reason or 'no reason was given'}"
        case mark:
            return mark.value


def _in_json(name: str, content: bytes, told: dict[str, str]) -> bytes:
    edits = opened(name, content)
    for task in tables(inner(edits.document, "tasks")):
        text = told.get(words(task, "id"), Mark.OPEN.value)
        if text != (words(task, KEY) or Mark.OPEN.value) and words(task, "id") in told:
            edits.put(task, KEY, text)
    return edits.bytes()
