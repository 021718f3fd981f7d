"""Reading the held-out checks of a task, with the files beside the plan that they need."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from loopwright.adapters.sources.text.located import Located
from loopwright.adapters.sources.text.plan_file import document
from loopwright.adapters.sources.text.problems import Unreadable
from loopwright.config.gates import GATE_KEYS, GATE_SCHEMA, MAX_NAME, read_gates
from loopwright.config.kinds import is_inside
from loopwright.config.nearest import did_you_mean
from loopwright.core.gates.held_out import marked
from loopwright.core.values.policy import HeldFile, HeldOut
from loopwright.ports import Files

HELD_OUT_KEYS: Final[Mapping[str, str]] = {
    **GATE_KEYS,
    "files": "Files that lie in the project for these checks alone, at the same place as beside the plan file.",
    "hint": "What the agent reads when the check does not pass. Without it the agent sees the name only.",
}
MAX_FILE: Final = 1024 * 1024
MAX_HINT: Final = 2000
_TABLE: Final = GATE_SCHEMA["anyOf"][1]
HELD_OUT_SCHEMA: Final[Mapping[str, Any]] = {
    "anyOf": [
        GATE_SCHEMA["anyOf"][0],
        {
            **_TABLE,
            "properties": {
                **_TABLE["properties"],
                "files": {
                    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
                    "description": HELD_OUT_KEYS["files"],
                },
                "hint": {"type": "string", "maxLength": MAX_HINT, "description": HELD_OUT_KEYS["hint"]},
            },
        },
    ]
}
Note = Callable[[int, str, str], None]
"""Takes the line, the place and the words of a problem."""


class HeldOutReader:
    """Reads held-out checks, and gathers the contents of their files by hash."""

    def __init__(self, files: Files, note: Note) -> None:
        self._given = files
        self._note = note
        self.contents: dict[str, bytes] = {}

    def read(self, entries: list[Located], place: str) -> tuple[HeldOut, ...]:
        """Return the checks that are right; everything else is noted."""
        found = [self._one(entry, f"{place}[{index}]", index) for index, entry in enumerate(entries)]
        names = [one.check.name for one in found if one is not None]
        if len(names) != len(set(names)):
            self._note(entries[0].line, place, "two of them have the same name: give each its own")
        return tuple(one for one in found if one is not None)

    def _one(self, entry: Located, place: str, index: int) -> HeldOut | None:
        table = {"run": entry} if isinstance(entry.value, str) else entry.value
        if not isinstance(table, dict):
            self._note(
                entry.line, place, "expected a command, or a table with run and perhaps files and hint"
            )
            return None
        for key in table:
            if key not in HELD_OUT_KEYS:
                self._note(
                    table[key].line, f"{place}.{key}", f"unknown key{did_you_mean(key, HELD_OUT_KEYS)}"
                )
        plain = {key: inner.plain() for key, inner in table.items() if key in GATE_KEYS}
        gates, problems = read_gates([{"name": f"held-out {index + 1}", **plain}])
        for problem in problems:
            line = table[problem.key].line if problem.key in table else entry.line
            self._note(line, f"{place}.{problem.key}", problem.message)
        files = self._files(table.get("files"), f"{place}.files")
        hint = table["hint"].text.strip() if "hint" in table else ""
        if len(hint) > MAX_HINT:
            self._note(table["hint"].line, f"{place}.hint", f"expected at most {MAX_HINT} characters")
        if not gates:
            return None
        check = marked(replace(gates[0], name=gates[0].name[: MAX_NAME - 12]), files)
        return HeldOut(check=check, files=files, hint=hint)

    def _files(self, located: Located | None, place: str) -> tuple[HeldFile, ...]:
        if located is None:
            return ()
        listed = located.value if isinstance(located.value, list) else [located]
        found = [self._file(entry, place) for entry in listed]
        return tuple(file for file in found if file is not None)

    def _file(self, entry: Located, place: str) -> HeldFile | None:
        path = entry.text.strip()
        if not isinstance(entry.value, str) or not is_inside(path):
            self._note(entry.line, place, "expected a path relative to the plan file, without ..")
            return None
        content = self._given.get(path)
        if content is None:
            self._note(entry.line, place, f"{path} cannot be read beside the plan file")
            return None
        if len(content) > MAX_FILE:
            self._note(entry.line, place, f"{path} is larger than {MAX_FILE // 1024} KB")
            return None
        sha256 = hashlib.sha256(content).hexdigest()
        self.contents[sha256] = content
        return HeldFile(path=path, sha256=sha256)


def with_held_files(plan: Path, content: bytes) -> dict[str, bytes]:
    """Return the files beside a plan that its held-out checks name; what is wrong with them is said when it is read."""
    try:
        whole = document(plan.name, content).plain()
    except Unreadable:
        return {}
    found = {}
    for path in _named(whole):
        if is_inside(path) and (plan.parent / path).is_file():
            with (plan.parent / path).open("rb") as file:
                found[path] = file.read(MAX_FILE + 1)
    return found


def _named(plan: Any) -> list[str]:
    tasks = plan.get("tasks") if isinstance(plan, dict) else None
    checks = [one.get("held_out") for one in _listed(tasks) if isinstance(one, dict)]
    files = [one.get("files") for some in checks for one in _listed(some) if isinstance(one, dict)]
    return [path.strip() for some in files for path in _listed(some) if isinstance(path, str)]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
