"""A worker that does not answer in time: what was asked stays written down, and so does what it needs."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.refusals import raises_code

from loopwright.adapters.home.membership import LockedMembership
from loopwright.adapters.store.sql import SqlStore
from loopwright.app import Home
from loopwright.core.rows.model import Command, CommandState
from loopwright.core.values.errors import UserError
from loopwright.engine.people.discoveries import DiscoveryView
from loopwright.ports import no_failpoint
from loopwright.services.control import sending
from loopwright.services.control.discoveries import as_own_plan
from loopwright.services.homes.context import settings_for
from loopwright.services.homes.session import Session


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    store = SqlStore.open(tmp_path / "loopwright.db")
    yield Home(
        root=tmp_path,
        database=tmp_path / "loopwright.db",
        store=store,
        membership=LockedMembership(tmp_path),
        failpoint=no_failpoint,
    )
    await store.close()


def found(root: Path) -> DiscoveryView:
    return DiscoveryView(
        id="disc_0123456789abcdef",
        title="Less noise",
        reason="",
        recommendation="new",
        state="OPEN",
        became="",
        decided_by="",
        project="shop",
        path=str(root),
        plan_id="plan_0123456789abcdef",
        task="a",
        found_at=datetime(2026, 1, 1, tzinfo=UTC),
        decided_at=None,
    )


async def test_a_decision_that_may_yet_be_carried_out_keeps_its_file(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "_PATIENCE_S", 0.05)
    stopped = LockedMembership(tmp_path)
    assert stopped.acquire({"pid": 1})
    with raises_code("worker_not_responding") as late:
        await as_own_plan(Session(home=home, settings=settings_for()), found(tmp_path))
    stopped.release()
    assert late.value.code == "worker_not_responding"
    [command] = await home.store.read(lambda tx: tx.find(Command))
    assert command.state is CommandState.PENDING
    assert (tmp_path / command.arguments["file"]).is_file()


async def test_a_decision_that_is_refused_leaves_nothing_behind(home: Home, tmp_path: Path) -> None:
    with pytest.raises(UserError):
        await as_own_plan(Session(home=home, settings=settings_for()), found(tmp_path))
    assert not (tmp_path / "plans").exists()


async def test_a_folder_that_cannot_be_made_is_said(home: Home, tmp_path: Path) -> None:
    (tmp_path / "plans").write_text("a file of somebody's")
    with raises_code("folder_not_created"):
        await as_own_plan(Session(home=home, settings=settings_for()), found(tmp_path))
    assert (tmp_path / "plans").read_text() == "a file of somebody's"
