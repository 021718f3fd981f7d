"""A desk for each test."""

from pathlib import Path

import pytest
from tests.integration.gates.desks import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    tree = tmp_path / "tree"
    tree.mkdir()
    return Desk(tree=tree, directory=tmp_path / "runs" / "run")
