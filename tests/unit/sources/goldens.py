"""Sources before and after their status was written back, as files: run this file to write what is expected.

`tests/data/sources/KIND/CASE` has `before/` (the source's folder), `progress.json` and `after/` (what changes).
"""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from loopwright.adapters import registry
from loopwright.ports import Files, ItemProgress, Mark, Progress, WritingSource

DATA = Path(__file__).parents[2] / "data" / "sources"


def cases() -> list[Path]:
    """Return the folder of each case."""
    return sorted(path.parent for path in DATA.glob("*/*/progress.json"))


def source_of(case: Path) -> WritingSource:
    """Return the reader of the case's kind."""
    return registry.source(case.parent.name)  # type: ignore[return-value]


def before(case: Path) -> Files:
    """Return the files of the source as they were."""
    place = json.loads((case / "progress.json").read_text(encoding="utf-8"))["place"]
    return source_of(case).files(case / "before" / place)


def progress_of(case: Path) -> Progress:
    """Return what is to be told."""
    return read_progress(json.loads((case / "progress.json").read_text(encoding="utf-8")))


def read_progress(plain: dict[str, Any]) -> Progress:
    """Return a progress that is written down as JSON."""
    return Progress(
        plan_id=plain.get("plan_id", "plan_1"),
        at=datetime.fromisoformat(plain["at"]),
        items={key: _item(item) for key, item in plain["items"].items()},
        started_at=_time(plain.get("started_at")),
        completed_at=_time(plain.get("completed_at")),
        failed=plain.get("failed", False),
    )


def _item(plain: dict[str, Any]) -> ItemProgress:
    times = {key: _time(plain.pop(key, None)) for key in ("started_at", "ended_at")}
    return ItemProgress(mark=Mark(plain.pop("mark")), checks=tuple(plain.pop("checks", ())), **times, **plain)


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def after(case: Path) -> Files:
    """Return the changed files as they are expected."""
    folder = case / "after"
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


if __name__ == "__main__":
    for one in cases():
        for name, content in source_of(one).written(before(one), progress_of(one)).items():
            (one / "after" / name).parent.mkdir(parents=True, exist_ok=True)
            (one / "after" / name).write_bytes(content)
