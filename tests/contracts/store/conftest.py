"""One suite for every Store: in memory, SQLite and PostgreSQL."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.clock import FakeClock

from loopwright.adapters.store.sql import SqlStore
from loopwright.testing.memory_store import MemoryStore


class Home:
    """A place for one database, opened as often as a test wants."""

    def __init__(self, kind: str, address: str) -> None:
        self.kind = kind
        self.address = address
        self.clock = FakeClock()
        self._opened: list[Any] = []

    def open(self, **options: Any) -> Any:
        store = (
            MemoryStore(self.clock, **options)
            if self.kind == "memory"
            else SqlStore.open(self.address, **options)
        )
        self._opened.append(store)
        return store

    async def close(self) -> None:
        for store in self._opened:
            await store.close()


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file as the store makes it: copied, because making it takes much longer."""
    path = tmp_path_factory.mktemp("template") / "loopwright.db"
    SqlStore.open(path).close_sync()
    return path


@pytest.fixture
def sqlite_home(tmp_path: Path, sqlite_template: Path) -> str:
    """Return the address of a home where nothing has happened yet."""
    (tmp_path / "home").mkdir()
    return str(shutil.copy(sqlite_template, tmp_path / "home"))


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def home(request: pytest.FixtureRequest) -> AsyncIterator[Home]:
    kind = request.param
    home = Home(kind, "" if kind == "memory" else request.getfixturevalue(f"{kind}_home"))
    yield home
    await home.close()


@pytest.fixture(params=["sqlite", "postgres"])
async def shared_home(request: pytest.FixtureRequest) -> AsyncIterator[Home]:
    """A home that several processes can open."""
    home = Home(request.param, request.getfixturevalue(f"{request.param}_home"))
    yield home
    await home.close()


@pytest.fixture
def store(home: Home) -> Any:
    return home.open()
