"""In which order tests run when several run at once, so that nobody waits for anybody.

Tests that need the machine for themselves come first, while no other can be in the middle of something long; then those
that take long, which must not be the last ones; then the rest by chance. Of those that look at one thing, which the
first of them carries out, the others come last: then it is there, and they are short.
"""

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests, which were shuffled before."""
    carried_out: set[str] = set()
    items.sort(key=lambda item: _rank(item, carried_out))


def _rank(item: pytest.Item, carried_out: set[str]) -> int:
    if item.get_closest_marker("serial"):
        return 0
    if shared := item.get_closest_marker("shares"):
        [name] = shared.args
        if name in carried_out:
            return 3
        carried_out.add(name)
        return 1
    # Who takes long has a limit of its own, be it the usual one.
    return 1 if item.get_closest_marker("timeout") else 2
