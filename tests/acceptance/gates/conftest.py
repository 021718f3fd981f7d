"""A small Python project with real tests, whose agents cheat or do not."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acceptance.gates.calculator import Calculator


@pytest.fixture
def calculator(tmp_path: Path) -> Iterator[Calculator]:
    """A project where nothing has run yet; nothing of it is left running afterwards."""
    project = Calculator(tmp_path)
    yield project
    project.clean_up()
