"""What every test shares."""

import gc
import signal

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = [
    "tests.capabilities_plugin",
    "tests.contained",
    "tests.containers",
    "tests.failures_plugin",
    "tests.order_plugin",
    "tests.postgres",
    "tests.serial_plugin",
    "tests.tables_plugin",
    "tests.wording_plugin",
]

# Half of the usual: every run draws others.
# How fast examples come says how busy the machine is, and nothing of the product.
settings.register_profile(
    "suite", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run async tests on asyncio, the loop that the product runs on."""
    return "asyncio"


def pytest_configure() -> None:
    """Let Ctrl-C be heard: whoever is started with `&` by a script is deaf to it, and so is all that it starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # What is loaded and collected stays to the end: nobody need look for garbage in it, neither meanwhile nor later.
    gc.disable()


def pytest_collection_finish() -> None:
    """Look for garbage from now on, in what the tests make."""
    gc.freeze()
    gc.enable()
