"""A place of its own for each test, whose runs are contained."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acceptance.control.workshop import Workshop


@pytest.fixture
def shop(tmp_path: Path, bwrap: str) -> Iterator[Workshop]:
    """A project whose agents and gates run in a sandbox; nothing of it is left running afterwards."""
    shop = Workshop(tmp_path)
    shop.program.env |= {"LOOPWRIGHT_SANDBOX__LEVEL": "auto", "LOOPWRIGHT_SANDBOX__PROGRAM": bwrap}
    yield shop
    shop.clean_up()
