"""Cases kept as files: what a source was, what it was told in each step, and what it became.

`python -m tests.unit.sources.golden` writes what the steps give now; look at the difference before you keep it.
"""

import json
from collections.abc import Iterator
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any

from loopwright.adapters import registry
from loopwright.ports import Discovered, Files, FixTask, ItemProgress, Judged, Mark, Progress, Source

DATA = Path(__file__).parent / "data"
CASES = sorted(folder.parent.relative_to(DATA).as_posix() for folder in DATA.glob("*/*/given"))


def files_in(folder: Path) -> dict[str, bytes]:
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "progress.json")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def source_of(case: str) -> Source:
    source = registry.source(case.split("/")[0])
    assert source.has_status
    return source


def steps_of(case: str) -> Iterator[tuple[Path, Progress]]:
    for file in sorted((DATA / case).glob("*/progress.json")):
        yield file.parent, progress(json.loads(file.read_bytes()))


def progress(table: dict[str, Any]) -> Progress:
    """Read a progress from plain values; what is left out is as if the work had just begun."""
    table = {"plan_id": "plan_1", "at": "2026-11-16T12:00:00+00:00", "items": {}, **table}
    items = {key: _made(ItemProgress, value) for key, value in table["items"].items()}
    fixes = tuple(_made(FixTask, value) for value in table.get("fixes", ()))
    discovered = tuple(_made(Discovered, value) for value in table.get("discovered", ()))
    judged = {"judged": _made(Judged, table["judged"])} if table.get("judged") else {}
    return _made(Progress, {**table, **judged, "items": items, "fixes": fixes, "discovered": discovered})


def _made(kind: Any, table: dict[str, Any]) -> Any:
    known = {field.name for field in fields(kind)}
    assert known.issuperset(table), table.keys() - known
    return kind(**{key: _value(key, value) for key, value in table.items()})


def _value(key: str, value: Any) -> Any:
    if key == "mark":
        return Mark(value)
    if (key == "at" or key.endswith("_at")) and value is not None:
        return datetime.fromisoformat(value)
    return tuple(value) if isinstance(value, list) else value


def told(source: Source, files: Files, told: Progress) -> dict[str, bytes]:
    return {**files, **source.written(files, told)}


if __name__ == "__main__":
    for case in CASES:
        now = files_in(DATA / case / "given")
        for folder, step in steps_of(case):
            now = told(source_of(case), now, step)
            for name, content in now.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content)
