"""What one project's files hold, whatever it is, keeps nothing from the others and does not end the worker."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cases import each_case
from tests.doubles import Home, planned

from loopwright.adapters.home.statefiles import ProjectStateFiles
from loopwright.adapters.sources.prompt_md.prompt_md import PromptSource
from loopwright.adapters.sources.text.writing import put_files
from loopwright.adapters.store.sql import SqlStore
from loopwright.core.rows.events import RecordedEvent
from loopwright.core.rows.model import Cursor, Loop, Plan
from loopwright.core.rows.source_rows import SourceDebt
from loopwright.core.values.errors import CannotRun, GitFailed, LoopwrightError, Refused, StaleVersion
from loopwright.core.values.states import PlanState
from loopwright.engine.plans.state_export import Outbox, is_exported
from loopwright.engine.rows.moves import move_plan
from loopwright.engine.rows.writeback_debts import any_asked, ask, debt_view, debt_views
from loopwright.ports import Files, PlannedWork, Progress


class OddSource(PromptSource):
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
        self.healths: dict[str, Any] = {}

    async def beside(self, write: Callable[[], object]) -> None:
        write()

    def append_events(self, folder: Path, events: Sequence[RecordedEvent]) -> None:
        if folder.parent == self.broken:
            raise TypeError(f"{len(events)} events and a list")
        self.written.append(folder.parent)

    def put(self, folder: Path, kind: str, name: str, document: Any, *, durably: bool = True) -> None:
        if kind == "health":
            assert (folder.parent, durably) != (self.broken, True), "it is of the moment"
            self.healths[name] = document

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
    assert {one.id for one in home.all(SourceDebt)} == {one.plan for one in said}, "and is owed"
    assert all(one.payload["reason"].startswith("internal error: AttributeError: 1 file") for one in said)


def _refused(why: str) -> LoopwrightError:
    return Refused(why, code="tracker_refused")


class MoodySource(OddSource):
    """A source that refuses what it is told until it is mended."""

    def __init__(self, trouble: Callable[[str], LoopwrightError] = _refused) -> None:
        self.trouble = trouble
        self.refuses = "no room"
        self.once = False
        self.meanwhile: Callable[[], bool] | None = None
        self.asked = 0

    def written(self, files: Files, progress: Progress) -> Files:
        self.asked += 1
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            assert meanwhile()
        if self.refuses and not (self.once and self.asked > 1):
            raise self.trouble(self.refuses)
        return {name: ",".join(progress.items).encode() for name in files}

    def parse(self, _files: Files, _place: str) -> PlannedWork:
        return PlannedWork(title="odd", tasks=(), sha256="0")


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def moody(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """A home of each kind with a plan whose source is in a mood."""
    address = {"sqlite": str(tmp_path / "loopwright.db"), "memory": ""}.get(request.param)
    if address is None:
        address = str(request.getfixturevalue("postgres_url"))
    store = SqlStore.open(address) if address else None
    home = Home(store=store)  # type: ignore[arg-type]
    home.submit(planned("a"), root=tmp_path)
    (tmp_path / "plan.yaml").write_bytes(b"[]")
    yield home
    if store is not None:
        store.close_sync()


def told_by(home: Home, source: MoodySource) -> Outbox:
    world = replace(home.world, source=lambda _kind: source, put_files=put_files)  # type: ignore[arg-type, return-value]
    return Outbox(world, FragileFiles(Path("/nowhere")))  # type: ignore[arg-type]


async def test_a_debt_is_paid_by_whoever_comes_next_and_is_asked_for_less_often_the_longer_it_is_refused(
    moody: Home, tmp_path: Path
) -> None:
    home, source = moody, MoodySource()
    await told_by(home, source).catch_up()
    outbox = told_by(home, source)
    await outbox.catch_up()
    assert source.asked == 1, "that it was not told is no news for the source"
    await outbox.pay_debts()
    assert source.asked == 2, "whoever begins asks at once"
    for asked, rest_s in enumerate((5, 10, 20), 2):
        home.clock.advance(rest_s - 0.5)
        await outbox.pay_debts()
        assert source.asked == asked
        home.clock.advance(0.5)
        await outbox.pay_debts()
        assert source.asked == asked + 1
    (debt,) = home.all(SourceDebt)
    assert debt.reason == "no room"
    source.refuses = "locked"
    home.clock.advance(40)
    await outbox.pay_debts()
    assert [one.payload["reason"] for one in home.events("source_not_told")] == ["no room", "locked"]
    source.refuses = ""
    await told_by(home, source).pay_debts()
    assert (tmp_path / "plan.yaml").read_bytes() == b"a"
    assert (home.all(SourceDebt), len(home.events("source_told"))) == ([], 1)


def cancel(home: Home) -> Plan:
    """End the one plan that there is."""
    (plan,) = home.all(Plan)
    return home.store.transact_sync(
        "over", lambda tx: move_plan(tx, plan, PlanState.CANCELLED, "plan_cancelled", "me")
    )


async def test_a_debt_that_somebody_asks_for_is_paid_at_once_and_a_try_that_began_before_is_no_answer(
    moody: Home,
) -> None:
    home, source = moody, MoodySource()
    outbox = told_by(home, source)
    assert not home.store.transact_sync("ask", lambda tx: ask(tx, home.all(Plan)[0].id)), "nothing is owed"
    await outbox.catch_up()
    await outbox.pay_debts()
    assert source.asked == 2
    (plan,) = home.all(Plan)

    def asked() -> bool:
        home.clock.advance(0.1)
        home.store.transact_sync("ask", lambda tx: ask(tx, plan.id))
        return home.store.read_sync(any_asked)

    assert asked()
    await outbox.pay_debts()
    assert (source.asked, home.store.read_sync(any_asked)) == (3, False), (
        "tried, though it rests, and refused again"
    )
    source.meanwhile = asked
    assert asked()
    await outbox.pay_debts()
    assert (source.asked, home.store.read_sync(any_asked)) == (5, False), (
        "who asked during a try saw nothing of it"
    )
    await outbox.pay_debts()
    assert source.asked == 5, "and then it rests again"


async def test_a_source_that_is_gone_is_named_once_and_told_when_it_comes_back(
    moody: Home, tmp_path: Path
) -> None:
    home, source = moody, MoodySource()
    outbox = told_by(home, source)
    await outbox.catch_up()
    path = tmp_path / "plan.yaml"
    path.unlink()
    await outbox.pay_debts()
    assert [one.gone for one in home.all(SourceDebt)] == [False], "while the plan goes on, that is trouble"
    plan = cancel(home)
    for _ in range(2):
        await told_by(home, source).pay_debts()
    (said,) = home.events("source_given_up")
    assert said.payload["reason"].startswith("plan.yaml is missing")
    assert [one.gone for one in home.all(SourceDebt)] == [True]
    assert home.store.read_sync(lambda tx: debt_view(tx, plan.id)) is None, (
        "nobody has to do anything about it"
    )
    assert home.store.read_sync(lambda tx: debt_views(tx, project_path=None)) == ()
    assert home.store.read_sync(lambda tx: debt_view(tx, plan.id, gone=True)) is not None

    path.write_bytes(b"[]")
    await told_by(home, source).pay_debts()
    assert [one.gone for one in home.all(SourceDebt)] == [False], "it is there again, and refuses"
    assert home.events("source_not_told")[-1].payload["reason"] == "no room"
    source.refuses = ""
    await told_by(home, source).pay_debts()
    assert path.read_bytes() == b"a"
    assert (home.all(SourceDebt), len(home.events("source_told"))) == ([], 1)


async def test_a_debt_ends_where_a_person_has_another_plan_made_of_the_source(
    moody: Home, tmp_path: Path
) -> None:
    await told_by(moody, MoodySource()).catch_up()
    plan = cancel(moody)
    moody.submit(planned("a"), root=tmp_path, new=True)
    (said,) = moody.events("source_given_up")
    assert (said.plan, said.actor, moody.all(SourceDebt)) == (plan.id, "me", [])


@each_case("trouble", [GitFailed, CannotRun, StaleVersion, LoopwrightError])
async def test_whatever_a_source_fails_with_is_owed_and_the_files_of_its_project_are_written(
    tmp_path: Path, trouble: type[LoopwrightError]
) -> None:
    home, source = Home(), MoodySource(trouble)
    home.submit(planned("a"), root=tmp_path)
    (tmp_path / "plan.yaml").write_bytes(b"[]")
    outbox = told_by(home, source)
    for _ in range(3):
        await outbox.catch_up()
    assert outbox._files.written  # type: ignore[attr-defined]
    assert [one.id for one in home.all(Cursor)] == ["state-files"], "nothing is left to be written"
    plan = cancel(home)
    await outbox.catch_up()
    assert [(one.id, one.reason) for one in home.all(SourceDebt)] == [(plan.id, "no room")]
    assert home.store.read_sync(lambda tx: is_exported(tx, plan.id))
    source.refuses = ""
    await outbox.pay_debts()
    assert (tmp_path / "plan.yaml").read_bytes() == b"a"
    assert not home.all(SourceDebt)


async def test_a_row_that_somebody_else_changed_at_the_same_moment_is_no_debt(tmp_path: Path) -> None:
    home, source = Home(), MoodySource(StaleVersion)
    home.submit(planned("a"), root=tmp_path)
    (tmp_path / "plan.yaml").write_bytes(b"[]")
    source.once = True
    await told_by(home, source).catch_up()
    assert (tmp_path / "plan.yaml").read_bytes() == b"a"
    assert not home.events("source_not_told")


async def test_the_source_of_a_project_whose_folder_is_away_is_owed_and_told_when_it_is_back(
    tmp_path: Path,
) -> None:
    home, source, folder = Home(), MoodySource(), tmp_path / "shop"
    source.refuses = ""
    home.submit(planned("a"), root=folder)
    outbox = told_by(home, source)
    await outbox.catch_up()
    assert home.all(SourceDebt), "also while the plan goes on"
    plan = cancel(home)
    for _ in range(2):
        await outbox.catch_up()
        await outbox.pay_debts()
    assert home.store.read_sync(lambda tx: is_exported(tx, plan.id))
    (debt,) = home.all(SourceDebt)
    assert (debt.gone, len(home.events("source_given_up"))) == (True, 1)
    folder.mkdir()
    (folder / "plan.yaml").write_bytes(b"[]")
    await outbox.catch_up()
    await outbox.pay_debts()
    assert (folder / "plan.yaml").read_bytes() == b"a"
    assert not home.all(SourceDebt)


async def test_a_source_is_told_however_long_the_files_of_its_project_could_not_be_written(
    tmp_path: Path,
) -> None:
    home, source = Home(), MoodySource()
    home.submit(planned("a"), root=tmp_path)
    (tmp_path / "plan.yaml").write_bytes(b"[]")
    outbox = told_by(home, source)
    outbox._files.broken = tmp_path  # type: ignore[attr-defined]
    await outbox.catch_up()
    asked = source.asked
    for _ in range(2):
        await outbox.catch_up()
    assert source.asked == asked, "that the files wait is no news for it"
    plan = cancel(home)
    await outbox.catch_up()
    assert source.asked == asked + 1
    assert home.store.read_sync(lambda tx: is_exported(tx, plan.id)), "and what it is owed is written down"


async def test_a_folder_without_room_for_our_files_keeps_no_source_from_being_told(
    moody: Home, tmp_path: Path
) -> None:
    source = MoodySource()
    source.refuses = ""
    outbox = told_by(moody, source)
    outbox._files.broken = tmp_path  # type: ignore[attr-defined]
    await outbox.catch_up()
    assert (tmp_path / "plan.yaml").read_bytes() == b"a"


async def test_the_health_of_a_loop_that_ended_says_so_even_if_who_drove_it_was_killed(
    tmp_path: Path,
) -> None:
    home, files = Home(), FragileFiles(Path("/nowhere"))
    plan = home.submit(planned("a"), root=tmp_path)
    outbox = Outbox(home.world, files)  # type: ignore[arg-type]
    await outbox.catch_up()
    assert files.healths == {}, "whoever drives it tells"
    await home.command("stop", plan.id)
    await outbox.catch_up()
    (said,) = files.healths.values()
    assert (said["status"], said["pid"], said["next_heartbeat_before"]) == ("STOPPED", None, None)
    assert said["last_heartbeat"] == home.all(Loop)[0].updated_at.isoformat()
    files.healths.clear()
    await home.command("stop", plan.id)
    await home.command("resume", plan.id)
    await outbox.catch_up()
    assert files.healths == {}, "it is driven again"


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


class SlowFiles(ProjectStateFiles):
    """State files on a disk that is ready only after the event loop has done something else."""

    def __init__(self) -> None:
        self.ready = threading.Event()
        self.waited: list[bool] = []

    def append_events(self, folder: Path, events: Sequence[RecordedEvent]) -> None:
        self.waited.append(self.ready.wait(20))
        super().append_events(folder, events)

    def put_text(self, folder: Path, kind: str, name: str, text: str, *, durably: bool = True) -> Path:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        return super().put_text(folder, kind, name, text, durably=durably)


async def test_the_event_loop_goes_on_while_the_disk_is_slow(tmp_path: Path) -> None:
    home = Home()
    first, second = two_projects(home, tmp_path)
    files = SlowFiles()
    asyncio.get_running_loop().call_later(0.01, files.ready.set)
    await Outbox(home.world, files).catch_up()
    assert files.waited == [True, True]
    assert all((one / ".loopwright" / "projects").is_dir() for one in (first, second))
