"""Give tests marked `serial` the machine for themselves while the others share it, in one parallel run.

Each test holds a shared lock, a serial one an exclusive lock. Everyone passes a turnstile first, so that a
waiting serial test is not overtaken for ever.
"""

import fcntl
import os
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, how)
        yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Hold the lock around set-up, call and tear-down of one test."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:
        return (yield)
    place = Path(tempfile.gettempdir())
    room, turnstile = place / f"loopwright-room-{run}", place / f"loopwright-turnstile-{run}"
    how = fcntl.LOCK_EX if item.get_closest_marker("serial") else fcntl.LOCK_SH
    with room.open("a") as file:
        with _locked(turnstile, fcntl.LOCK_EX):
            fcntl.flock(file, how)
        return (yield)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Remove the lock files once every worker is done with them."""
    run = getattr(session.config, "workerinput", {}).get("testrunuid")
    if run is None and (manager := session.config.pluginmanager.get_plugin("dsession")) is not None:
        uid = manager.nodemanager.testrunuid
        for name in ("room", "turnstile"):
            (Path(tempfile.gettempdir()) / f"loopwright-{name}-{uid}").unlink(missing_ok=True)
