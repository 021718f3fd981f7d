"""A place of its own for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acceptance.control.workshop import Workshop


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Workshop]:
    """A project where nothing has run yet; nothing of it is left running afterwards."""
    shop = Workshop(tmp_path)
    yield shop
    shop.clean_up()
