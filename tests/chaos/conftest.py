"""A place whose wall clock tests set as they like."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acceptance.control.workshop import Workshop
from tests.chaos.wall_clock import WallClock


@pytest.fixture
def clock(tmp_path: Path) -> WallClock:
    """The clock that the programs of the place see."""
    return WallClock(tmp_path / "clock")


@pytest.fixture
def shop(tmp_path: Path, clock: WallClock) -> Iterator[Workshop]:
    """A project in which everything goes by that clock; nothing of it is left running."""
    shop = Workshop(tmp_path)
    shop.program.python = str(clock.python)
    yield shop
    shop.clean_up()
