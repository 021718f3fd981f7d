"""In which order tests run when several run at once, so that nobody waits for anybody.

Tests that need the machine for themselves come first, while no other can be in the middle of something long; then those
that take long, which must not be the last ones; then the rest by chance.
"""

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests, which were shuffled before."""
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    if item.get_closest_marker("serial"):
        return 0
    # Who takes long has a limit of its own.
    return 1 if item.get_closest_marker("timeout") else 2
