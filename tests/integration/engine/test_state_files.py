"""The files of events in a project's own folder, where anyone can write."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from loopwright.adapters.home.statefiles import ProjectStateFiles
from loopwright.core.rows.events import RecordedEvent


def events(*numbers: int) -> list[RecordedEvent]:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    return [
        RecordedEvent(
            type="plan_created", actor="x", importance="low", n=n, id=f"evt_{n}", at=at, prev_hash="", hash=""
        )
        for n in numbers
    ]


def written(project: Path) -> list[int]:
    (file,) = (project / ".loopwright" / "events").iterdir()
    lines = [json.loads(line) for line in file.read_text().splitlines() if line.startswith("{")]
    return [line["n"] for line in lines if str(line.get("id")).startswith("evt_")]


def test_events_that_are_there_already_are_not_written_again(tmp_path: Path) -> None:
    files = ProjectStateFiles()
    files.append_events(tmp_path / ".loopwright", events(1, 2))
    files.append_events(tmp_path / ".loopwright", events(1, 2, 3))
    files.append_events(tmp_path / ".loopwright", events(2, 3))
    assert written(tmp_path) == [1, 2, 3]


@pytest.mark.parametrize(
    "line", ['{"n": 9999, "id": "mine"}', '{"n": 4, "id": "mine"}', "no event at all", "[]"]
)
def test_a_forged_line_holds_up_no_event(tmp_path: Path, line: str) -> None:
    files = ProjectStateFiles()
    files.append_events(tmp_path / ".loopwright", events(1, 2, 3))
    (file,) = (tmp_path / ".loopwright" / "events").iterdir()
    with file.open("a") as opened:
        opened.write(f"{line}\n")
    files.append_events(tmp_path / ".loopwright", events(3, 4, 5))
    assert written(tmp_path) == [1, 2, 3, 4, 5]
