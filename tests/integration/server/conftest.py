"""A served home for each test, or one for those that only ask."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.server.api import Api, serving


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    """An empty home that is served."""
    with serving(tmp_path / "home") as made:
        yield made


@pytest.fixture(scope="module")
def shared_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A served home for tests that do not look at each other's rows."""
    with serving(tmp_path_factory.mktemp("shared") / "home") as made:
        yield made
