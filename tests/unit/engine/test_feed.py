"""What one project's files hold, whatever it is, keeps nothing from the others and does not end the worker."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.doubles import Home, planned

from loopwright.core.happenings import RecordedEvent
from loopwright.core.model import Cursor
from loopwright.engine.feed import Outbox
from loopwright.ports import Files, Progress


class OddSource:
    """A source that does not cope with what somebody wrote into its files."""

    kind = "odd"

    def files(self, place: Path) -> Files:
        return {place.name: b"[]"}

    def written(self, files: Files, progress: Progress) -> Files:
        raise AttributeError(f"{len(files)} file of {progress.plan_id} is a list")


class FragileFiles:
    """State files of which those of one folder cannot be made."""

    def __init__(self, broken: Path) -> None:
        self.broken = broken
        self.written: list[Path] = []

    def append_events(self, project: Path, events: Sequence[RecordedEvent]) -> None:
        if project == self.broken:
            raise TypeError(f"{len(events)} events and a list")
        self.written.append(project)

    def put(self, project: Path, kind: str, name: str, document: Any) -> None:
        pass

    put_text = put


def two_projects(home: Home, place: Path) -> tuple[Path, Path]:
    first, second = place / "first", place / "second"
    for folder in (first, second):
        folder.mkdir()
        home.submit(planned("a"), root=folder)
    return first, second


async def test_a_source_that_cannot_be_told_is_an_event_and_holds_nothing_up(tmp_path: Path) -> None:
    home = Home()
    first, second = two_projects(home, tmp_path)
    files = FragileFiles(tmp_path)
    outbox = Outbox(replace(home.world, source=lambda _kind: OddSource()), files)  # type: ignore[arg-type, return-value]
    await outbox.catch_up()
    await outbox.catch_up()
    await outbox.catch_up()
    assert set(files.written) == {first, second}
    said = home.events("source_not_told")
    assert len(said) == 2, "once for each"
    assert all(one.payload["reason"].startswith("internal error: AttributeError: 1 file") for one in said)


async def test_files_that_cannot_be_made_are_owed_and_the_others_are_made(tmp_path: Path) -> None:
    home = Home()
    first, second = two_projects(home, tmp_path)
    files = FragileFiles(first)
    outbox = Outbox(home.world, files)  # type: ignore[arg-type]
    await outbox.catch_up()
    assert files.written == [second]
    assert len(home.all(Cursor)) == 2, "how far all is, and what one is owed"
    files.broken = tmp_path
    await outbox.catch_up()
    assert files.written == [second, first]
    assert len(home.all(Cursor)) == 1
