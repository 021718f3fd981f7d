"""One suite for every Store: in memory, SQLite and PostgreSQL."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from loopwright.adapters.store.sql import SqlStore
from loopwright.testing.clock import FakeClock
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


def _address(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return (
        request.getfixturevalue("postgres_url")
        if kind == "postgres"
        else str(tmp_path / "home" / "loopwright.db")
    )


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def home(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Home]:
    home = Home(request.param, _address(request.param, request, tmp_path))
    yield home
    await home.close()


@pytest.fixture(params=["sqlite", "postgres"])
async def shared_home(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Home]:
    """A home that several processes can open."""
    home = Home(request.param, _address(request.param, request, tmp_path))
    yield home
    await home.close()


@pytest.fixture
def store(home: Home) -> Any:
    return home.open()
