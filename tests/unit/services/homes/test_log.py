"""The log of a home: it helps whoever looks for a cause, and is never the cause itself."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopwright.services.homes.log import log_to


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    log = logging.getLogger("loopwright")
    before, level = list(log.handlers), log.level
    yield log
    log.handlers[:] = before
    log.setLevel(level)


def test_a_log_that_cannot_be_opened_ends_no_work_and_is_told_of_once(
    tmp_path: Path, log: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    log_to(tmp_path / "gone")
    log.info("first")
    log.warning("second")
    told = capsys.readouterr().err
    assert told.count("cannot be written") == 1
    assert "loopwright.log" in told
