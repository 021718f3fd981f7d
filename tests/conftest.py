"""What every test shares."""

import pytest

pytest_plugins = [
    "tests.capabilities_plugin",
    "tests.contained",
    "tests.failures_plugin",
    "tests.order_plugin",
    "tests.postgres",
    "tests.serial_plugin",
    "tests.tables_plugin",
]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run async tests on asyncio, the loop that the product runs on."""
    return "asyncio"
